/** The test kit for authors: runs that wait. Each wait executes the code before it again, as a worker does. */
import { readFile } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { after, runWorkflow } from 'execution-service/testing'
import { CalledRunFailed, defineWorkflow } from 'execution-service/workflow'
import { expect, expectTypeOf, test } from 'vitest'

const common = { id: 'refund', version: '1.0.0', title: 'Refund', variables: { type: 'object' }, output: {} } as const
const approval = {
  schema: {
    type: 'object',
    required: ['approved'],
    properties: { approved: { type: 'boolean' }, note: { type: 'string', default: 'none' } },
  },
  title: 'Refund?',
} as const
const day = 86_400

const refund = defineWorkflow({
  ...common,
  waits: { approval },
  async run({ sleep, step, waitFor, call, log }) {
    log('part')
    const amount = await step('amount', () => 40)
    await sleep('cool-off', { days: 3 })
    const answer = await waitFor('approval', {
      title: `Refund ${amount} €?`,
      timeoutSeconds: 7 * day,
      show: { amount },
    })
    if (!answer.ok) return { refunded: false, at: new Date().toISOString() }
    const { total } = await call<{ total: number }>('bill', 'invoice', { amount })
    await sleep('until', { until: new Date(Date.now() + 20 * day * 1000) })
    return { total, note: answer.value.note, at: new Date().toISOString() }
  },
})

test('a run of a month with an answer and a call ends within the time of a test, in parts of one attempt', async () => {
  const run = await runWorkflow(refund, {
    clock: 'fake',
    now: new Date('2026-03-01T00:00:00Z'),
    answers: { approval: after(5 * day, { approved: true }) },
    calls: { invoice: ({ amount }: { amount: number }) => after(2 * day, { total: amount + 2 }) },
  })
  expect(run).toMatchObject({ status: 'succeeded', attempts: 1 })
  expect(run.output).toEqual({ total: 42, note: 'none', at: '2026-03-31T00:00:00.000Z' })
  expect(run.logs).toHaveLength(5)
  expect(run.waits.map(({ name, kind, status, seconds }) => [name, kind, status, seconds / day])).toEqual([
    ['cool-off', 'sleep', 'completed', 3],
    ['approval', 'answer', 'completed', 5],
    ['bill', 'run', 'completed', 2],
    ['until', 'sleep', 'completed', 20],
  ])
  expect(run.waits[1]).toMatchObject({
    title: 'Refund 40 €?',
    shown: { amount: 40 },
    value: { approved: true, note: 'none' },
  })
  expect(run.waits[2]).toMatchObject({ workflowId: 'invoice', variables: { amount: 40 }, value: { total: 42 } })
  const steps = run.events.filter(({ type }) => type === 'step').map(({ data }) => `${data.name} ${data.state}`)
  expect(steps.slice(0, 6)).toEqual([
    'amount started',
    'amount finished',
    'cool-off started',
    'amount reused',
    'cool-off finished',
    'approval started',
  ])
  expect(run.finishedSteps).toMatchObject({ amount: 40, approval: { ok: true } })
})

test('no answer in time, and an answer after the time, let the wait time out', async () => {
  for (const late of [undefined, after(8 * day, { approved: true }), () => undefined]) {
    const run = await runWorkflow(refund, { clock: 'fake', answers: { approval: late } })
    expect(run.output).toEqual({ refunded: false, at: '2026-01-11T00:00:00.000Z' })
    expect(run.waits[1]).toMatchObject({ status: 'timedOut', seconds: 7 * day, value: null })
  }
})

test('with the real clock, waits take no time either', async () => {
  const run = await runWorkflow(refund, {
    answers: { approval: ({ title }) => ({ approved: title === 'Refund 40 €?' }) },
    calls: { invoice: () => ({ total: 1 }) },
  })
  expect(run).toMatchObject({ status: 'succeeded', output: { total: 1 } })
  expect(run.waits.map(({ status }) => status)).toEqual(['completed', 'completed', 'completed', 'completed'])
})

