/** What an attempt leaves: nothing of it reaches another account, and no process outlives it. */
import { readFileSync } from 'node:fs'
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
  'score.js': `import { readFileSync } from 'node:fs'
    ${moduleText('score', "run: () => readFileSync('/proc/self/oom_score_adj', 'latin1').trim()")}`,
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

  test.runIf(process.platform === 'linux')('offers its executors to the kernel when memory is short', async (test) => {
    const { domain, principal, workflowsDirectory } = await open(test)
    await startWorker(test, domain, { workflowsDirectory })
    const run = await waitForRun(domain, await queueRun(domain, principal, { workflowId: 'score' }))
    expect(run.output).toBe('1000')
  })
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
