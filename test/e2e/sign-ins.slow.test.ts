/**
 * Browser contexts that stay signed in, with the example shop, a real service and its dashboard: sessions that end are healed
 * while runs wait, a code comes by mail, and a person signs in by hand where a program may not.
 */
import { fileURLToPath } from 'node:url'
import { Secret, TOTP } from 'otpauth'
import { afterAll, beforeAll, expect, onTestFinished, type TestContext, test } from 'vitest'
import type { CustomerOptions } from '../../examples/site/customers.ts'
import { startSite } from '../../examples/site/site.ts'
import { createBrowserContextClient, unwrap } from '../../src/client/index.ts'
import { readConfig } from '../../src/config/config.ts'
import { openStore } from '../../src/domain/installation.ts'
import { violations } from '../support/accessibility.ts'
import { type Browser, browserErrors, startBrowser } from '../support/browser.ts'
import { signIn } from '../support/dashboard.ts'
import { type Installation, newInstallation, type ServiceProcess } from '../support/installation.ts'
import { until } from '../support/service.ts'
import { callerOf, queue, read, untilStatus } from './caller.ts'

const password = 'canary-of-a-password-7720'
const totp = new TOTP({ secret: new Secret({ size: 20 }) })

let installation: Installation
let service: ServiceProcess
let browser: Browser

beforeAll(async () => {
  const workflows = fileURLToPath(new URL('../../examples/workflows', import.meta.url))
  const access = { EXAMPLE_PRIVATE_ADDRESSES: '127.0.0.1', EXECUTOR_ENV: 'EXAMPLE_*' }
  installation = await newInstallation({ WORKFLOWS_DIR: workflows, LOG_LEVEL: 'trace', ...access })
  ;[service, browser] = await Promise.all([installation.start(), startBrowser()])
})

afterAll(async () => {
  await browser.close()
  await installation.remove()
})

/** A shop, and a browser context that has a sign-in there and no session yet. */
async function newCustomer(options: CustomerOptions = {}, checkEverySeconds: number | null = null) {
  const site = await startSite({ token: 'of no member here', password }, 0, options)
  onTestFinished(() => site.stop())
  const { account, client } = await callerOf(installation, service)
  const contexts = createBrowserContextClient({ apiKey: account.key, baseUrl: service.browserContextUrl })
  const { id: browserContextId } = unwrap(await contexts.createBrowserContext({ body: { name: 'Shop' } }))
  const params = { path: { browserContextId } }
  const body = {
    workflowId: 'shop-sign-in',
    variableData: { url: site.url, userName: 'ada', password },
    checkEverySeconds,
    ...(options.totpSeed !== undefined && { totpSeed: options.totpSeed }),
  }
  unwrap(await contexts.setSignIn({ params, body }))
  return {
    ...{ site, client, accountId: account.id, browserContextId },
    readOrders: async () => (await queue(client, 'shop-orders', { url: site.url }, { browserContextId })).run,
    signInNow: async () => unwrap(await contexts.signInNow({ params })),
    getSignIn: async () => unwrap(await contexts.getSignIn({ params })),
  }
}

test('one run signs in for all runs whose session has ended, with a code, and none fails', async () => {
  const { site, client, readOrders, getSignIn } = await newCustomer({ totpSeed: totp.secret.base32, oneSession: true })
  const first = await readOrders()
  expect(await untilStatus(client, first, 'succeeded')).toMatchObject({
    attempts: 1,
    output: { orders: { length: 3 } },
  })
  expect(await getSignIn()).toMatchObject({ status: 'signedIn', waitingRuns: 0, error: null })

  await signInElsewhere(site.url)
  expect(site.counts()).toMatchObject({ signIns: 2, endedSessions: 1 })
  const runs = await Promise.all([1, 2, 3].map(readOrders))
  for (const run of runs) expect(await untilStatus(client, run, 'succeeded')).toMatchObject({ attempts: 1 })
  expect(site.counts().signIns, 'one for each session that has ended').toBe(3)
  const { history } = await getSignIn()
  expect(history).toHaveLength(2)
  expect(history[0]).toMatchObject({ kind: 'signIn', cause: 'signedOut', outcome: 'signedIn', version: 2, error: null })
  expect(runs.map(({ id }) => id)).toContain(history[0]?.causedByRunId)
  for (const secret of [password, totp.secret.base32]) {
    expect(service.output()).not.toContain(secret)
    expect(JSON.stringify([history, await getSignIn()])).not.toContain(secret)
  }
})

test('a check loads one page, and a run that throws SignedOut loads none more', async () => {
  const { site, client, readOrders, getSignIn, signInNow, browserContextId } = await newCustomer({}, 3600)
  const { runId } = await signInNow()
  await untilStatus(client, { id: runId ?? '' }, 'succeeded')
  const loads = async (act: () => Promise<unknown>) => {
    const { orderRequests } = site.counts()
    await act()
    return site.counts().orderRequests - orderRequests
  }
  const run = () => readOrders().then((orders) => untilStatus(client, orders, 'succeeded'))
  // It reads the page of orders itself.
  expect(await loads(run)).toBe(1)
  const check = async () => {
    const store = await openStore(readConfig(installation.settings))
    const due = 'UPDATE context_sign_ins SET next_check_at = 1 WHERE browser_context_id = ?'
    await store.write((tx) => tx.all(due, [browserContextId]))
    store.notify('maintenance')
    await until('the check has ended', async () => (await getSignIn()).history[0]?.kind === 'check')
    await until('its run has ended', async () => (await getSignIn()).history[0]?.outcome)
    await store.close()
  }
  expect(await loads(check)).toBe(1)
  expect((await getSignIn()).history).toMatchObject([{ kind: 'check', outcome: 'signedIn' }, { kind: 'signIn' }])
  expect(site.counts().signIns).toBe(1)
})