test('an answer has the type of its wait, and must match its schema', async () => {
  // @ts-expect-error: the answer is an object.
  const wrong = runWorkflow(refund, { answers: { approval: 'yes' } })
  await expect(wrong).rejects.toThrow('The answer "approval" does not match its schema: must be object.')
  // @ts-expect-error: the definition declares no such wait.
  const unknown = runWorkflow(refund, { answers: { aproval: { approved: true } } })
  await expect(unknown).rejects.toThrow('The workflow declares no wait "aproval", which the test answers.')
})

test('a wait that the test does not answer, and a call without an output, are errors that name the option', async () => {
  await expect(runWorkflow(refund)).rejects.toThrow(
    'The run waits for the answer "approval", which the test does not give',
  )
  const uncalled = runWorkflow(refund, { answers: { approval: { approved: true } } })
  await expect(uncalled).rejects.toThrow('The run calls the workflow "invoice", whose output the test does not give')
  const unused = runWorkflow(refund, { answers: { approval: undefined }, calls: { invoice: () => 1 } })
  await expect(unused).rejects.toThrow('The run does not call the workflow "invoice", for which the test gives a fake.')
})

test('a race has the same winner in each later part, and the losing wait is cancelled when the run ends', async () => {
  const winners: string[] = []
  const race = defineWorkflow({
    ...common,
    waits: { approval },
    async run({ sleep, waitFor }) {
      const winner = await Promise.race([
        waitFor('approval').then(() => 'answer'),
        sleep('limit', { hours: 1 }).then(() => 'limit'),
      ])
      winners.push(winner)
      await sleep('later', { days: 2 })
      return winner
    },
  })
  const slow = await runWorkflow(race, { answers: { approval: after(7200, { approved: true }) } })
  expect(slow.output).toBe('limit')
  // The late answer, which the run no longer awaits, starts a part as well.
  expect(winners).toEqual(['limit', 'limit', 'limit'])
  const quick = await runWorkflow(race, { answers: { approval: { approved: true } } })
  expect(quick.output).toBe('answer')
  const open = await runWorkflow(race, { answers: { approval: undefined } })
  expect(open.waits.map(({ name, status }) => [name, status])).toEqual([
    ['approval', 'cancelled'],
    ['limit', 'completed'],
    ['later', 'completed'],
  ])
})

test('many calls at once end in one part, and a call that fails has the error of its run', async () => {
  const many = defineWorkflow({
    ...common,
    async run({ call, log }) {
      log('part')
      const calls = Array.from({ length: 500 }, (_, index) => call<number>(`child-${index}`, 'double', { index }))
      const failure = await call('failing', 'broken').catch((error: unknown) => error)
      expect(failure).toBeInstanceOf(CalledRunFailed)
      const sum = (await Promise.all(calls)).reduce((total, value) => total + value, 0)
      return { sum, message: (failure as Error).message }
    },
  })
  const run = await runWorkflow(many, {
    calls: {
      double: ({ index }) => index * 2,
      broken: () => {
        throw new TypeError('no funds')
      },
    },
  })
  expect(run.output).toEqual({
    sum: 249_500,
    message: expect.stringMatching(/^Run \S+, called as "failing", has ended as failed: TypeError: no funds$/),
  })
  expect(run.logs).toHaveLength(2)
})

test('time that a run waits does not count for its time limit, and a run can be cancelled while it waits', async () => {
  const limited = defineWorkflow({
    ...common,
    timeLimitSeconds: 10,
    async run({ sleep, signal }) {
      await sleep('first', { days: 1 })
      await sleep('second', { days: 1 })
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    },
  })
  const run = await runWorkflow(limited, { clock: 'fake' })
  expect(run).toMatchObject({ status: 'timedOut', attempts: 1 })
  const cancelled = await runWorkflow(limited, { clock: 'fake', cancelAfterSeconds: 1.5 * day })
  expect(cancelled).toMatchObject({ status: 'cancelled' })
  expect(cancelled.waits.map(({ status, seconds }) => [status, seconds / day])).toEqual([
    ['completed', 1],
    ['cancelled', 0.5],
  ])
})

