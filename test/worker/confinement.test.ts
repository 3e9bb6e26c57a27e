/** What an attempt leaves: nothing of it reaches another account, and no process outlives it. */
import { chmodSync, readFileSync } from 'node:fs'
import { describe, expect, test, vi } from 'vitest'
import { describeWorkflows } from '../../src/domain/workflows/describe-workflows.ts'
import { newAccount, openDomain, queueRun, type Test } from '../support/domain.ts'
import { findMarkedProcesses, waitForProcessEnd } from '../support/processes.ts'
import { waitLimits } from '../support/timeouts.ts'
import { moduleText, startWorker, startWorkerProcess, waitForRun, writeModules } from '../support/worker.ts'

const modules = {
  'remember.js': moduleText(
    'remember',
    `run: ({ variables }) => {
      const { kept = [] } = globalThis
      globalThis.kept = [...kept, variables.secret]
      return { pid: process.pid, kept }
    }`,
  ),
  // Starts a child, a child that leads a group, and a grandchild whose parent ends. All write their ids.
  'spread.js': `import { execSync, spawn } from 'node:child_process'
    import { existsSync } from 'node:fs'
    const script = 'echo $$ >> "$FILE"; exec sleep 1000'
    ${moduleText(
      'spread',
      `run: async ({ variables }) => {
        const env = { ...process.env, FILE: variables.file }
        for (const detached of [false, true]) spawn('sh', ['-c', script], { env, detached, stdio: 'ignore' }).unref()
        execSync('(' + script + ') >/dev/null 2>&1 &', { env })
        if (variables.how === 'exit') setTimeout(() => process.exit(), 300)
        if (variables.how !== 'return') await new Promise(() => setInterval(() => {}, 1000))
      }`,
    )}`,
  // Reads what protects the service and its machine from the run.
  'peek.js': `import { openSync, readFileSync } from 'node:fs'
    const attempt = (act) => { try { return act() } catch ({ code }) { return code } }
    ${moduleText(
      'peek',
      `run: ({ variables }) => ({
        user: [process.getuid(), process.getgid(), ...process.getgroups()],
        parentEnvironment: attempt(() => readFileSync('/proc/' + process.ppid + '/environ', 'latin1')),
        parentMemory: attempt(() => openSync('/proc/' + process.ppid + '/mem')),
        dataDirectory: attempt(() => openSync(variables.dataDirectory + '/service.db')),
        parentSignal: attempt(() => process.kill(process.ppid, 0)),
        memoryScore: readFileSync('/proc/self/oom_score_adj', 'latin1').trim(),
      })`,
    )}`,
}

async function open(test: Test) {
  const workflowsDirectory = await writeModules(test, modules)
  const domain = await openDomain(test, { workflows: await describeWorkflows(workflowsDirectory) })
  const { principal } = await newAccount(domain)
  return { domain, principal, workflowsDirectory }
}

describe.concurrent('a worker', () => {
  test('lets a process serve one account only, and reuses it for that account', async (test) => {
    const { domain, principal, workflowsDirectory } = await open(test)
    const others = [(await newAccount(domain)).principal, (await newAccount(domain)).principal]
    await startWorker(test, domain, { workflowsDirectory, slots: 1 })
    const outputOf = async (caller: typeof principal, secret: string) => {
      const run = await queueRun(domain, caller, { workflowId: 'remember', variables: { secret } })
      return (await waitForRun(domain, run)).output as { pid: number; kept: string[] }
    }
    const first = await outputOf(principal, 'first')
    expect(first.kept).toEqual([])
    for (const other of others) expect((await outputOf(other, 'other')).kept).toEqual([])
    expect(await outputOf(principal, 'second')).toEqual({ pid: expect.any(Number), kept: [] })
    expect(await outputOf(principal, 'third')).toMatchObject({ kept: ['second'] })
  })

  test.for(['return', 'exit', 'wait'])(
    'leaves no process that a run has started, also none that left its group (%s)',
    async (how, test) => {
      const { domain, principal, workflowsDirectory } = await open(test)
      await startWorker(test, domain, { workflowsDirectory })
      const file = `${workflowsDirectory}/pids`
      const run = await queueRun(domain, principal, { workflowId: 'spread', variables: { file, how } })
      const pids = await waitForPids(file)
      if (how === 'wait') await domain.runs.cancel(principal.accountId, run.id)
      await waitForRun(domain, run)
      for (const pid of pids) await waitForProcessEnd(pid)
    },
  )

  test('that is killed leaves no process that a run has started', async (test) => {
    const { domain, principal, workflowsDirectory } = await open(test)
    const worker = await startWorkerProcess(test, domain, { WORKFLOWS_DIR: workflowsDirectory })
    const file = `${workflowsDirectory}/pids`
    await queueRun(domain, principal, { workflowId: 'spread', variables: { file, how: 'wait' } })
    const [first = 0] = await waitForPids(file)
    // The executors, the spare one too, and what they have started.
    const marked = findMarkedProcesses(first)
    expect(marked.length).toBeGreaterThanOrEqual(5)
    worker.kill('SIGKILL')
    for (const pid of marked) await waitForProcessEnd(pid)
  })

  test('hides its secrets from processes of its user, and offers its executors to the kernel when memory is short', async (test) => {
    const { domain, principal, workflowsDirectory } = await open(test)
    await startWorkerProcess(test, domain, { WORKFLOWS_DIR: workflowsDirectory, OTEL_EXPORTER_OTLP_HEADERS: 'a=b' })
    const variables = { dataDirectory: domain.location }
    const run = await waitForRun(domain, await queueRun(domain, principal, { workflowId: 'peek', variables }))
    const { parentEnvironment, memoryScore } = run.output as Record<string, string>
    // The worker has used the key: without it, it does not start.
    expect(parentEnvironment).toMatch(/\0ENCRYPTION_KEY={10,}\0/)
    expect(parentEnvironment).toMatch(/\0OTEL_EXPORTER_OTLP_HEADERS={4}\0/)
    expect(parentEnvironment).toContain(`\0WORKFLOWS_DIR=${workflowsDirectory}\0`)
    expect(memoryScore).toBe('1000')
  })

  test.runIf(process.getuid?.() === 0)(
    'executes workflows as another user, who reaches neither its secrets nor its data',
    async (test) => {
      const { domain, principal, workflowsDirectory } = await open(test)
      chmodSync(workflowsDirectory, 0o777)
      const settings = { WORKFLOWS_DIR: workflowsDirectory, EXECUTOR_UID: '61234', WORKER_SLOTS: '2' }
      const worker = await startWorkerProcess(test, domain, settings)
      const variables = { dataDirectory: domain.location }
      const run = await queueRun(domain, principal, { workflowId: 'peek', variables })
      expect((await waitForRun(domain, run)).output).toEqual({
        user: [61234, 61234, 61234],
        parentEnvironment: 'EACCES',
        parentMemory: 'EACCES',
        dataDirectory: 'EACCES',
        parentSignal: 'EPERM',
        memoryScore: '1000',
      })
      const file = `${workflowsDirectory}/pids`
      await queueRun(domain, principal, { workflowId: 'spread', variables: { file, how: 'wait' } })
      const pids = await waitForPids(file)
      worker.kill('SIGKILL')
      for (const pid of pids) await waitForProcessEnd(pid)
    },
  )
})

async function waitForPids(file: string): Promise<number[]> {
  const read = () => {
    try {
      return readFileSync(file, 'utf8').trim().split('\n').map(Number)
    } catch {
      return []
    }
  }
  await vi.waitUntil(() => read().length === 3, waitLimits)
  return read()
}
