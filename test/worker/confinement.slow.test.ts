/** What a run can reach of its worker, and what is left when the worker is killed. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createCgroup, killCgroup, ProcessCgroup } from '../../src/domain/workflows/process-cgroup.ts'
import { queueRun } from '../support/domain.ts'
import { findMarkedProcesses, waitForProcessEnd } from '../support/processes.ts'
import {
  describeEvents,
  openInstallation,
  startWorker,
  startWorkerProcess,
  waitForRun,
  waitForSpread,
} from '../support/worker.ts'

describe.concurrent('a worker', () => {
  test.for([
    ['writeEndlessMessage', 'InvalidMessage'],
    ['allocateInChild', 'MemoryLimit'],
  ] as const)('ends a run that goes beyond its limits alone (%s)', async ([how, name], test) => {
    const { domain, principal } = await openInstallation(test)
    const { fatal } = await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId: 'misbehave', variables: { how } })
    expect(await waitForRun(domain, run)).toMatchObject({ status: 'failed', reason: 'workflowExited', error: { name } })
    expect(fatal).toEqual([])
  })

  test('replaces an endless line of output by a note', async (test) => {
    const { domain, principal } = await openInstallation(test)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId: 'misbehave', variables: { how: 'writeEndlessLine' } })
    const error = { name: 'Error', message: 'written' }
    expect(await waitForRun(domain, run)).toMatchObject({ reason: 'workflowFailed', error })
    expect(await describeEvents(domain, run)).toContain('info: [a line of more than 1048576 bytes was dropped]')
  })
})

const hasCgroups = canCreateCgroups()

function canCreateCgroups(): boolean {
  const path = createCgroup('probe')
  if (path) killCgroup(path)
  return path !== undefined
}

describe.runIf(hasCgroups)('processes that hide their origin in an own group and an empty environment', () => {
  test.for(['return', 'exit', 'wait'])('end with their run (%s)', async (how, test) => {
    const { domain, principal, file } = await openInstallation(test)
    await startWorker(test, domain)
    const variables = { file: file('pids'), how, hides: true }
    const run = await queueRun(domain, principal, { workflowId: 'spread', variables })
    const pids = await waitForSpread(variables.file)
    if (how === 'wait') await domain.runs.cancel(principal.accountId, run.id)
    await waitForRun(domain, run)
    for (const pid of pids) await waitForProcessEnd(pid)
  })

  test('are found although a process that started has removed their control group while it was empty', async () => {
    const path = createCgroup(randomUUID()) as string
    const cgroup = new ProcessCgroup(path, '1', undefined)
    killCgroup(createCgroup(randomUUID()) as string)
    const child = spawn('sleep', ['60'])
    cgroup.add(child.pid as number)
    cgroup.kill()
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
    killCgroup(path)
  })

  test('end with the worker that is killed', async (test) => {
    const { domain, principal, file } = await openInstallation(test)
    const worker = await startWorkerProcess(test, domain)
    const variables = { file: file('pids'), how: 'wait', hides: true }
    await queueRun(domain, principal, { workflowId: 'spread', variables })
    const pids = await waitForSpread(variables.file)
    worker.kill('SIGKILL')
    for (const pid of pids) await waitForProcessEnd(pid)
  })
})

describe.concurrent('a worker process', () => {
  test('that is killed leaves no executor and no process that a run has started', async (test) => {
    const { domain, principal, file } = await openInstallation(test)
    const worker = await startWorkerProcess(test, domain)
    const variables = { file: file('pids'), how: 'wait' }
    await queueRun(domain, principal, { workflowId: 'spread', variables })
    const [first = 0] = await waitForSpread(variables.file)
    const marked = findMarkedProcesses(first)
    expect(marked.length).toBeGreaterThanOrEqual(5)
    worker.kill('SIGKILL')
    for (const pid of marked) await waitForProcessEnd(pid)
  })

  test('hides its secrets from processes of its user, and lets the kernel end its executors first', async (test) => {
    const { domain, principal } = await openInstallation(test)
    await startWorkerProcess(test, domain, { OTEL_EXPORTER_OTLP_HEADERS: 'a=b' })
    const variables = { directory: domain.location }
    const run = await waitForRun(domain, await queueRun(domain, principal, { workflowId: 'peek', variables }))
    const { parentEnvironment, memoryScore } = run.output as Record<string, string>
    // The worker has used the key: without it, it does not start.
    expect(parentEnvironment).toMatch(/\0ENCRYPTION_KEY={10,}\0/)
    expect(parentEnvironment).toMatch(/\0OTEL_EXPORTER_OTLP_HEADERS={4}\0/)
    expect(parentEnvironment).toContain(`\0DATA_DIR=${domain.location}\0`)
    expect(memoryScore).toBe('1000')
  })

  test.runIf(process.getuid?.() === 0)(
    'executes workflows as another user, who reaches neither its secrets nor its data',
    async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      const worker = await startWorkerProcess(test, domain, { EXECUTOR_UID: '61234' })
      const variables = { directory: domain.location }
      const run = await queueRun(domain, principal, { workflowId: 'peek', variables })
      expect((await waitForRun(domain, run)).output).toEqual({
        user: [61234, 61234, 61234],
        parentEnvironment: 'EACCES',
        parentMemory: 'EACCES',
        parentSignal: 'EPERM',
        dataDirectory: 'EACCES',
        noNewPrivileges: '1',
        memoryScore: '1000',
      })
      const spread = { file: file('pids'), how: 'wait', hides: hasCgroups }
      chmodSync(dirname(spread.file), 0o777)
      await queueRun(domain, principal, { workflowId: 'spread', variables: spread })
      const pids = await waitForSpread(spread.file)
      worker.kill('SIGKILL')
      for (const pid of pids) await waitForProcessEnd(pid)
    },
  )
})
