/** Worker processes that are killed, frozen or stopped: each run completes once, and no process is left. */
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { eventsAfter } from '../../src/domain/queue/runs.sql.ts'
import { newAccount, queueRun } from '../support/domain.ts'
import { waitForProcessEnd } from '../support/processes.ts'
import { writtenSnapshot } from '../support/snapshots.ts'
import { sqlite } from '../support/store-kinds.ts'
import { waitLimits } from '../support/timeouts.ts'
import {
  describeEvents,
  openInstallation,
  startWorker,
  startWorkerProcess,
  waitForRun,
  waitForStart,
} from '../support/worker.ts'

describe.concurrent('a worker process', () => {
  test.for(['patiently', 'blocking'])(
    'that is killed leaves no process behind, and another worker completes its run (%s)',
    async (how, test) => {
      const { domain, principal, file } = await openInstallation(test)
      const killed = await startWorkerProcess(test, domain)
      const variables = { started: file('started'), until: file('until'), how }
      const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
      const pid = await waitForStart(variables.started)
      killed.kill('SIGKILL')
      await waitForProcessEnd(pid)
      await startWorker(test, domain)
      await waitForStart(variables.started, 2)
      writeFileSync(variables.until, '')
      expect(await waitForRun(domain, run)).toMatchObject({ status: 'succeeded', attempts: 2, output: { attempt: 2 } })
      expect((await describeEvents(domain, run)).filter((line) => !line.startsWith('info'))).toEqual([
        'queued (0)',
        'running (1)',
        'queued (1, workerLost)',
        'running (2)',
        'succeeded (2)',
      ])
    },
  )

  test.for([
    ['more accounts than it has slots', 2000, 6],
    ['no account, if they may have no memory', 0, 12],
  ] as const)('keeps a process for each of %s', async ([, idleMegabytesMax, processes], test) => {
    const module = 'export default { run: () => process.pid }'
    const { domain } = await openInstallation(test, sqlite, writtenSnapshot({ own: { module } }))
    const accounts = await Promise.all(Array.from({ length: 6 }, () => newAccount(domain)))
    await startWorker(test, domain, { slots: 1, idleMegabytesMax })
    const pids: unknown[] = []
    for (const { principal } of [...accounts, ...accounts]) {
      const run = await queueRun(domain, principal, { workflowId: 'own' })
      pids.push((await waitForRun(domain, run)).output)
    }
    expect(new Set(pids).size).toBe(processes)
  })

  test('gives each executor its own temporary directory, and removes it when the executor has ended', async (test) => {
    const module = `import { writeFileSync } from 'node:fs'
      import { tmpdir } from 'node:os'
      export default { async run({ log, variables }) {
        log(tmpdir())
        if (variables.leaves) writeFileSync(tmpdir() + '/left', '')
        if (variables.exits) process.exit()
      } }`
    const { domain, principal } = await openInstallation(test, sqlite, writtenSnapshot({ leave: { module } }))
    await startWorker(test, domain)
    const all = [{ exits: true }, { leaves: true }, {}]
    const runs = await Promise.all(
      all.map((variables) => queueRun(domain, principal, { workflowId: 'leave', variables })),
    )
    for (const run of runs) await waitForRun(domain, run)
    const logged = await Promise.all(runs.map((run) => describeEvents(domain, run)))
    const [exited = '', left = '', idle = ''] = logged.map((events) => /^info: (.+)/m.exec(events.join('\n'))?.[1])
    expect(dirname(exited)).toBe(dirname(idle))
    for (const ended of [exited, left]) await vi.waitUntil(() => !existsSync(ended), waitLimits)
    expect(existsSync(idle)).toBe(true)
  })

  test('that is frozen beyond its lease changes nothing about a run that another worker has completed', async (test) => {
    const { domain, principal, file } = await openInstallation(test)
    const frozen = await startWorkerProcess(test, domain)
    const variables = { started: file('started'), until: file('until') }
    const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
    await waitForStart(variables.started)
    await vi.waitUntil(async () => (await describeEvents(domain, run)).includes('info: attempt 1 waits'), waitLimits)
    // Holding the write lock here keeps the worker from being frozen during its commit.
    await domain.store.write(async () => {
      frozen.kill('SIGSTOP')
      await vi.waitUntil(() => / T /.test(readFileSync(`/proc/${frozen.pid}/stat`, 'utf8')), waitLimits)
    })
    const { worker } = await startWorker(test, domain)
    await waitForStart(variables.started, 2)
    // Both attempts return now; the first worker is still frozen.
    writeFileSync(variables.until, '')
    const completed = await waitForRun(domain, run)
    expect(completed).toMatchObject({ status: 'succeeded', attempts: 2, output: { attempt: 2 } })
    const before = await eventsAfter(domain.store.read, run.id, 0, 100)
    await worker.stop(0)
    frozen.kill('SIGCONT')
    // Once it has executed another run, it has processed all earlier messages.
    const next = await queueRun(domain, principal, { workflowId: 'talk' })
    expect(await waitForRun(domain, next)).toMatchObject({ status: 'succeeded', attempts: 1 })
    expect(await eventsAfter(domain.store.read, run.id, 0, 100)).toEqual(before)
    expect(await domain.runs.get(principal.accountId, run.id)).toEqual(completed)
  })

  test.for(['SIGTERM', 'SIGINT'] as const)(
    'that is stopped by %s returns its run to the queue and exits with code 0',
    async (signal, test) => {
      const { domain, principal, file } = await openInstallation(test)
      const stopped = await startWorkerProcess(test, domain)
      const variables = { started: file('started'), until: file('until'), how: 'blocking' }
      const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
      const pid = await waitForStart(variables.started)
      const exit = once(stopped, 'exit')
      stopped.kill(signal)
      expect(await exit).toEqual([0, null])
      const back = { status: 'queued', reason: 'workerStopped', attempts: 1 }
      expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject(back)
      await waitForProcessEnd(pid)
    },
  )
})
