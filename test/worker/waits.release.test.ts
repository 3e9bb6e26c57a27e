/** Runs that call many others, and runs that start again from a step: what blocks nothing, what is refused, and what is reused. */
import { describe, expect, test } from 'vitest'
import { queueRun, type Test } from '../support/domain.ts'
import { writtenSnapshot } from '../support/snapshots.ts'
import { stores } from '../support/store-kinds.ts'
import { answer, describeEvents, openInstallation, startWorker, untilWaiting, waitForRun } from '../support/worker.ts'

const levels = 100
/** Thousands of attempts, also on a busy machine. */
const limits = { timeout: 300_000, interval: 50 }
const stepsMax = 10_000

const toModule = (expression: string) => `export default { run: async ({ variables, call }) => ${expression} }\n`

/** Two runs of it never execute at once. */
const limited = (expression: string) => ({
  module: toModule(expression),
  concurrency: { limit: 1, per: 'workflow' as const },
})

const square = `call('square ' + index, 'square', { index })`

const snapshot = writtenSnapshot({
  ...Object.fromEntries(
    Array.from({ length: levels }, (_, level) => [
      `level-${level}`,
      limited(`1 + (await call('next', 'level-${level + 1}'))`),
    ]),
  ),
  [`level-${levels}`]: limited('0'),
  // Calls itself, and says why it cannot any more.
  deep: limited(`variables.left === 0 ? 'bottom' : await call('next', 'deep', { left: variables.left - 1 })
    .catch((error) => { if (error.name === 'CallRefused') return error.message; throw error })`),
  many: limited(`await Promise.all(Array.from({ length: variables.count }, (_, index) => ${square}))`),
  square: { module: toModule('variables.index ** 2') },
  fails: {
    module: `export default { waits: { approval: { schema: {} } }, run: async ({ variables, step, waitFor, call }) => {
        const before = await step('before', () => crypto.randomUUID())
        const { value } = await waitFor('approval')
        const squared = await call('square', 'square', { index: value })
        await step('last', () => { if (variables.fails) throw new Error('It fails.') })
        return { before, value, squared }
      } }`,
    waits: { approval: { schema: {}, title: null, description: null } },
  },
})

describe.each(stores)('runs that call others, on $name', { timeout: limits.timeout + 60_000 }, (kind) => {
  test(`do not block each other on ${levels} levels, with a limit of one run for each workflow`, async (test) => {
    const { domain, principal } = await openInstallation(test, kind, snapshot)
    await startWorker(test, domain)
    const towers = await Promise.all([1, 2, 3].map(() => queueRun(domain, principal, { workflowId: 'level-0' })))
    const deep = await queueRun(domain, principal, { workflowId: 'deep', variables: { left: levels } })
    for (const run of towers)
      expect(await waitForRun(domain, run, limits)).toMatchObject({ output: levels, attempts: 1 })
    expect(await waitForRun(domain, deep, limits)).toMatchObject({ output: 'bottom', attempts: 1 })
  })

  test(`are refused below ${levels} levels`, async (test) => {
    const { domain, principal } = await openInstallation(test, kind, snapshot)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId: 'deep', variables: { left: levels + 1 } })
    const output = `Runs may call each other at most ${levels} levels deep.`
    expect(await waitForRun(domain, run, limits)).toMatchObject({ status: 'succeeded', output })
    expect(await domain.store.read.all('SELECT COUNT(*) AS count FROM runs', [])).toEqual([{ count: levels + 1 }])
  })

  test('get 1,000 outputs at once, from one run for each call', async (test) => {
    const { domain, principal } = await openInstallation(test, kind, snapshot)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId: 'many', variables: { count: 1000 } })
    const ended = await waitForRun(domain, run, limits)
    expect(ended).toMatchObject({ output: Array.from({ length: 1000 }, (_, index) => index ** 2), attempts: 1 })
    expect(ended.attemptHistory?.length).toBeLessThan(50)
    const children = await domain.store.read.all('SELECT id FROM runs WHERE parent_run_id = ?', [run.id])
    expect(children).toHaveLength(1000)
  })

  test('fail with a clear error beyond 10,000 steps and waits, before any run is called', async (test) => {
    const { domain, principal } = await openInstallation(test, kind, snapshot)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId: 'many', variables: { count: stepsMax + 1 } })
    const error = { name: 'RangeError', message: 'A run may have at most 10000 steps and waits.' }
    expect(await waitForRun(domain, run, limits)).toMatchObject({ status: 'failed', error })
    expect(await domain.store.read.all('SELECT COUNT(*) AS count FROM runs', [])).toEqual([{ count: 1 }])
  })
})

describe.each(stores)('a run that starts from a step, on $name', (kind) => {
  /** Fails after its waits, and starts again from the step. */
  async function rerun(test: Test, fromStep: string) {
    const { domain, principal } = await openInstallation(test, kind, snapshot)
    await startWorker(test, domain)
    const workflowId = 'fails'
    const first = await queueRun(domain, principal, { workflowId, variables: { fails: true } })
    await untilWaiting(domain, first, 'answer')
    await answer(domain, first, 'approval', 3)
    const failed = await waitForRun(domain, first)
    expect(failed).toMatchObject({ status: 'failed', error: { message: 'It fails.' } })
    const start = await domain.runs.readStart(failed, fromStep, principal, {})
    if ('refused' in start) throw new Error(start.refused)
    const again = await queueRun(domain, principal, { workflowId, rerunOf: failed.id, start })
    const called = () => domain.store.read.all('SELECT id FROM runs WHERE parent_run_id = ?', [again.id])
    return { domain, failed, again, called }
  }

  test('after its waits has the answer and the output of the called run at once', async (test) => {
    const { domain, failed, again, called } = await rerun(test, 'last')
    const { output, startedAt, finishedAt, attemptHistory } = await waitForRun(domain, again)
    expect(output).toEqual({ before: expect.any(String), value: 3, squared: 9 })
    expect(attemptHistory).toHaveLength(1)
    expect(Number(finishedAt) - Number(startedAt)).toBeLessThan(900)
    expect(await called()).toEqual([])
    const events = await describeEvents(domain, again)
    expect(events.filter((each) => each.includes('reused'))).toEqual([
      'step before reused',
      'step approval reused',
      'step square reused',
    ])
    expect(failed.id).not.toBe(again.id)
  })

  test('which is a call calls again, with the answer from before', async (test) => {
    const { domain, again, called } = await rerun(test, 'square')
    expect(await waitForRun(domain, again)).toMatchObject({ output: { value: 3, squared: 9 } })
    expect(await called()).toHaveLength(1)
  })

  test.each(['approval', 'before'])('which is or precedes a wait asks again: %s', async (fromStep) => {
    await using disposables = new AsyncDisposableStack()
    const test = { onTestFinished: (act: () => unknown) => void disposables.defer(async () => void (await act())) }
    const { domain, again, called } = await rerun(test as never, fromStep)
    await untilWaiting(domain, again, 'answer')
    await answer(domain, again, 'approval', 4)
    expect(await waitForRun(domain, again)).toMatchObject({ output: { value: 4, squared: 16 } })
    expect(await called()).toHaveLength(1)
  })
})
