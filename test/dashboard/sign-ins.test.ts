/** The sign-in of a browser context: its form, its state and history, signing in by hand, and the banners. */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { openStore } from '../../src/domain/installation.ts'
import type { Claim } from '../../src/domain/queue/attempts.ts'
import type { Outcome } from '../../src/domain/runs/run-state.ts'
import { claimableOf } from '../support/claims.ts'
import { type DashboardService, type SignedInUser, signIn } from '../support/dashboard.ts'
import { control, fieldError, inputValue, linkPaths, pageText, readRows } from '../support/html.ts'
import { newContext, queueFromForm, startBrowserDashboard } from './browser-context-helpers.ts'

const password = 'canary-of-a-password-4417'
const totpSeed = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'
const form = { workflowId: 'sign-in', 'variable-userName': 'ada', 'variable-password': password }
const retry = { maxAttempts: 1, backoffSeconds: 1, backoffFactor: 2 }

let dashboard: DashboardService

beforeAll(async () => {
  dashboard = await startBrowserDashboard({
    WORKFLOWS_DIR: fileURLToPath(new URL('sign-in-workflows', import.meta.url)),
  })
  await dashboard.domain.workflows.refresh()
})

afterAll(() => dashboard.stop())

/** The text of the page, without the spaces that its tags leave before punctuation. */
async function page({ visitor }: SignedInUser, path: string): Promise<string> {
  const response = await visitor.get(path)
  expect(response.status).toBe(200)
  return pageText(response).replaceAll(/ (?=[.,])/g, '')
}

/** A user with a browser context that has a sign-in. */
async function newShop() {
  const ada = await signIn(dashboard)
  const { id } = await newContext(dashboard, ada, 'Shop')
  const path = `/browser-contexts/${id}`
  expect((await ada.visitor.post(`${path}/sign-in`, form)).headers.location).toBe(`${path}?done=signInSet`)
  return { ada, id, path }
}

/** Claims the run like a worker. */
async function claimOf(runId: string): Promise<Claim> {
  const workflows = ['sign-in', 'browse'].map((id) => ({ id, version: '1.0.0', retry, usesBrowser: true }))
  const claims = await dashboard.domain.queue.claim('worker', claimableOf(workflows), 10, 60)
  const claim = claims.find((each) => each.runId === runId)
  if (!claim) throw new Error(`The run ${runId} was not claimed.`)
  return claim
}

async function complete(runId: string, outcome: Outcome): Promise<void> {
  await dashboard.domain.queue.complete(await claimOf(runId), outcome, retry)
}

const signedOut: Outcome = {
  kind: 'signedOut',
  executedMilliseconds: 1,
  contextVersion: undefined,
  error: { name: 'SignedOut', message: 'The session has ended.' },
}

