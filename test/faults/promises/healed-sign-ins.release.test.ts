/** P23: a lost session is healed by one sign-in, and costs no run its success, whatever happens to processes. */
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { type Site, startSite } from '../../../examples/site/site.ts'
import { waitingForSessionMax } from '../../../src/storage/runs/sign-in-statements.ts'
import { type ApiMember, type Fleet, type Member, newFleet } from '../../support/fleet.ts'
import { fleetStores } from '../../support/fleet-stores.ts'
import { queueRun } from '../../support/ledger.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { record } from '../figures.ts'

/** Apart from those of other promises, since they need a browser. */
const WORKFLOWS_DIR = fileURLToPath(new URL('shop-workflows', import.meta.url))

const isReliability = process.env.TEST_SET === 'reliability'
const kills = isReliability ? 50 : 3
const runs = isReliability ? 1000 : 40
const contexts = isReliability ? 20 : 4
const workers = isReliability ? 4 : 2
const minutesMax = isReliability ? 60 : 10
/** Shares of the requests that find their session ended, and of the sign-ins that need a person. */
const [endRate, captchaRate] = isReliability ? [0.05, 0.01] : [0.1, 0.05]
const password = 'canary-password-6f1d'
const totpSeed = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'
const hasBundled = process.platform === 'linux' && process.arch === 'x64'

const wait = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds))

