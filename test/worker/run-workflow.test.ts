/** The test kit for authors: fake steps, retries, clock and browser. test/worker/conformance.slow.test.ts compares it with workers. */
import { setTimeout as delay } from 'node:timers/promises'
import { DeclaredValuesInvalid, runWorkflow, VariablesInvalid } from 'execution-service/testing'
import { defineWorkflow, NonRetryableError } from 'execution-service/workflow'
import { afterEach, expect, test, vi } from 'vitest'

const charge = vi.fn(() => ({ amount: 12 }))
afterEach(() => charge.mockClear())

const order = defineWorkflow({
  id: 'order',
  version: '1.0.0',
  title: 'Charge an order',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['orderId'],
    properties: { orderId: { type: 'integer' }, currency: { type: 'string', default: 'EUR' } },
  },
  output: {
    type: 'object',
    required: ['paid'],
    properties: { paid: { type: 'string' } },
    additionalProperties: false,
  },
  retry: { maxAttempts: 3, backoffSeconds: 60 },
  async run({ variables, step, attempt, progress }) {
    const { amount } = await step('charge', charge)
    progress(50, 'charged')
    await step('notify', () => {
      if (attempt < 3) throw new Error(`Mail server refused attempt ${attempt}.`)
    })
    return { paid: `${amount} ${variables.currency}` }
  },
})

test('a fake replaces the function of its step, and its result passes through JSON', async () => {
  const fakes = { charge: { amount: 7, at: new Date(0) }, notify: () => undefined }
  const run = await runWorkflow(order, { variables: { orderId: 1 }, steps: fakes })
  expect(run).toMatchObject({ status: 'succeeded', output: { paid: '7 EUR' }, attempts: 1, error: null })
  expect(run.finishedSteps).toEqual({ charge: { amount: 7, at: '1970-01-01T00:00:00.000Z' }, notify: null })
  expect(run.progress).toEqual([{ percent: 50, message: 'charged' }])
  expect(charge).not.toHaveBeenCalled()
})

test('a fake that throws fails its step, and the cause keeps its stack', async () => {
  const failure = new Error('Card refused.')
  const steps = {
    charge: () => {
      throw failure
    },
  }
  const run = await runWorkflow(order, { variables: { orderId: 1 }, steps })
  expect(run).toMatchObject({ status: 'failed', reason: 'workflowFailed', output: null })
  expect(run.error).toEqual({ name: 'Error', message: 'Card refused.' })
  expect(run.cause).toBe(failure)
  expect(run.steps).toEqual([{ name: 'charge', attempt: 1, state: 'failed' }])
})

test('a NonRetryableError of a step ends the retries, unless another error is thrown because of it', async () => {
  const cause = new RangeError('404')
  const refuse = () => {
    throw new NonRetryableError('The card is stolen.', { cause })
  }
  const run = await runWorkflow(order, { variables: { orderId: 1 }, retry: true, steps: { charge: refuse } })
  expect(run).toMatchObject({ status: 'failed', reason: 'nonRetryable', attempts: 1 })
  expect(run.error).toEqual({ name: 'NonRetryableError', message: 'The card is stolen.' })
  const wrap = () => {
    throw new Error('The shop is closed.', { cause: new NonRetryableError('No.') })
  }
  const wrapped = { variables: { orderId: 1 }, retry: true, clock: 'fake', steps: { charge: wrap } } as const
  expect(await runWorkflow(order, wrapped)).toMatchObject({ reason: 'workflowFailed', attempts: 3 })
})

test('a fake for a step that the workflow does not have is an error that lists its steps', async () => {
  const running = runWorkflow(order, { variables: { orderId: 1 }, attempt: 3, steps: { payment: 1 } })
  await expect(running).rejects.toThrow(
    'The run has no step "payment", for which the test gives a fake. Its steps: "charge", "notify".',
  )
})

test('retries follow the policy, reuse finished steps, and wait on the fake clock', async () => {
  const run = await runWorkflow(order, { variables: { orderId: 1 }, retry: true, clock: 'fake' })
  expect(run).toMatchObject({ status: 'succeeded', attempts: 3 })
  expect(charge).toHaveBeenCalledTimes(1)
  expect(run.steps.map(({ name, attempt, state }) => `${attempt} ${name} ${state}`)).toEqual([
    '1 charge finished',
    '1 notify failed',
    '2 charge reused',
    '2 notify failed',
    '3 charge reused',
    '3 notify finished',
  ])
})

test('a later attempt continues with the results of an earlier one', async () => {
  const first = await runWorkflow(order, { variables: { orderId: 1 } })
  expect(first).toMatchObject({ status: 'failed', attempts: 1 })
  const { finishedSteps } = first
  const later = await runWorkflow(order, { variables: { orderId: 1 }, attempt: 3, finishedSteps })
  expect(later).toMatchObject({ status: 'succeeded', attempts: 3 })
  expect(charge).toHaveBeenCalledTimes(1)
})

test('variables are refused with the errors of the 400 response', async () => {
  const running = runWorkflow(order, { variables: { orderId: 'one', more: 1 } as never })
  await expect(running).rejects.toThrow(VariablesInvalid)
  await expect(running).rejects.toMatchObject({
    errors: [
      { pointer: '/variableData/more', detail: 'is not in the schema' },
      { pointer: '/variableData/orderId', detail: 'must be integer' },
    ],
  })
  const nul = runWorkflow(order, { variables: { orderId: 1, currency: '\0' } })
  await expect(nul).rejects.toMatchObject({ errors: [{ pointer: '/variableData/currency' }] })
})

