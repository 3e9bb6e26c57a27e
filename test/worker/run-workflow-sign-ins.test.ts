/** The test kit with workflows that sign in, or need a session. */
import { expect, test, vi } from 'vitest'
import { defineWorkflow, SignedOut } from '../../src/domain/workflows/define-workflow.ts'
import { runWorkflow } from '../../src/worker/testing/run-workflow.ts'

const seed = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'

/** A context whose pages show whether the customer is signed in. */
function fakeShop({ signedIn = false } = {}) {
  const shop = { signedIn, loads: 0 }
  const newPage = () => ({
    goto: async () => {
      shop.loads += 1
    },
    title: async () => (shop.signedIn ? 'Orders' : 'Sign in'),
    close: async () => {},
  })
  return { shop, browser: { newPage } }
}

const required = { version: '1.0.0', title: 'Test', variables: { type: 'object' }, output: {}, browser: true } as const

const orders = defineWorkflow({
  ...required,
  id: 'orders',
  signedOut: async (page) => {
    await page.goto('/orders')
    return (await page.title()) === 'Sign in'
  },
  run: async ({ browser }) => (await (await browser()).newPage()).title(),
})

test('a run whose browser is signed out goes on when another run has signed in, in the same attempt', async () => {
  const { shop, browser } = fakeShop()
  const run = vi.fn(() => {
    shop.signedIn = true
  })
  expect(await runWorkflow(orders, { browser, signIn: { run } })).toMatchObject({ output: 'Orders', attempts: 1 })
  expect([run.mock.calls.length, shop.loads]).toEqual([1, 2])
})

test('the workflow gets no browser that is signed out, whatever it catches', async () => {
  const { browser } = fakeShop()
  const handed = vi.fn()
  const careless = defineWorkflow({
    ...orders,
    run: async ({ browser }) => handed(await browser().catch(() => 'caught')),
  })
  const run = await runWorkflow(careless, { browser, signIn: {} })
  expect(run).toMatchObject({ status: 'signedOut', error: { name: 'SignedOut' } })
  expect(handed).not.toHaveBeenCalled()
})

test('without a sign-in, the workflow is not asked, and SignedOut is a failure', async () => {
  const { shop, browser } = fakeShop()
  expect(await runWorkflow(orders, { browser })).toMatchObject({ output: 'Sign in' })
  expect(shop.loads).toBe(0)
  const thrown = defineWorkflow({ ...required, id: 'thrown', run: () => Promise.reject(new SignedOut('No session.')) })
  expect(await runWorkflow(thrown, { browser })).toMatchObject({
    status: 'failed',
    error: { name: 'SignedOut', message: 'No session.' },
  })
  expect(await runWorkflow(thrown, { browser, signIn: {} })).toMatchObject({ status: 'signedOut' })
})

test('a session that ends during the run is no failure of the run', async () => {
  const { shop, browser } = fakeShop({ signedIn: true })
  const failing = defineWorkflow({
    ...orders,
    run: async ({ browser }) => {
      await browser()
      shop.signedIn = false
      throw new Error('There is no table of orders.')
    },
  })
  const run = await runWorkflow(failing, { browser, signIn: {} })
  expect(run).toMatchObject({ status: 'signedOut' })
  expect(run.error?.message).toContain('The workflow failed before: Error: There is no table of orders.')
})

test('a signedOut that throws does not end the run', async () => {
  const { browser } = fakeShop({ signedIn: true })
  const broken = defineWorkflow({ ...orders, signedOut: () => Promise.reject(new Error('broken')) })
  const run = await runWorkflow(broken, { browser, signIn: {} })
  expect(run).toMatchObject({ status: 'succeeded' })
  expect(run.logs).toEqual([{ level: 'warn', message: 'signedOut failed, so the run goes on: Error: broken' }])
})

const signIn = defineWorkflow({
  ...orders,
  id: 'sign-in',
  signsIn: true,
  run: async ({ totp, log }) => log(await totp()),
})

test('totp() returns a code of the seed, which is masked, and another one at each call', async () => {
  const codes: string[] = []
  const twice = defineWorkflow({
    ...required,
    id: 'twice',
    signsIn: true,
    run: async ({ totp, log }) => {
      codes.push(await totp(), await totp())
      log(codes.join(' '))
    },
  })
  // RFC 6238, appendix B: the code at 1,111,111,109 s, of six digits.
  const now = new Date(1_111_111_109_000)
  const run = await runWorkflow(twice, { clock: 'fake', now, browser: {}, signIn: { totpSeed: seed } })
  // One second before the end of its period the first code is too old to be entered.
  expect(codes[0]).toBe('050471')
  expect(codes[1]).not.toBe(codes[0])
  expect(run.logs).toEqual([{ level: 'info', message: '******** ********' }])
})

test('an attempt after a failed one waits for a code that no attempt has got', async () => {
  const codes: string[] = []
  const twice = defineWorkflow({
    ...required,
    id: 'twice',
    signsIn: true,
    retry: { maxAttempts: 2, backoffSeconds: 0 },
    run: async ({ totp }) => {
      codes.push(await totp())
      if (codes.length === 1) throw new Error('The site failed.')
    },
  })
  const run = await runWorkflow(twice, {
    clock: 'fake',
    retry: true,
    now: new Date(60_000),
    browser: {},
    signIn: { totpSeed: seed },
  })
  expect(run).toMatchObject({ status: 'succeeded', attempts: 2 })
  // RFC 6238 with this seed: the periods from 60 s and 90 s.
  expect(codes).toEqual(['359152', '969429'])
})

test('a check loads one page, calls no run, and says whether there is a session', async () => {
  const { shop, browser } = fakeShop()
  const check = { browser, signIn: { check: true } }
  expect(await runWorkflow(signIn, check)).toMatchObject({ status: 'signedOut', logs: [] })
  shop.signedIn = true
  expect(await runWorkflow(signIn, check)).toMatchObject({ status: 'succeeded', logs: [] })
  expect(shop.loads).toBe(2)
})

test('a sign-in without its session fails, and totp() without a seed', async () => {
  const { shop, browser } = fakeShop()
  const forgetful = defineWorkflow({ ...signIn, run: async ({ browser }) => void (await browser()) })
  expect(await runWorkflow(forgetful, { browser })).toMatchObject({ error: { name: 'StillSignedOut' } })
  shop.signedIn = true
  expect(await runWorkflow(forgetful, { browser })).toMatchObject({ status: 'succeeded' })
  const message = 'The sign-in of the browser context has no TOTP seed.'
  expect(await runWorkflow(signIn, { browser })).toMatchObject({ status: 'failed', error: { message } })
})