/** Calls until a process answers. */
async function call(api: ApiMember, key: string, method: string, path: string, body?: object) {
  for (;;) {
    const response = await fetch(`${api.browserContextUrl}/alpha/browser-contexts${path}`, {
      method,
      headers: { 'x-service-api-key': key, ...(body && { 'Content-Type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    }).catch(() => undefined)
    if (response && response.status < 500) {
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
      return response.status === 204 ? undefined : response.json()
    }
    await wait(100)
  }
}

/** Signs in as a person does, who also answers the captcha; returns the session's cookie. */
async function signInByHand(site: Site, user: string, code: () => Promise<string>): Promise<string> {
  const post = async (path: string, form: Record<string, string>, cookie = '') => {
    const init = { method: 'POST', body: new URLSearchParams(form), headers: { cookie }, redirect: 'manual' as const }
    const response = await fetch(new URL(path, site.url), init)
    return response.headers.get('set-cookie')?.split(';')[0] ?? cookie
  }
  let cookie = await post('/sign-in', { userName: user, password })
  while (cookie.startsWith('signIn=')) cookie = await post('/sign-in/proof', { code: await code() }, cookie)
  return cookie.replace('session=', '')
}

async function currentCode(): Promise<string> {
  const { parseTotpSeed, totpCode } = await import('../../../src/domain/workflows/totp.ts')
  const seed = await parseTotpSeed(totpSeed)
  if (!seed) throw new Error('The seed is none.')
  return (await totpCode(seed, Date.now())).code
}

interface Context {
  id: string
  user: string
}

/** What a person does about a browser context that needs one, until all runs have ended. Returns how often. */
async function heal(
  fleet: Fleet,
  api: ApiMember,
  key: string,
  site: Site,
  all: readonly Context[],
  ended: () => boolean,
) {
  let healed = 0
  while (!ended()) {
    const needed = await fleet.withStore(({ read }) =>
      read.all<{ id: string }>(
        "SELECT browser_context_id AS id FROM context_sign_ins WHERE status = 'needsSignIn'",
        [],
      ),
    )
    for (const { id } of needed) {
      const user = all.find((context) => context.id === id)?.user ?? ''
      const value = await signInByHand(site, user, currentCode)
      const rest = { path: '/', expires: -1, httpOnly: true, secure: false, sameSite: 'Lax' }
      const cookies = [{ name: 'session', value, domain: '127.0.0.1', ...rest }]
      // A run may use the context: the person tries again.
      const put = call(api, key, 'PUT', `/${id}/storage-state`, { cookies, origins: [] })
      if (await put.then(() => true).catch(() => false)) healed += 1
    }
    await wait(500)
  }
  return healed
}

async function disturb(fleet: Fleet, members: Member[], random: () => number, ended: () => boolean): Promise<number> {
  let killed = 0
  for (; killed < kills && !ended(); killed += 1) {
    await wait(2500 + random() * 2500)
    const index = Math.floor(random() * members.length)
    await members[index]?.kill()
    members[index] = await fleet.worker()
  }
  return killed
}

interface Ended {
  status: string
  count: number
}

async function examine(fleet: Fleet, all: readonly Context[], site: Site) {
  return fleet.withStore(async ({ read }) => {
    const statuses = await read.all<Ended>(
      "SELECT status, COUNT(*) AS count FROM runs WHERE workflow_id = 'heal' GROUP BY status",
      [],
    )
    const attempts = await read.all<{ count: number }>(
      "SELECT COUNT(*) AS count FROM runs WHERE workflow_id = 'heal' AND failures > 0",
      [],
    )
    const signIns = await read.all<{ id: string; count: number }>(
      `SELECT browser_context_id AS id, COUNT(*) AS count FROM runs WHERE signs_in = 'signIn' AND status = 'succeeded'
        GROUP BY browser_context_id`,
      [],
    )
    const shown = await read.all<{ data: string }>('SELECT data FROM run_events', [])
    const errors = await read.all<{ error: string | null }>('SELECT error FROM runs WHERE error IS NOT NULL', [])
    const text = JSON.stringify([shown, errors])
    return {
      succeeded: Number(statuses.find(({ status }) => status === 'succeeded')?.count ?? 0),
      others: statuses.filter(({ status }) => status !== 'succeeded'),
      failedAttempts: Number(attempts[0]?.count ?? 0),
      signIns: signIns.reduce((sum, { count }) => sum + Number(count), 0),
      // Each session but the first one of a context follows the end of another one.
      tooMany: signIns.filter(({ id, count }) => {
        const user = all.find((context) => context.id === id)?.user ?? ''
        return Number(count) > site.counts(user).endedSessions + 1
      }).length,
      leaks: [password, totpSeed].filter((secret) => text.includes(secret)),
      codes: /The code is [0-9]/.test(text),
    }
  })
}

test.runIf(hasBundled).for(fleetStores)(
  `a lost session is healed by one sign-in through ${kills} kills, and costs no run its success, on the store "$name"`,
  { timeout: minutesMax * 60_000 },
  async (kind, test) => {
    expect(waitingForSessionMax).toBeGreaterThan(runs / contexts)
    const customers = Array.from({ length: contexts }, (_, index) => `customer-${index}`)
    const options = { customers, totpSeed, endRate, captchaRate, sessionSeconds: 300, oneSession: true }
    const site = await startSite({ token: 'unused', password }, 0, options)
    test.onTestFinished(() => site.stop())
    const fleet = await newFleet(test, kind, { settings: { WORKFLOWS_DIR, LEASE_SECONDS: '3', WORKER_SLOTS: '3' } })
    const { key } = await fleet.createAccount()
    const api = await fleet.api()
    const members = await Promise.all(Array.from({ length: workers }, () => fleet.worker()))
    const { url } = site
    const all = await Promise.all(
      customers.map(async (user): Promise<Context> => {
        const { id } = await call(api, key, 'POST', '', { name: user })
        const variableData = { url, user, password }
        await call(api, key, 'PUT', `/${id}/sign-in`, { workflowId: 'heal-sign-in', variableData, totpSeed })
        return { id, user }
      }),
    )
    let hasEnded = false
    const healing = heal(fleet, api, key, site, all, () => hasEnded)
    const disturbing = disturb(fleet, members, seededRandom(23), () => hasEnded)
    const ids: string[] = []
    for (let index = 0; index < runs; index += 1) {
      const parameters = `?browserContextId=${all[index % contexts]?.id}`
      const response = await queueRun(`${api.executionUrl}`, key, `heal${parameters}`, { url })
      if (response?.id) ids.push(response.id)
    }
    expect(ids).toHaveLength(runs)
    const unfinished = () =>
      fleet.withStore(({ read }) =>
        read.all<{ count: number }>(
          "SELECT COUNT(*) AS count FROM runs WHERE workflow_id = 'heal' AND finished_at IS NULL",
          [],
        ),
      )
    while (Number((await unfinished())[0]?.count) > 0) await wait(1000)
    hasEnded = true
    const [healed, killed] = await Promise.all([healing, disturbing])
    const found = await examine(fleet, all, site)
    const { endedSessions, signIns } = site.counts()
    record({
      promise: 'P23',
      store: kind.name,
      fault: `${contexts} browser contexts whose sessions end at random, and ${kills} kills of workers`,
      figures: { acknowledged: ids.length, killed, lost: runs - found.succeeded, duplicated: found.tooMany },
      remark: `${endedSessions} sessions ended; ${found.signIns} runs signed in (${signIns} sign-ins at the shop); a person healed ${healed}`,
    })
    if (isReliability) expect(killed).toBe(kills)
    expect(found).toMatchObject({ succeeded: runs, others: [], failedAttempts: 0, tooMany: 0, leaks: [], codes: false })
  },
)