test('the fake clock gives one result, 200 times, for many waits and for work that is no timer', async () => {
  const polls = defineWorkflow({
    ...common,
    timeLimitSeconds: 60,
    async run({ sleep, step }) {
      for (let poll = 0; poll < 12; poll += 1) {
        await step(`poll ${poll}`, () => poll)
        await sleep(`pause ${poll}`, { hours: 1 })
      }
      // As many turns of the event loop as 100 waits take.
      for (let turn = 0; turn < 90; turn += 1) await nextTurn()
      return Date.now()
    },
  })
  const works = [() => crypto.subtle.digest('SHA-256', new Uint8Array(8e6)), () => readFile(import.meta.filename)]
  const races = works.map((work) => {
    const late = () => new Promise((resolve) => setTimeout(resolve, 30_000, 'late'))
    return defineWorkflow({ ...common, run: () => Promise.race([work().then(() => 'work'), late()]) })
  })
  const results = new Set<unknown>()
  for (let count = 0; count < 200; count += 1) {
    results.add((await runWorkflow(polls, { clock: 'fake' })).output)
    if (count % 20 === 0) for (const race of races) results.add((await runWorkflow(race, { clock: 'fake' })).output)
  }
  expect([...results]).toEqual([Date.parse('2026-01-01T12:00:00Z'), 'work'])
})

test('an attempt after a failure repeats the waits of the one before', async () => {
  const failing = defineWorkflow({
    ...common,
    retry: { maxAttempts: 2 },
    async run({ sleep, attempt }) {
      await sleep('pause', { days: 1 })
      if (attempt === 1) throw new Error('The first attempt fails.')
      return attempt
    },
  })
  const run = await runWorkflow(failing, { retry: true, clock: 'fake' })
  expect(run).toMatchObject({ status: 'succeeded', output: 2, attempts: 2 })
  expect(run.waits).toHaveLength(1)
})

test('an undeclared wait and a wait of more than 366 days fail with the reason', async () => {
  const undeclared = defineWorkflow({ ...common, run: ({ waitFor }) => waitFor('approval' as never) })
  expect((await runWorkflow(undeclared)).error).toEqual({
    name: 'TypeError',
    message: 'The workflow declares no wait "approval": name it in the `waits` of its definition.',
  })
  const long = defineWorkflow({ ...common, run: ({ sleep }) => sleep('long', { days: 400 }) })
  expect((await runWorkflow(long)).error?.name).toBe('RangeError')
})

test('secrets are masked in what a wait shows, and in answers', async () => {
  const secret = defineWorkflow({
    ...common,
    variables: { type: 'object', properties: { pin: { type: 'string', writeOnly: true } } },
    waits: { code: { schema: { type: 'object', properties: { code: { type: 'string', writeOnly: true } } } } },
    async run({ variables, waitFor }) {
      const answer = await waitFor('code', { title: `With ${variables.pin}`, show: { pin: variables.pin } })
      expectTypeOf(answer).toExtend<{ ok: boolean }>()
      return answer.ok ? (answer.value.code?.length ?? 0) : 0
    },
  })
  const run = await runWorkflow(secret, { variables: { pin: 'hunter22' }, answers: { code: { code: '123456' } } })
  expect(run).toMatchObject({ status: 'succeeded', output: 6 })
  expect(run.waits[0]).toMatchObject({
    title: 'With ********',
    shown: { pin: '********' },
    value: { code: '********' },
  })
})

test('secrets of an answer are masked in what the test sees of the run', async () => {
  const schema = {
    type: 'object',
    required: ['pin'],
    properties: { pin: { type: 'string', writeOnly: true } },
  } as const
  const workflow = defineWorkflow({
    ...common,
    waits: { code: { schema }, stop: { schema: { type: 'boolean' } } },
    async run({ waitFor, log }) {
      const answer = await waitFor('code')
      const { pin } = answer.ok ? answer.value : { pin: '' }
      log(`The pin is ${pin}.`)
      await waitFor('stop', { title: `Stop ${pin}?` })
      return { pin, length: pin.length }
    },
  })
  const run = await runWorkflow(workflow, { answers: { code: { pin: 'hush-4711' }, stop: true } })
  expect(run.output).toEqual({ pin: '********', length: 9 })
  expect(JSON.stringify([run.logs, run.waits])).not.toContain('hush-4711')
})