test('secrets and settings are typed, checked and masked, and a missing one is an error that names it', async () => {
  const shop = defineWorkflow({
    ...{ id: 'shop', version: '1.0.0', title: 'Shop' },
    variables: { type: 'object' },
    output: { type: 'object' },
    secrets: ['SHOP_TOKEN'],
    settings: { LIMIT: { type: 'integer' } },
    async run({ secrets, settings, log }) {
      log(`The token is ${secrets.SHOP_TOKEN}.`)
      // @ts-expect-error: the definition does not declare it.
      return { next: settings.LIMIT + 1, other: secrets.OTHER ?? null }
    },
  })
  const secrets = { SHOP_TOKEN: 'canary-token' }
  const settings = { LIMIT: 2 }
  const result = await runWorkflow(shop, { secrets, settings })
  expect(result).toMatchObject({ status: 'succeeded', output: { next: 3, other: null } })
  expect(result.logs).toEqual([{ level: 'info', message: 'The token is ********.' }])
  await expect(runWorkflow(shop, { settings })).rejects.toThrow(DeclaredValuesInvalid)
  await expect(runWorkflow(shop, { settings })).rejects.toThrow(
    'The workflow declares the secret SHOP_TOKEN: give it in the option `secrets` of the test. Its runs would wait.',
  )
  await expect(runWorkflow(shop, { secrets, settings: { LIMIT: 'many' } as never })).rejects.toThrow(
    'The setting LIMIT does not fit its schema',
  )
  const more = { ...secrets, OTHER: 'canary' }
  await expect(runWorkflow(shop, { secrets: more, settings })).rejects.toThrow('does not declare the secret OTHER')
})

const required = { id: 'wait', version: '1.0.0', title: 'Wait', variables: { type: 'object' }, output: {} } as const

test('with a fake clock a run of a day ends at once, and sees the time pass', async () => {
  const wait = defineWorkflow({
    ...required,
    timeLimitSeconds: 90_000,
    async run({ step }) {
      const times = [new Date().toISOString()]
      await delay(3_600_000)
      times.push(await step('later', () => new Date().toISOString()))
      await new Promise((resolve) => setTimeout(resolve, 23 * 3_600_000))
      return [...times, new Date().toISOString()]
    },
  })
  const run = await runWorkflow(wait, { clock: 'fake', now: new Date('2026-05-01T00:00:00Z') })
  expect(run.output).toEqual(['2026-05-01T00:00:00.000Z', '2026-05-01T01:00:00.000Z', '2026-05-02T00:00:00.000Z'])
  expect(Math.abs(Date.now() - performance.timeOrigin)).toBeLessThan(3_600_000)
})

test('a run ends at its time limit or when it is cancelled, also if it ignores its signal', async () => {
  const deaf = defineWorkflow({ ...required, timeLimitSeconds: 600, run: () => new Promise<void>(() => {}) })
  expect(await runWorkflow(deaf, { clock: 'fake' })).toMatchObject({ status: 'timedOut', reason: 'timeLimit' })
  const cancelled = { status: 'cancelled', reason: 'cancelRequested', output: null }
  expect(await runWorkflow(deaf, { clock: 'fake', cancelAfterSeconds: 5 })).toMatchObject(cancelled)
  const limited = defineWorkflow({
    ...required,
    timeLimitSeconds: 10,
    run: ({ signal }) => delay(AbortSignal.timeout(20_000).aborted ? 0 : 60_000, undefined, { signal }),
  })
  const run = await runWorkflow(limited, { clock: 'fake' })
  expect(run).toMatchObject({ status: 'timedOut', cause: { name: 'AbortError' } })
})

test('two runs cannot have a fake clock at once', async () => {
  const brief = defineWorkflow({ ...required, run: () => delay(1000) })
  const first = runWorkflow(brief, { clock: 'fake' })
  await expect(runWorkflow(brief, { clock: 'fake' })).rejects.toThrow('Another run has a fake clock: await it')
  expect(await first).toMatchObject({ status: 'succeeded' })
})

const title = defineWorkflow({
  ...required,
  browser: true,
  output: { type: 'string' },
  async run({ browser }) {
    const page = await (await browser({ locale: 'fr' })).newPage()
    return page.title()
  },
})

test('a workflow with a browser uses the fake one of the test, and without it fails with an error that says so', async () => {
  const open = vi.fn(() => ({ newPage: () => ({ title: () => 'From the fake' }) }))
  expect(await runWorkflow(title, { browser: open })).toMatchObject({ output: 'From the fake' })
  expect(open).toHaveBeenCalledExactlyOnceWith({ locale: 'fr' })
  expect(await runWorkflow(title, { browser: open() })).toMatchObject({ output: 'From the fake' })
  const message = expect.stringContaining("set the option `browser` of runWorkflow to 'chromium'")
  expect(await runWorkflow(title)).toMatchObject({ status: 'failed', error: { name: 'BrowserUnavailable', message } })
})

test('an invalid definition is refused as the service refuses it', async () => {
  await expect(runWorkflow({ ...title, id: 'no spaces' })).rejects.toThrow(
    'The definition is not a valid workflow: id must be 1 to 128 letters, digits, dots, underscores and hyphens, and not only one or two dots.',
  )
})
