/** Does what authors may do, in many ways: each must look the same in a test and in the service. */
import { defineWorkflow, NonRetryableError, type RunContext } from 'execution-service/workflow'

interface Variables {
  how: string
  password?: string
  /** Attempts that fail. */
  failures?: number
}

type Act = (context: RunContext<Variables>) => unknown

const deep = (levels: number): unknown => (levels === 0 ? 'bottom' : [deep(levels - 1)])

const acts = {
  report({ log, progress }) {
    log('plain')
    log('severe', 'error')
    log('of an unknown level', 'fatal' as never)
    log({ of: 'an object' } as never)
    log('x'.repeat(9000))
    log('\ud83d half a pair')
    progress(12.5)
    progress(-4, 'below')
    progress(400, 'above')
    progress(Number.NaN, 'no number')
    progress('7' as never, 8 as never)
    // biome-ignore-start lint/suspicious/noConsole: the run's log contains it.
    console.log('%s of %d', 'console', 3, { nested: { deeply: [1] } })
    console.warn('warned')
    console.debug('debugged')
    // biome-ignore-end lint/suspicious/noConsole: the run's log contains it.
    return null
  },
  async steps({ step, attempt, variables: { failures = 0 } }) {
    const results = [
      await step('date', () => new Date(0)),
      await step('nothing', () => undefined),
      await step('members', () => ({ kept: 1, dropped: undefined, infinite: Number.POSITIVE_INFINITY })),
      await step('attempt', async () => attempt),
    ]
    await step('fails', () => {
      throw new TypeError('not this time')
    }).catch(() => {})
    if (attempt <= failures) throw new RangeError(`Attempt ${attempt} fails.`)
    results.push(await step('last', () => attempt))
    return results
  },
  async failingStep({ step, attempt, variables: { failures = 0 } }) {
    await step('first', () => attempt)
    return step('second', () => {
      if (attempt <= failures) throw new Error(`Step failed in attempt ${attempt}.`)
      return attempt
    })
  },
  sameName: async ({ step }) => [await step('one', () => 1), await step('one', () => 2)],
  longName: ({ step }) => step('n'.repeat(201), () => 1),
  noName: ({ step }) => step(undefined as never, () => 1),
  largeResult: ({ step }) => step('large', () => 'x'.repeat(1024 * 1024)),
  noJson: ({ step }) => step('big', () => 1n),
  cyclic: ({ step }) => {
    const value: unknown[] = []
    value.push(value)
    return step('cyclic', () => value)
  },
  async manyLargeResults({ step }) {
    for (let index = 0; index < 20; index += 1) await step(`${index}`, () => 'x'.repeat(1024 * 1024 - 10))
  },
  async artifacts({ artifact }) {
    await artifact('notes.txt', 'first')
    await artifact('page.PDF', new Uint8Array([1, 2, 3]))
    await artifact('notes.txt', 'second')
    await artifact('data', '{}', { mediaType: 'application/json' })
    await Promise.all([artifact('a.csv', 'a'), artifact('b.csv', 'b')])
    return 'stored'
  },
  artifactName: ({ artifact }) => artifact('../up', 'x'),
  artifactType: ({ artifact }) => artifact('a.html', 'x', { mediaType: 'text/html' as never }),
  artifactSize: ({ artifact }) => artifact('large', new Uint8Array(10 * 1024 * 1024 + 1)),
  async artifactCount({ artifact }) {
    for (let index = 0; index <= 20; index += 1) await artifact(`${index}.txt`, 'x')
  },
  async artifactWrites({ artifact }) {
    for (let index = 0; index <= 100; index += 1) await artifact('same.txt', `${index}`)
  },
  throwFinal: ({ step }) =>
    step('final', () => {
      throw new NonRetryableError('There is no such customer.')
    }),
  throwText: () => {
    throw 'only text'
  },
  throwObject: () => {
    throw { code: 7 }
  },
  throwNothing: () => {
    throw undefined
  },
  throwNamed: () => {
    throw Object.assign(new Error('x'.repeat(9000)), { name: 'N'.repeat(300) })
  },
  throwHostile: () => {
    throw Object.defineProperty(new Error('hidden'), 'message', {
      get() {
        throw new Error('never shown')
      },
    })
  },
  returnNothing: () => undefined,
  returnBigInt: () => 10n,
  returnLarge: () => 'x'.repeat(1024 * 1024),
  returnDeep: () => deep(65),
  returnJson: () => ({ at: new Date(0), toJSON: undefined, list: [undefined, () => 1] }),
  async secret({ variables: { password = '' }, log, progress, step, artifact }) {
    log(`The password is ${password}.`)
    log(Buffer.from(`user:${password}`).toString('base64'))
    progress(5, encodeURIComponent(password))
    await step(`with ${password}`, () => password)
    await artifact('secret.txt', password)
    return { [password]: [password, password.length] }
  },
  secretError: ({ variables: { password } }) => {
    throw new Error(`${password} was refused`)
  },
  identity: ({ runId, attempt, signal }) => [
    typeof runId,
    runId.length,
    attempt,
    signal.aborted,
    signal.reason ?? null,
  ],
  unchanged: (context) => {
    context.variables.how = 'changed'
    return context.variables
  },
} satisfies Record<string, Act>

export default defineWorkflow({
  id: 'conform',
  version: '1.0.0',
  title: 'Conform',
  variables: {
    type: 'object',
    additionalProperties: false,
    required: ['how'],
    properties: {
      how: { enum: Object.keys(acts) },
      password: { type: 'string', minLength: 4, writeOnly: true },
      failures: { type: 'integer', default: 0 },
      when: { type: 'string', format: 'date-time' },
      list: { type: 'array', items: { type: 'object', required: ['id'], properties: { size: { default: 1 } } } },
    },
  },
  output: {},
  retry: { maxAttempts: 3, backoffSeconds: 0.001, backoffFactor: 1 },
  run: (context) => (acts as Record<string, Act>)[context.variables.how as string]?.(context as RunContext<Variables>),
})

export const ways = Object.keys(acts)