/** Another device of the customer, which ends all other sessions. */
async function signInElsewhere(url: string): Promise<void> {
  const post = (path: string, form: Record<string, string>, cookie = '') =>
    fetch(url + path, {
      ...{ method: 'POST', redirect: 'manual', headers: { Cookie: cookie }, body: new URLSearchParams(form) },
    })
  const response = await post('/sign-in', { userName: 'ada', password })
  await post('/sign-in/proof', { code: totp.generate() }, response.headers.getSetCookie()[0]?.split(';')[0])
}

test.for(['the API', 'a form'])(
  'a sign-in waits for the code from the mail, given by %s, which no log has',
  async (by) => {
    const codes: string[] = []
    const { client, accountId, readOrders, signInNow, getSignIn } = await newCustomer({
      mailCode: true,
      onMail: ({ code }) => codes.push(code),
    })
    const { runId } = await signInNow()
    const signingIn = { id: runId ?? '' }
    await until('the run asks for the code', async () => {
      const { data } = await client.listRunWaits({ params: { path: { runId: signingIn.id } } })
      return data?.data.some(({ name, status }) => name === 'code' && status === 'open')
    })
    const orders = await readOrders()
    const [code = ''] = codes
    if (by === 'the API') {
      const path = { runId: signingIn.id, name: 'code' }
      unwrap(await client.completeWait({ params: { path }, body: { value: { code } } }))
    } else {
      const { visitor } = await signIn({ ...service, settings: installation.settings }, { accountId })
      const path = `/runs/${signingIn.id}/waits/code`
      expect((await visitor.get(path)).text).toContain('Which code has the shop sent by mail?')
      expect((await visitor.post(path, { 'variable-code': code })).status).toBe(303)
      expect((await visitor.get(path)).text).not.toContain(code)
    }
    await untilStatus(client, signingIn, 'succeeded')
    await untilStatus(client, orders, 'succeeded')
    // The process and its page have waited: the shop sends another code to another sign-in.
    expect(codes).toHaveLength(1)
    expect(await read(client, signingIn)).toMatchObject({ attempts: 1 })
    expect(await getSignIn()).toMatchObject({ status: 'signedIn', waitingRuns: 0, history: [{ outcome: 'signedIn' }] })
    expect(JSON.stringify(await read(client, signingIn))).not.toContain(code)
  },
)

test('where the shop asks for a person, one signs in by hand, and the waiting run succeeds', async (context) => {
  const customer = await newCustomer({ captchaRate: 1 })
  const { site, client, readOrders, getSignIn, browserContextId } = customer
  const orders = await readOrders()
  await until('a person is needed', async () => (await getSignIn()).status === 'needsSignIn')
  const { error, history } = await getSignIn()
  expect(error?.message).toBe('The shop asks for a person: sign in by hand.')
  expect(history[0]).toMatchObject({ kind: 'signIn', outcome: 'failed' })
  expect(await read(client, orders)).toMatchObject({ status: 'waiting', waitingFor: 'signIn', attempts: 1 })

  const page = await openDashboard(context, customer.accountId)
  await page.goto('/')
  await page.getByText('A browser context needs a sign-in.').waitFor()
  await page.getByRole('link', { name: 'Shop' }).first().click()
  await page.getByText('This browser context needs a person').waitFor()
  expect(await violations(page)).toEqual([])
  await page.getByRole('button', { name: 'Sign in by hand' }).click()
  await page.getByRole('button', { name: 'Take over' }).click()
  await page.getByText(/^You have control/).waitFor()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByText('You are not signed in. Nothing was stored.').waitFor()
  const refused = (await getSignIn()).history[0]
  expect(refused).toMatchObject({ kind: 'byHand', outcome: 'failed', by: 'Ada' })
  expect(await read(client, { id: refused?.runId ?? '' })).toMatchObject({ status: 'failed', artifacts: [] })
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('button', { name: 'Take over' }).click()
  await page.getByText(/^You have control/).waitFor()
  const address = page.locator('[data-address]')
  await until('the shop is shown', async () => (await address.textContent()) === `${site.url}/sign-in`)
  expect(await violations(page)).toEqual([])

  await page.locator('[data-frame]').click({ position: { x: 5, y: 5 } })
  await page.keyboard.press('Tab')
  await page.keyboard.type('ada')
  await page.keyboard.press('Tab')
  await page.keyboard.type(password)
  await page.keyboard.press('Enter')
  await until('the captcha is shown', async () => (await address.textContent()) === `${site.url}/sign-in/proof`)
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await until('the orders are shown', async () => (await address.textContent()) === `${site.url}/orders`)
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByText('You have signed in.').waitFor()

  expect(await untilStatus(client, orders, 'succeeded')).toMatchObject({
    attempts: 1,
    output: { orders: { length: 3 } },
  })
  expect(await getSignIn()).toMatchObject({ status: 'signedIn', error: null, waitingRuns: 0 })
  await page.goto(`/browser-contexts/${browserContextId}`)
  await page.getByRole('row', { name: /Sign-in by hand .*By Ada\. Signed in/ }).waitFor()
  expect(await browserErrors(page)).toEqual([])
  expect(service.output()).not.toContain(password)
})

async function openDashboard(context: TestContext, accountId: string) {
  const { visitor } = await signIn({ ...service, settings: installation.settings }, { accountId })
  const page = await browser.newPage(context, { baseUrl: service.dashboardUrl })
  const cookies = [...visitor.cookies].map(([name, value]) => ({ name, value, url: service.dashboardUrl }))
  await page.context().addCookies(cookies)
  return page
}