test('a sign-in is set, changed and deleted, its secrets are kept and never shown', async () => {
  const ada = await signIn(dashboard)
  const { visitor, accountId } = ada
  const { id } = await newContext(dashboard, ada, 'Shop')
  const path = `/browser-contexts/${id}`
  expect(await page(ada, path)).toContain('With a sign-in, a run that finds its session ended waits')
  expect(linkPaths(await visitor.get(path), 'Set up sign-in')).toEqual([`${path}/sign-in`])

  const { 'variable-password': _, ...incomplete } = form
  const refused = await visitor.post(`${path}/sign-in`, { ...incomplete, totpSeed: 'no seed!', checkEverySeconds: '5' })
  expect(refused.status).toBe(400)
  expect(fieldError(refused, 'checkEverySeconds')).toBe('Enter a whole number from 60 to 2592000.')
  const lacking = await visitor.post(`${path}/sign-in`, incomplete)
  expect([lacking.status, fieldError(lacking, 'variable-password')]).toEqual([400, expect.stringContaining('required')])
  const badSeed = await visitor.post(`${path}/sign-in`, { ...form, totpSeed: 'not a seed: 1890' })
  expect([badSeed.status, fieldError(badSeed, 'totpSeed')]).toEqual([400, expect.stringContaining('Base32')])
  for (const { text } of [refused, lacking, badSeed]) expect(text).not.toContain(password)

  await visitor.post(`${path}/sign-in`, { ...form, totpSeed, checkEverySeconds: '3600' })
  const set = await page(ada, `${path}?done=signInSet`)
  expect(set).toMatch(/Sign-in saved\..*State Not checked.*Checks every 1h.*Codes from a stored TOTP seed/)
  const shown = await visitor.get(`${path}/sign-in`)
  expect(inputValue(shown, 'variable-userName')).toBe('ada')
  expect([inputValue(shown, 'variable-password'), inputValue(shown, 'totpSeed')]).toEqual(['', ''])
  expect(pageText(shown)).toContain('Leave empty to keep it.')

  const grace = { ...form, 'variable-userName': 'grace' }
  const unproven = await visitor.post(`${path}/sign-in`, { ...grace, 'variable-password': '' })
  expect(unproven.status).toBe(400)
  for (const name of ['variable-password', 'totpSeed'])
    expect(fieldError(unproven, name)).toContain('give the value again')
  await visitor.post(`${path}/sign-in`, { ...grace, totpSeed })
  expect(await dashboard.domain.signIns.get(accountId, id)).toMatchObject({
    variables: { userName: 'grace', password: '********' },
    hasTotp: true,
    checkEverySeconds: null,
  })
  await visitor.post(`${path}/sign-in`, { ...grace, 'variable-password': '', removeTotp: 'on' })
  expect(await page(ada, path)).toContain('Codes no TOTP seed')
  for (const each of [
    path,
    `${path}/sign-in`,
    `${path}/sign-in?as=json`,
    `${path}/sign-in/delete`,
    '/settings/audit-log',
  ]) {
    const { text } = await visitor.get(each)
    for (const secret of [password, totpSeed]) expect(text).not.toContain(secret)
  }
  expect((await visitor.post(`${path}/sign-in/delete`)).headers.location).toBe(`${path}?done=signInDeleted`)
  expect(await page(ada, path)).toContain('Set up sign-in')
  const log = await page(ada, '/settings/audit-log')
  expect(log).toContain('deleted the sign-in of a browser context Shop')
})

test('a run that is signed out names the run that signs in, and the history says why, by which run and how it ended', async () => {
  const { ada, id, path } = await newShop()
  const runId = await queueFromForm(ada, { browserContextId: id, persistContext: 'onSuccess' })
  await complete(runId, signedOut)
  const signingIn = (await dashboard.domain.signIns.get(ada.accountId, id))?.runId ?? ''
  expect(await page(ada, `/runs/${runId}`)).toContain(
    `Waiting for the sign-in of Shop, which run …${signingIn.slice(-8)} does.`,
  )
  const runs = readRows(await ada.visitor.get('/runs')).join('\n')
  expect(runs).toMatch(/Browse a site .* waiting for its browser context to be signed in/)
  expect(runs).toMatch(/Sign in to a site .* sign-in$/m)
  const during = await page(ada, path)
  expect(during).toMatch(/State Signing in Now Signing in, by run .*Runs that wait 1/)
  expect(during).toMatch(
    new RegExp(
      `Sign-in run …${signingIn.slice(-8)} The session had ended\\. found by run …${runId.slice(-8)} In progress`,
    ),
  )
  expect(control(await ada.visitor.get(path), 'now')).toBeUndefined()
  await complete(signingIn, { kind: 'succeeded', output: null })
  expect(await page(ada, path)).toMatch(/State Signed in .*Runs that wait none/)
  expect(await page(ada, '/browser-contexts')).toContain('Signed in')
})

