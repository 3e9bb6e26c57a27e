/** A run that calls one other run keeps its process for a moment: the called run executes in its slot. */
import { describe, expect, test, vi } from 'vitest'
import type { Run } from '../../src/domain/runs/run.ts'
import { type Domain, queueRun } from '../support/domain.ts'
import { writtenSnapshot } from '../support/snapshots.ts'
import { stores } from '../support/store-kinds.ts'
import { waitLimits } from '../support/timeouts.ts'
import { describeEvents, openInstallation, startWorker, untilWaiting, waitForRun } from '../support/worker.ts'

const toModule = (code: string) => ({
  module: `const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
    export default { run: async ({ variables, step, call, attempt }) => { ${code} } }`,
})

const snapshot = writtenSnapshot({
  square: toModule('await pause(variables.ms ?? 0); return variables.number ** 2'),
  fails: toModule("throw new Error('It fails.')"),
  once: toModule("return call('one', 'square', variables)"),
  nested: toModule("return variables.left ? 1 + (await call('next', 'nested', { left: variables.left - 1 })) : 0"),
  // Its first attempt ends after the call.
  again: {
    ...toModule(`const outcome = await call('one', variables.callee, { number: 3 }).catch((error) => error.name)
      if (variables.stores) await step('after', () => 'done')
      if (attempt === 1 && variables.exits) process.exit(7)
      if (attempt === 1) throw new Error('The first attempt fails.')
      return outcome`),
    retry: { maxAttempts: 2, backoffSeconds: 0, backoffFactor: 1 },
  },
  twice: toModule("return (await call('a', 'square', { number: 2 })) + (await call('b', 'square', { number: 3 }))"),
  limited: { ...toModule('return 1'), concurrency: { limit: 1, per: 'workflow' as const } },
  callsLimited: toModule("return call('one', 'limited')"),
})

const childrenOf = async ({ store }: Domain, { id }: { id: string }) =>
  store.read.query.selectFrom('runs').selectAll().where('parent_run_id', '=', id).orderBy('id').execute()

describe.concurrent.each(stores)('a run that calls one run, on $name', (kind) => {
  const open = (test: Parameters<typeof openInstallation>[0]) => openInstallation(test, kind, snapshot)

  test('stays in its process while a short one executes', async (test) => {
    const { domain, principal } = await open(test)
    await startWorker(test, domain, { slots: 1 })
    const run = await queueRun(domain, principal, { workflowId: 'once', variables: { number: 4 } })
    const ended = await waitForRun(domain, run)
    expect(ended).toMatchObject({ output: 16, attempts: 1, attemptHistory: [{ outcome: 'succeeded' }] })
    expect(await describeEvents(domain, run)).toEqual([
      'queued (0)',
      'running (1)',
      'step one started',
      'step one finished',
      'succeeded (1)',
    ])
    const [child] = await childrenOf(domain, run)
    expect(child).toMatchObject({ status: 'succeeded', attempts: 1, parent_run_id: run.id })
    const called = (await domain.runs.get(principal.accountId, child?.id ?? '')) as Run
    expect(await describeEvents(domain, called)).toEqual(['queued (0)', 'running (1)', 'succeeded (1)'])
  })

  test('leaves its process while a longer one executes in its slot', async (test) => {
    const { domain, principal } = await open(test)
    await startWorker(test, domain, { slots: 1 })
    const run = await queueRun(domain, principal, { workflowId: 'once', variables: { number: 4, ms: 3000 } })
    await untilWaiting(domain, run, 'run')
    expect(await childrenOf(domain, run)).toMatchObject([{ status: 'running' }])
    const outcomes = [{ outcome: 'waiting' }, { outcome: 'succeeded' }]
    expect(await waitForRun(domain, run)).toMatchObject({ output: 16, attempts: 1, attemptHistory: outcomes })
  })

  test('gives its slot to no other run, and gets it back', async (test) => {
    const { domain, principal } = await open(test)
    await startWorker(test, domain, { slots: 1 })
    const run = await queueRun(domain, principal, { workflowId: 'once', variables: { number: 1, ms: 300 } })
    await vi.waitUntil(async () => (await childrenOf(domain, run)).length === 1, waitLimits)
    const other = await queueRun(domain, principal, { workflowId: 'square', variables: { number: 1 } })
    const { startedAt } = await waitForRun(domain, other)
    // The outcome of an attempt is stored when its slot is free.
    await waitForRun(domain, run)
    const [child] = await childrenOf(domain, run)
    expect(startedAt).toBeGreaterThanOrEqual(child?.finished_at ?? Number.NaN)
    const last = await queueRun(domain, principal, { workflowId: 'twice' })
    expect(await waitForRun(domain, last)).toMatchObject({ output: 13, attemptHistory: [{ outcome: 'succeeded' }] })
  })

  test('calls deeper than the worker has slots', async (test) => {
    const { domain, principal } = await open(test)
    await startWorker(test, domain, { slots: 2 })
    const runs = [1, 2, 3].map(() => queueRun(domain, principal, { workflowId: 'nested', variables: { left: 8 } }))
    for (const run of await Promise.all(runs)) expect(await waitForRun(domain, run)).toMatchObject({ output: 8 })
  })

  test.for([
    ['fails then', { callee: 'square' }, 9],
    ['stores a step and fails then', { callee: 'square', stores: true }, 9],
    ['ends its process then', { callee: 'square', exits: true }, 9],
    ['fails after the called run has failed', { callee: 'fails' }, 'CalledRunFailed'],
  ] as const)('gets the same outcome again if it %s', async ([, variables, output], test) => {
    const { domain, principal } = await open(test)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId: 'again', variables })
    expect(await waitForRun(domain, run)).toMatchObject({ status: 'succeeded', output, attempts: 2 })
    expect(await childrenOf(domain, run)).toHaveLength(1)
    const events = await describeEvents(domain, run)
    expect(events.filter((each) => each === 'step one finished')).toHaveLength(1)
  })

  test('is cancelled with it', async (test) => {
    const { domain, principal } = await open(test)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId: 'once', variables: { number: 1, ms: 30_000 } })
    await vi.waitUntil(async () => (await childrenOf(domain, run)).length === 1, waitLimits)
    await domain.runs.cancel(principal.accountId, run.id)
    expect(await waitForRun(domain, run)).toMatchObject({ status: 'cancelled' })
    const hasEnded = async () => (await childrenOf(domain, run)).every(({ status }) => status === 'cancelled')
    await vi.waitUntil(hasEnded, waitLimits)
  })

  test('is suspended if a limit applies to the called run', async (test) => {
    const { domain, principal } = await open(test)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId: 'callsLimited' })
    const outcomes = [{ outcome: 'waiting' }, { outcome: 'succeeded' }]
    expect(await waitForRun(domain, run)).toMatchObject({ output: 1, attemptHistory: outcomes })
  })
})
