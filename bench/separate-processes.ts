/** Runs an installation as separate API and worker processes, and measures their CPU time. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

const main = new URL('../src/main.ts', import.meta.url).pathname
const readySecondsMax = 60
/** USER_HZ, the unit of CPU times in /proc on Linux. */
const ticksPerSecond = 100

/** Number of processes of each kind. */
export interface Shape {
  apis: number
  workers: number
}

export interface Installation {
  executionUrls: string[]
  /** Of the API processes. */
  managementUrls: string[]
  apiPids: number[]
  workerPids: number[]
  stop(): Promise<void>
}

export async function startInstallation(env: NodeJS.ProcessEnv, { apis, workers }: Shape): Promise<Installation> {
  const settings = {
    WORKFLOWS_DIR: new URL('./workflows', import.meta.url).pathname,
    RATE_LIMIT_PER_MINUTE: '0',
    QUEUED_RUNS_MAX: '0',
    // Keeps the prepared runs.
    RUN_RETENTION_DAYS: '3650',
    DRAIN_SECONDS: '0',
    SHUTDOWN_SECONDS: '2',
    LOG_LEVEL: 'warn',
    ...env,
  }
  const roles = [...Array(apis).fill('execution'), ...Array(workers).fill('worker')]
  const started = await Promise.all(roles.map((role) => startProcess(role, settings)))
  try {
    await Promise.all(started.map(waitUntilReady))
  } catch (error) {
    for (const { child } of started) child.kill('SIGKILL')
    throw error
  }
  const pids = started.map(({ child }) => child.pid ?? 0)
  return {
    executionUrls: started.slice(0, apis).map(({ executionUrl }) => executionUrl),
    managementUrls: started.slice(0, apis).map(({ managementUrl }) => managementUrl),
    apiPids: pids.slice(0, apis),
    workerPids: pids.slice(apis),
    async stop() {
      const ended = started.map(({ child }) => child.exitCode ?? once(child, 'exit'))
      for (const { child } of started) child.kill('SIGTERM')
      await Promise.all(ended)
    },
  }
}

interface Started {
  child: ChildProcess
  executionUrl: string
  managementUrl: string
}

async function startProcess(role: string, env: NodeJS.ProcessEnv): Promise<Started> {
  const [execution, management] = [await freePort(), await freePort()]
  const child = spawn(process.execPath, [main, 'start', '--only', role], {
    env: {
      ...process.env,
      ...env,
      EXECUTION_PORT: String(execution),
      MANAGEMENT_PORT: String(management),
      BROWSER_CONTEXT_PORT: '0',
      DASHBOARD_PORT: '0',
    },
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  return { child, executionUrl: `http://127.0.0.1:${execution}`, managementUrl: `http://127.0.0.1:${management}` }
}

async function waitUntilReady({ child, managementUrl }: Started): Promise<void> {
  const deadline = performance.now() + readySecondsMax * 1000
  for (;;) {
    const response = await fetch(`${managementUrl}/readyz`).catch(() => undefined)
    if (response?.status === 200) return
    if (child.exitCode !== null || performance.now() > deadline) throw new Error('A process did not become ready.')
    await delay(20)
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Returns the CPU time of these processes and their descendants, in user and kernel mode, including ended children. */
export function cpuSeconds(roots: readonly number[]): number {
  const processes = new Map<number, { parent: number; ticks: number }>()
  for (const name of readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
    try {
      // proc_pid_stat(5), after the name: state, ppid … utime, stime, cutime, cstime.
      const fields = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
      const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
      processes.set(Number(name), { parent: Number(fields[1]), ticks })
    } catch {
      // The process has ended.
    }
  }
  const isIncluded = (pid: number | undefined): boolean =>
    pid !== undefined && pid > 1 && (roots.includes(pid) || isIncluded(processes.get(pid)?.parent))
  const ticks = [...processes].reduce((sum, [pid, each]) => (isIncluded(pid) ? sum + each.ticks : sum), 0)
  return ticks / ticksPerSecond
}

/** Returns these processes and their descendants. */
export function processTree(roots: readonly number[]): number[] {
  const parents = readdirSync('/proc').flatMap((name) => {
    try {
      const fields = readFileSync(`/proc/${Number(name)}/stat`, 'utf8')
        .split(') ')
        .at(-1)
        ?.split(' ')
      return [{ pid: Number(name), parent: Number(fields?.[1]) }]
    } catch {
      return []
    }
  })
  const descendants = (root: number): number[] =>
    parents.filter(({ parent }) => parent === root).flatMap(({ pid }) => [pid, ...descendants(pid)])
  return roots.flatMap((root) => [root, ...descendants(root)])
}