test('a browser context that needs a person has a banner; a user signs in by hand or cancels', async () => {
  const { ada, id, path } = await newShop()
  const { visitor, accountId } = ada
  for (const each of ['/', '/browser-contexts']) expect(await page(ada, each)).not.toContain('needs a sign-in')
  const runId = await queueFromForm(ada, { browserContextId: id, persistContext: 'onSuccess' })
  await complete(runId, signedOut)
  const current = async () => (await dashboard.domain.signIns.get(accountId, id))?.runId ?? ''
  const failed = await current()
  await dashboard.domain.runs.cancel(accountId, failed, { userId: ada.id })
  for (const each of ['/', '/browser-contexts'])
    expect(await page(ada, each)).toMatch(/A browser context needs a sign-in\. .* Shop, since .*One run waits for it\./)
  expect(linkPaths(await visitor.get('/'), 'Shop')).toContain(path)
  expect(await page(ada, path)).toMatch(/This browser context needs a person since .* One run waits for it\./)
  expect(await page(ada, `/runs/${runId}`)).toContain('Waiting for the sign-in of Shop, which needs a person since')

  const byHand = `${path}/sign-in/by-hand`
  expect((await visitor.get(byHand)).headers.location).toBe(path)
  expect((await visitor.post(byHand)).headers.location).toBe(byHand)
  const first = await current()
  const shown = await visitor.get(byHand)
  expect(pageText(shown)).toMatch(/opens a browser with the state of this browser context.*Cancelling changes nothing/)
  expect(shown.text).toContain(`data-live-view="/runs/${first}/live"`)
  expect(pageText(shown)).toContain('upload a storage state')
  expect((await visitor.post(`${byHand}/cancel`)).headers.location).toBe(`${path}?done=byHandCancelled`)
  expect(await page(ada, byHand)).toContain('Cancelled. Nothing was stored.')
  expect(await page(ada, '/')).toContain('A browser context needs a sign-in.')

  await visitor.post(byHand)
  await complete(await current(), { kind: 'succeeded', output: null })
  expect(await page(ada, byHand)).toContain('You have signed in.')
  expect(await page(ada, '/')).not.toContain('needs a sign-in')
  const rows = readRows(await visitor.get(path)).join('\n')
  expect(rows).toMatch(/Sign-in by hand run …\w{8} By Ada\. Signed in/)
  expect(await page(ada, `/runs/${runId}`)).not.toContain('Waiting for the sign-in')
})

test('“Sign in now” queues one run, and says if the workflow no longer fits', async () => {
  const { ada, id, path } = await newShop()
  const { visitor, accountId } = ada
  for (const _ of [1, 2]) {
    expect((await visitor.post(`${path}/sign-in/now`)).headers.location).toBe(`${path}?done=signingIn`)
  }
  expect(await dashboard.domain.signIns.history(accountId, id)).toHaveLength(1)
  expect(await page(ada, path)).toContain('Ada requested it.')
  const byHand = await visitor.post(`${path}/sign-in/by-hand`)
  expect(byHand.headers.location).toBe(`${path}?done=alreadySigningIn`)

  await dashboard.domain.signIns.cancel(accountId, id, { kind: 'user', id: ada.id, name: 'Ada' })
  const store = await openStore(readConfig(dashboard.settings))
  await store.write(({ query }) => query.updateTable('context_sign_ins').set({ workflow_id: 'removed' }).execute())
  await store.close()
  for (const action of ['now', 'by-hand']) {
    const refused = await visitor.post(`${path}/sign-in/${action}`)
    expect(refused.headers.location).toBe(`${path}?done=signInRefused`)
  }
  expect(await page(ada, `${path}?done=signInRefused`)).toMatch(/No run was queued.*Workflow removed not deployed/)
})

test('without a workflow that signs in, the form says what to deploy', async () => {
  const plain = await startBrowserDashboard()
  try {
    const ada = await signIn(plain)
    const { id } = await newContext(plain, ada)
    const text = await page(ada, `/browser-contexts/${id}/sign-in`)
    expect(text).toContain('No deployed workflow signs in')
  } finally {
    await plain.stop()
  }
})
