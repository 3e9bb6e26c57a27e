/** What a worker makes of runs: it executes them, tells what they say, and ends those that do not end by themselves. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test, vi } from 'vitest'
import { Workers } from '../../src/runs/workers.ts'
import { openSqliteStore } from '../../src/storage/sqlite/sqlite-store.ts'
import { type Session, type Store, StoreUnavailable } from '../../src/storage/store.ts'
import { gone } from '../support/processes.ts'
import { queueRun } from '../support/store.ts'
import { sqlite } from '../support/stores.ts'
import { finished, history, openInstallation, started, startWorker } from '../support/worker.ts'

describe.concurrent('a worker', { timeout: 30_000 }, () => {
  test('executes a run, and tells what it says in the order in which it is said', async (test) => {
    const { domain, principal } = await openInstallation(test)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId: 'talk' })
    const ended = await finished(domain, run)
    const result = { status: 'succeeded', reason: null, output: { said: 'Hello!' }, error: null, attempts: 1 }
    expect(ended).toMatchObject({ ...result, workflowVersion: '1.2.3', progress: { percent: 100, message: null } })
    expect(ended.startedAt).toBeGreaterThanOrEqual(run.createdAt)
    expect(ended.finishedAt).toBeGreaterThanOrEqual(ended.startedAt ?? Number.POSITIVE_INFINITY)
    expect(await history(domain, run)).toEqual([
      'queued (0)',
      'running (1)',
      'info: Hello from log',
      'error: and from the console { at: 1 }',
      '50 %: half way',
      'step speak started',
      'step speak finished',
      'warn: that was all',
      '100 %: null',
      'succeeded (1)',
    ])
  })

  test('puts what a run writes past the console into its log', async (test) => {
    const { domain, principal } = await openInstallation(test)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId: 'write-past-the-console' })
    await finished(domain, run)
    const lines = await history(domain, run)
    expect(lines).toContain('info: on standard output')
    expect(lines).toContain('warn: on standard error')
  })

  test('starts a run as soon as it is queued, without looking for it', async (test) => {
    const { domain, principal } = await openInstallation(test)
    // Of this store no bell rings by itself: whoever is not woken sleeps on.
    await startWorker(test, domain)
    for (let round = 0; round < 3; round += 1) {
      const run = await queueRun(domain, principal, { workflowId: 'talk' })
      expect(await finished(domain, run)).toMatchObject({ status: 'succeeded' })
    }
  })

  test('starts a run whose delay ends while it has nothing else to do', async (test) => {
    const { domain, principal } = await openInstallation(test)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId: 'talk', delaySeconds: 1 })
    const { startedAt, availableAt } = await finished(domain, run)
    expect(startedAt).toBeGreaterThanOrEqual(availableAt ?? Number.POSITIVE_INFINITY)
  })

  test('executes what was queued before it started, and no more at a time than it has slots', async (test) => {
    const { domain, principal, file } = await openInstallation(test)
    const until = file('until')
    const variables = (index: number) => ({ started: file(`started ${index}`), until })
    const runs = []
    for (let index = 0; index < 3; index += 1) {
      runs.push(await queueRun(domain, principal, { workflowId: 'wait', variables: variables(index) }))
    }
    await startWorker(test, domain, { slots: 2 })
    await Promise.all([started(file('started 0')), started(file('started 1'))])
    const [, , third] = runs
    expect(await domain.runs.get(principal.accountId, third?.id ?? '')).toMatchObject({ status: 'queued' })
    expect(existsSync(file('started 2'))).toBe(false)
    writeFileSync(until, '')
    for (const run of runs) expect(await finished(domain, run)).toMatchObject({ status: 'succeeded' })
  })

  test('uses a process again in which nothing is left of the run before', async (test) => {
    const { domain, principal, file } = await openInstallation(test)
    await startWorker(test, domain, { slots: 1 })
    const pids: number[] = []
    for (const name of ['first', 'second', 'third']) {
      const variables = { started: file(name), until: file('until') }
      const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
      pids.push(await started(variables.started))
      writeFileSync(variables.until, '')
      await finished(domain, run)
    }
    expect(new Set(pids).size).toBe(1)
  })

  describe('when an attempt fails', () => {
    test('tries again as often as the policy says, and tells the last error', async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      await startWorker(test, domain)
      const variables = { file: file('count'), failures: 3 }
      const run = await queueRun(domain, principal, { workflowId: 'steps', variables })
      const failed = { status: 'failed', reason: 'workflowFailed', attempts: 3, output: null }
      const error = { name: 'RangeError', message: 'Attempt 3 fails.' }
      expect(await finished(domain, run)).toMatchObject({ ...failed, error })
    })

    test('does not run again the steps that were finished', async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      await startWorker(test, domain)
      const variables = { file: file('count'), failures: 2 }
      const run = await queueRun(domain, principal, { workflowId: 'steps', variables })
      const output = { first: { madeBy: 1 }, second: 3 }
      expect(await finished(domain, run)).toMatchObject({ status: 'succeeded', attempts: 3, output, error: null })
      expect(readFileSync(variables.file, 'utf8')).toBe('first 1\nsecond 3\n')
      expect((await history(domain, run)).filter((line) => /^step|queued|running/.test(line))).toEqual([
        'queued (0)',
        'running (1)',
        'step constructor started',
        'step constructor finished',
        'step nothing started',
        'step nothing finished',
        'queued (1, attemptFailed)',
        'running (2)',
        'step constructor reused',
        'step nothing reused',
        'queued (2, attemptFailed)',
        'running (3)',
        'step constructor reused',
        'step nothing reused',
        'step second started',
        'step second finished',
      ])
    })

    test('names the member of the output that does not fit', async (test) => {
      const { domain, principal } = await openInstallation(test)
      await startWorker(test, domain)
      const run = await queueRun(domain, principal, { workflowId: 'misfit' })
      const message = 'The output does not fit its schema: /words/1/count must be integer'
      const failed = {
        status: 'failed',
        reason: 'outputInvalid',
        output: null,
        error: { name: 'OutputInvalid', message },
      }
      expect(await finished(domain, run)).toMatchObject(failed)
    })

    test.for([
      ['throwNoError', { name: 'Error', message: '{ code: 7 }' }],
      ['returnNoJson', { name: 'TypeError', message: 'The output is not JSON: Do not know how to serialize a BigInt' }],
    ] as const)('tells what it threw or returned when that was of no use (%s)', async ([how, error], test) => {
      const { domain, principal } = await openInstallation(test)
      await startWorker(test, domain)
      const run = await queueRun(domain, principal, { workflowId: 'misbehave', variables: { how } })
      expect(await finished(domain, run)).toMatchObject({ status: 'failed', reason: 'workflowFailed', error })
    })
  })

  describe('keeps apart from its neighbours a run that', () => {
    const neighbour = async (
      test: Parameters<typeof openInstallation>[0],
      run: { workflowId: string; variables: object },
    ) => {
      const { domain, principal, file } = await openInstallation(test)
      const { fatal } = await startWorker(test, domain)
      const variables = { started: file('started'), until: file('until') }
      const beside = await queueRun(domain, principal, { workflowId: 'wait', variables })
      await started(variables.started)
      const bad = await queueRun(domain, principal, { workflowId: run.workflowId, variables: { ...run.variables } })
      const ended = await finished(domain, bad)
      writeFileSync(variables.until, '')
      expect(await finished(domain, beside)).toMatchObject({ status: 'succeeded', attempts: 1 })
      const next = await queueRun(domain, principal, { workflowId: 'talk' })
      expect(await finished(domain, next)).toMatchObject({ status: 'succeeded', attempts: 1 })
      expect(fatal).toEqual([])
      return ended
    }

    test.for([
      ['exit', 'exit code 0'],
      ['throwLater', 'exit code 1'],
      ['rejectUnheard', 'exit code 1'],
      ['exhaust', 'signal SIGABRT'],
      ['disconnect', 'exit code 0'],
    ] as const)('ends its process (%s)', async ([how, ending], test) => {
      const ended = await neighbour(test, { workflowId: 'misbehave', variables: { how } })
      const error = { name: 'ProcessExit', message: `The workflow's process ended (${ending}).` }
      expect(ended).toMatchObject({ status: 'failed', reason: 'workflowExited', output: null, error })
    })

    test.for([true, false])('takes longer than its time limit (blocking its thread: %s)', async (blocking, test) => {
      const ended = await neighbour(test, { workflowId: 'limited', variables: { blocking } })
      expect(ended).toMatchObject({ status: 'timedOut', reason: 'timeLimit', output: null, attempts: 1 })
    })

    test('leaves something behind that goes on', async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      await startWorker(test, domain, { slots: 1 })
      const variables = { how: 'leaveBehind', file: file('left') }
      const leaving = await queueRun(domain, principal, { workflowId: 'misbehave', variables })
      expect(await finished(domain, leaving)).toMatchObject({ status: 'succeeded', output: 'gone' })
      const waiting = { started: file('started'), until: file('until') }
      const next = await queueRun(domain, principal, { workflowId: 'wait', variables: waiting })
      const pid = await started(waiting.started)
      writeFileSync(waiting.until, '')
      await finished(domain, next)
      expect(await history(domain, next)).toEqual([
        'queued (0)',
        'running (1)',
        'info: attempt 1 waits',
        'succeeded (1)',
      ])
      // Whatever it did, it did it in a process that is gone.
      const left = existsSync(variables.file) ? readFileSync(variables.file, 'utf8').split('\n') : []
      expect(left).not.toContain(String(pid))
      for (const each of new Set(left.filter(Boolean))) await gone(Number(each))
    })
  })

  describe('when a run is cancelled', () => {
    test.for(['patiently', 'deafly', 'blocking'])('ends it, also one that waits %s', async (how, test) => {
      const { domain, principal, file } = await openInstallation(test)
      await startWorker(test, domain)
      const variables = { started: file('started'), until: file('until'), how }
      const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
      const pid = await started(variables.started)
      expect(await domain.runs.cancel(principal.accountId, run.id)).toMatchObject({ cancelRequested: true })
      const ended = { status: 'cancelled', reason: 'cancelRequested', output: null, attempts: 1 }
      expect(await finished(domain, run)).toMatchObject(ended)
      await gone(pid)
      expect((await history(domain, run)).at(-1)).toBe('cancelled (1, cancelRequested)')
    })

    test('ends it within the time of grace, when it only has to be told', async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      await startWorker(test, domain, { abortGraceSeconds: 3600 })
      const variables = { started: file('started'), until: file('until') }
      const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
      await started(variables.started)
      await domain.runs.cancel(principal.accountId, run.id)
      expect(await finished(domain, run)).toMatchObject({ status: 'cancelled' })
    })
  })

  describe('that stops', () => {
    test('lets attempts finish in their time, and starts no other', async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      const { worker } = await startWorker(test, domain)
      const variables = { started: file('started'), until: file('until') }
      const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
      await started(variables.started)
      const stopped = worker.stop(3600)
      const late = await queueRun(domain, principal, { workflowId: 'talk' })
      writeFileSync(variables.until, '')
      await stopped
      const get = ({ id }: { id: string }) => domain.runs.get(principal.accountId, id)
      expect(await get(run)).toMatchObject({ status: 'succeeded' })
      expect(await get(late)).toMatchObject({ status: 'queued', attempts: 0 })
    })

    test.for(['patiently', 'blocking'])(
      'hands back what does not finish, and another worker does (%s)',
      async (how, test) => {
        const { domain, principal, file } = await openInstallation(test)
        const { worker } = await startWorker(test, domain)
        const variables = { started: file('started'), until: file('until'), how }
        const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
        const pid = await started(variables.started)
        await worker.stop(0)
        const back = { status: 'queued', reason: 'workerStopped', attempts: 1, waitingFor: 'worker' }
        expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject(back)
        await gone(pid)
        await startWorker(test, domain)
        await started(variables.started, 2)
        writeFileSync(variables.until, '')
        expect(await finished(domain, run)).toMatchObject({ status: 'succeeded', attempts: 2, output: { attempt: 2 } })
      },
    )

    test('hands back also what it was only about to begin', async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      const { worker } = await startWorker(test, domain, { slots: 3 })
      const variables = { started: file('started'), until: file('until'), how: 'deafly' }
      const runs = []
      for (let index = 0; index < 3; index += 1) {
        runs.push(await queueRun(domain, principal, { workflowId: 'wait', variables }))
      }
      // Claimed, but two of their processes have yet to start.
      const status = async () =>
        (await domain.runs.list(principal.accountId, { limit: 9, status: 'running' }))?.runs.length
      await vi.waitUntil(async () => (await status()) === 3, { timeout: 10_000, interval: 1 })
      await worker.stop(0)
      for (const { id } of runs) {
        const back = { status: 'queued', reason: 'workerStopped' }
        expect(await domain.runs.get(principal.accountId, id)).toMatchObject(back)
      }
    })
  })

  describe('with a lease', () => {
    test('renews it for as long as the run takes', async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      const leaseSeconds = 0.6
      await startWorker(test, domain, { leaseSeconds })
      const variables = { started: file('started'), until: file('until') }
      const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
      await started(variables.started)
      const end = Date.now() + 3 * leaseSeconds * 1000
      await vi.waitUntil(() => Date.now() > end, { timeout: 10_000 })
      writeFileSync(variables.until, '')
      expect(await finished(domain, run)).toMatchObject({ status: 'succeeded', attempts: 1 })
    })

    test('that it has lost ends the attempt and says nothing more of it', async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      await startWorker(test, domain, { leaseSeconds: 0.3 })
      const variables = { started: file('started'), until: file('until'), how: 'blocking' }
      const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
      const pid = await started(variables.started)
      await vi.waitUntil(async () => (await history(domain, run)).includes('info: attempt 1 waits'), {
        timeout: 10_000,
      })
      const taken = { worker_id: 'another', attempts: 2, lease_expires_at: Date.now() + 60_000 }
      await domain.store.write(({ query }) => query.updateTable('runs').set(taken).where('id', '=', run.id).execute())
      await gone(pid)
      expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ status: 'running', attempts: 2 })
      expect(await history(domain, run)).toHaveLength(3)
    })
  })

  describe('is known to live', () => {
    test('from when it is ready, idle or busy, until it has stopped', async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      const workers = new Workers(domain.store)
      const leaseSeconds = 0.6
      const begun = Date.now()
      const { worker } = await startWorker(test, domain, { leaseSeconds, slots: 3 })
      await vi.waitUntil(async () => (await workers.alive()).length > 0, { timeout: 10_000, interval: 1 })
      const [alive] = await workers.alive()
      expect(alive).toMatchObject({ host: hostname(), slots: 3 })
      expect(alive?.startedAt).toBeGreaterThanOrEqual(begun)
      const end = Date.now() + 3 * leaseSeconds * 1000
      await vi.waitUntil(async () => (await workers.alive()).length === 1 && Date.now() > end, { timeout: 10_000 })
      const variables = { started: file('started'), until: file('until') }
      await queueRun(domain, principal, { workflowId: 'wait', variables })
      await started(variables.started)
      await vi.waitFor(async () => expect(await workers.alive()).toEqual([alive]), { timeout: 10_000 })
      const stopped = worker.stop(10)
      // Its attempt goes on, and so does the worker.
      const later = Date.now() + 3 * leaseSeconds * 1000
      await vi.waitUntil(async () => (await workers.alive()).length === 1 && Date.now() > later, { timeout: 10_000 })
      writeFileSync(variables.until, '')
      await stopped
      expect(await workers.alive()).toEqual([])
    })

    test('again as soon as the store takes it, and executes runs meanwhile', async (test) => {
      const { domain, principal } = await openInstallation(test)
      const workers = new Workers(domain.store)
      let refusals = 0
      const write: Store['write'] = (work) =>
        domain.store.write((session) => {
          const all: Session['all'] = async (sql, values) => {
            if (!sql.includes(' workers ') || refusals > 2) return session.all(sql, values)
            refusals += 1
            throw new Error('No more workers fit in.')
          }
          return work({ ...session, all })
        })
      const { fatal } = await startWorker(test, { ...domain, store: { ...domain.store, write } }, { leaseSeconds: 0.6 })
      const run = await queueRun(domain, principal, { workflowId: 'talk' })
      expect(await finished(domain, run)).toMatchObject({ status: 'succeeded' })
      await vi.waitUntil(async () => (await workers.alive()).length === 1, { timeout: 10_000 })
      expect(refusals).toBe(3)
      expect(fatal).toEqual([])
    })
  })

  test('keeps an outcome that it cannot write down until the store is available again', async (test) => {
    const impatient = {
      ...sqlite,
      open: (place: string) =>
        openSqliteStore(place, { fallbackRingMilliseconds: 3_600_000, lockWaitMillisecondsMax: 20 }),
    }
    const { domain, principal, file } = await openInstallation(test, impatient)
    let refused = 0
    const write: Store['write'] = (work) =>
      domain.store.write(work).catch((error) => {
        if (error instanceof StoreUnavailable) refused += 1
        throw error
      })
    await startWorker(test, { ...domain, store: { ...domain.store, write } })
    const variables = { started: file('started'), until: file('until') }
    const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
    await started(variables.started)
    await vi.waitUntil(async () => (await history(domain, run)).includes('info: attempt 1 waits'), { timeout: 10_000 })
    const locking = new DatabaseSync(join(domain.place, 'service.db'))
    test.onTestFinished(() => locking.close())
    locking.exec('BEGIN IMMEDIATE')
    writeFileSync(variables.until, '')
    await vi.waitUntil(() => refused > 1, { timeout: 10_000 })
    expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject({ status: 'running' })
    locking.exec('ROLLBACK')
    expect(await finished(domain, run)).toMatchObject({ status: 'succeeded', attempts: 1, output: { attempt: 1 } })
  })

  test('gives the workflow its secrets, and shows them nowhere, nor any key of the service', async (test) => {
    const { domain, principal } = await openInstallation(test)
    vi.stubEnv('ENCRYPTION_KEY', 'x')
    vi.stubEnv('DATABASE_URL', 'x')
    test.onTestFinished(() => void vi.unstubAllEnvs())
    await startWorker(test, domain)
    const password = 'canary "of" a pass/word'
    const run = await queueRun(domain, principal, { workflowId: 'leak', variables: { login: { password } } })
    const failing = { login: { password }, fail: true }
    const failed = await queueRun(domain, principal, { workflowId: 'leak', variables: failing })
    const output = { length: password.length, reversed: [...password].reverse().join(''), '********': ['********'] }
    expect(await finished(domain, run)).toMatchObject({ status: 'succeeded', output: { ...output, environment: [] } })
    const error = { name: 'Error', message: '******** was refused' }
    expect(await finished(domain, failed)).toMatchObject({ status: 'failed', error })
    for (const each of [run, failed]) {
      const lines = await history(domain, each)
      expect(lines).toContain('info: The password is ********.')
      expect(lines).toContain('10 %: ********')
      expect(lines).toContain('step step ******** finished')
      expect(lines).toContain(`info: {"login":{"password":"********"},"fail":${each === failed}}`)
      expect(lines.join('\n')).not.toMatch(/canary|pass\/word/)
      expect(JSON.stringify(await domain.runs.get(principal.accountId, each.id))).not.toMatch(/canary|pass\/word/)
    }
  })
})
