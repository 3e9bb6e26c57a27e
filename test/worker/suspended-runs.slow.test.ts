/** Runs that wait leave their worker, and go on exactly once when their wait has ended. */
import { describe, expect, test, vi } from 'vitest'
import { findDueWaits } from '../../src/domain/queue/waits.ts'
import { queueDepth } from '../../src/domain/statistics/queue-depth.ts'
import { RunStatistics } from '../../src/domain/statistics/run-statistics.ts'
import { readBodies } from '../../src/domain/webhooks/webhook-deliveries.ts'
import { endWaits } from '../../src/storage/runs/wait-statements.ts'
import { type Domain, queueRun } from '../support/domain.ts'
import { stores } from '../support/store-kinds.ts'
import { waitLimits } from '../support/timeouts.ts'
import { answer, describeEvents, openInstallation, startWorker, untilWaiting, waitForRun } from '../support/worker.ts'

const workflowId = 'waits'

/** Ends the waits that are due by a clock that is ahead. */
async function passTime({ store }: Domain, seconds: number): Promise<void> {
  const now = Date.now() + seconds * 1000
  await store.write(async (tx) => endWaits(tx, await findDueWaits(tx, now), now))
  store.notify('queue')
}

describe.concurrent.each(stores)('a run that waits, on $name', (kind) => {
  test('leaves its worker, and goes on in another part of the same attempt', async (test) => {
    const { domain, principal } = await openInstallation(test, kind)
    await startWorker(test, domain, { slots: 1 })
    const run = await queueRun(domain, principal, { workflowId, variables: { how: 'sleep', seconds: 86_400 } })
    const waiting = await untilWaiting(domain, run, 'sleep')
    expect(waiting).toMatchObject({ status: 'waiting', reason: 'waiting', attempts: 1 })
    // The only slot is free.
    const other = await queueRun(domain, principal, { workflowId, variables: { how: 'child', count: 4 } })
    expect(await waitForRun(domain, other)).toMatchObject({ output: 8 })
    const { store } = domain
    await store.write((tx) => tx.all('UPDATE runs SET started_at = started_at - 86400000 WHERE id = ?', [run.id]))
    await passTime(domain, 86_400)
    const ended = await waitForRun(domain, run)
    // Waiting is no part of the durations of statistics.
    const { workflows } = await new RunStatistics(store).history(principal.accountId, '1h')
    expect(workflows).toMatchObject([{ workflowId, counts: { succeeded: 2 } }])
    expect(workflows[0]?.p95).toBeLessThan(60_000)
    expect(ended).toMatchObject({ status: 'succeeded', output: ['once', 'later'], attempts: 1 })
    expect(ended.attemptHistory?.map(({ number, outcome }) => [number, outcome])).toEqual([
      [1, 'waiting'],
      [1, 'succeeded'],
    ])
    expect(await describeEvents(domain, run)).toEqual([
      'queued (0)',
      'running (1)',
      'info: part of attempt 1',
      'step before started',
      'step before finished',
      'step pause started',
      'waiting (1, waiting)',
      'running (1)',
      'info: part of attempt 1',
      'step before reused',
      'step pause finished',
      'step after started',
      'step after finished',
      'succeeded (1)',
    ])
  })

  test('gets its answer, also one that came before', async (test) => {
    const { domain, principal } = await openInstallation(test, kind)
    const early = await queueRun(domain, principal, { workflowId, variables: { how: 'answer' } })
    expect(await answer(domain, early, 'approval', { approved: true })).toMatchObject({ kind: 'answered' })
    expect(await answer(domain, early, 'approval', { approved: true })).toMatchObject({ kind: 'repeated' })
    expect(await answer(domain, early, 'approval', { approved: false })).toMatchObject({ kind: 'otherAnswer' })
    await startWorker(test, domain)
    const output = { answer: { ok: true, value: { approved: true } } }
    expect(await waitForRun(domain, early)).toMatchObject({ output, attemptHistory: [{ outcome: 'succeeded' }] })
    const late = await queueRun(domain, principal, { workflowId, variables: { how: 'answer' } })
    await untilWaiting(domain, late, 'answer')
    await answer(domain, late, 'approval', { approved: true })
    expect(await waitForRun(domain, late)).toMatchObject({ output, attempts: 1 })
    expect(await answer(domain, late, 'stop', true)).toMatchObject({ kind: 'ended' })
  })

  test('gets a secret of an answer, which is masked wherever it is shown, also in later parts', async (test) => {
    const { domain, principal } = await openInstallation(test, kind)
    await startWorker(test, domain)
    const value = { pin: 'hush & 4711', hint: 'spring' }
    for (const depth of [0, 1]) {
      const run = await queueRun(domain, principal, { workflowId, variables: { how: 'secret', depth } })
      const by = { link: 'test', address: null }
      await domain.waits.answer(principal.accountId, run.id, 'code', structuredClone(value), by)
      await vi.waitUntil(async () => (await describeEvents(domain, run)).includes('step stop started'), waitLimits)
      await domain.waits.answer(principal.accountId, run.id, 'stop', true, by)
      const ended = await waitForRun(domain, run)
      if (depth > 0) expect(ended.error?.message).toBe('Wrong: ********')
      else expect(ended.output).toEqual({ answer: { ok: true, value: { ...value, pin: '********' } }, length: 11 })
      const events = await describeEvents(domain, run)
      expect(new Set(events.filter((each) => each.includes(' is ')))).toEqual(
        new Set(['info: The pin is ********.', 'info: After another wait it is ********.']),
      )
      const waits = await domain.waits.latestOfRun(run, 10)
      expect(waits.map(({ title, shown, value }) => ({ title, shown, value }))).toEqual([
        { title: null, shown: null, value: { ...value, pin: '********' } },
        { title: 'Stop ********?', shown: { pin: '********' }, value: true },
      ])
    }
    expect((await kind.contents(domain.location)).includes('hush & 4711')).toBe(false)
  })

  test('is an event of webhooks when it reaches a wait for an answer', async (test) => {
    const { domain, principal } = await openInstallation(test, kind)
    const endpoint = { url: 'https://example.com/hooks', events: ['run.waiting'], workflowIds: [workflowId], tags: [] }
    await domain.webhookEndpoints.create(principal.accountId, endpoint as never, { kind: 'user', id: null, name: 'me' })
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId, variables: { how: 'answer' } })
    await untilWaiting(domain, run, 'answer')
    const { read } = domain.store
    const deliveries = await read.query.selectFrom('webhook_deliveries').selectAll().execute()
    expect(deliveries).toMatchObject([
      { event: 'run.waiting', run_id: run.id, wait_name: 'approval', status: 'pending' },
    ])
    const [body] = [...(await readBodies(read, deliveries)).values()]
    expect(JSON.parse(body ?? '')).toMatchObject({
      type: 'run.waiting',
      data: {
        runId: run.id,
        status: 'waiting',
        wait: { name: 'approval', title: 'Refund?', deadline: expect.any(String) },
      },
    })
  })

  test('learns that no answer came in time', async (test) => {
    const { domain, principal } = await openInstallation(test, kind)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId, variables: { how: 'answer', seconds: 1 } })
    expect(await waitForRun(domain, run)).toMatchObject({ output: { answer: { ok: false } } })
  })

  test('repeats the winner of a race, although the loser has an answer by then', async (test) => {
    const { domain, principal } = await openInstallation(test, kind)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId, variables: { how: 'race', seconds: 60 } })
    await untilWaiting(domain, run, 'answer')
    await passTime(domain, 60)
    const afterLimit = async () => (await describeEvents(domain, run)).includes('step limit finished')
    await vi.waitUntil(afterLimit, waitLimits)
    await answer(domain, run, 'approval', { approved: true })
    await answer(domain, run, 'stop', true)
    await passTime(domain, 100)
    expect(await waitForRun(domain, run)).toMatchObject({ output: { winner: 'limit', rest: 2 } })
  })

  test('gets the outputs of the runs that it calls, one run for each call', async (test) => {
    const { domain, principal } = await openInstallation(test, kind)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId, variables: { how: 'call', count: 20 } })
    const { output, attemptHistory } = await waitForRun(domain, run)
    expect(output).toEqual(Array.from({ length: 20 }, (_, index) => index * 2))
    expect(attemptHistory?.length).toBeLessThan(20)
    const children = await domain.store.read.all('SELECT id FROM runs WHERE parent_run_id = ?', [run.id])
    expect(children).toHaveLength(20)
  })

  test('gets the error of a run that it calls', async (test) => {
    const { domain, principal } = await openInstallation(test, kind)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId, variables: { how: 'failingCall' } })
    expect(await waitForRun(domain, run)).toMatchObject({ output: 'CalledRunFailed failed The child fails.' })
  })

  test('retries without waiting again', async (test) => {
    const { domain, principal } = await openInstallation(test, kind)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId, variables: { how: 'failAfterWait', seconds: 3 } })
    await untilWaiting(domain, run, 'sleep')
    await passTime(domain, 3)
    const ended = await waitForRun(domain, run)
    expect(ended).toMatchObject({ status: 'succeeded', output: 2, attempts: 2 })
    expect(ended.attemptHistory?.map(({ number, outcome }) => [number, outcome])).toEqual([
      [1, 'waiting'],
      [1, 'failed'],
      [2, 'succeeded'],
    ])
  })

  test('ends a sleep while a step executes', async (test) => {
    const { domain, principal } = await openInstallation(test, kind)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId, variables: { how: 'timeoutOfStep', seconds: 1 } })
    expect(await waitForRun(domain, run)).toMatchObject({ output: 'limit', attempts: 1 })
  })

  test('fails with a clear error for a wait that it cannot have', async (test) => {
    const { domain, principal } = await openInstallation(test, kind)
    await startWorker(test, domain)
    const undeclared = 'The workflow declares no wait "nothing": name it in the `waits` of its definition.'
    const refused = 'The call of workflow no-such-workflow is refused: workflowId names no workflow of this account.'
    for (const [how, name, message] of [
      ['undeclared', 'TypeError', undeclared],
      [
        'tooLong',
        'RangeError',
        'sleep("pause"): the time must be from 0 seconds to 366 days, and not 34560000 seconds.',
      ],
      ['unknownWorkflow', 'CallRefused', refused],
    ]) {
      const run = await queueRun(domain, principal, { workflowId, variables: { how } })
      expect(await waitForRun(domain, run)).toMatchObject({ status: 'failed', error: { name, message } })
    }
  })

  test('is refused beyond the limit of waiting runs, and is counted by what it waits for', async (test) => {
    const { domain, principal } = await openInstallation(test, kind)
    await startWorker(test, domain, { waitingRunsMax: 1 })
    const run = await queueRun(domain, principal, { workflowId, variables: { how: 'answer' } })
    await untilWaiting(domain, run, 'answer')
    const refused = await queueRun(domain, principal, { workflowId, variables: { how: 'answer' } })
    const message = 'The account has reached its limit of 1 waiting runs.'
    expect(await waitForRun(domain, refused)).toMatchObject({ error: { name: 'TooManyWaitingRuns', message } })
    const unlimited = {
      ofWorkflow: () => undefined,
      ofWorkflowInAccount: () => undefined,
      ofAccount: Number.POSITIVE_INFINITY,
    }
    const { waiting } = await queueDepth(domain.store.read, unlimited as never)
    expect(waiting).toEqual([{ workflowId, waitingFor: 'answer', count: 1 }])
    expect(await domain.statistics.current(principal.accountId)).toMatchObject({ waiting: 1, ready: 0, running: 0 })
  })

  test('is cancelled with the runs that it has called', async (test) => {
    const { domain, principal } = await openInstallation(test, kind)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId, variables: { how: 'answer' } })
    await untilWaiting(domain, run, 'answer')
    await domain.runs.cancel(run.accountId, run.id)
    expect(await waitForRun(domain, run)).toMatchObject({ status: 'cancelled', reason: 'cancelRequested' })
    const waits = await domain.store.read.all('SELECT status FROM run_waits WHERE run_id = ?', [run.id])
    expect(waits).toEqual([{ status: 'cancelled' }])
  })
})
