/** The processes of an installation that is spread over several, as an operator starts them, and what CPU they use. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

const main = new URL('../src/main.ts', import.meta.url).pathname
const readySecondsMax = 60
/** Of the kernel's clock in /proc, which is the same on every Linux that Node runs on. */
const ticksPerSecond = 100

/** How many processes there are of each kind. */
export interface Shape {
  apis: number
  workers: number
}

export interface Installation {
  executionUrls: string[]
  apiPids: number[]
  workerPids: number[]
  stop(): Promise<void>
}

export async function startInstallation(env: NodeJS.ProcessEnv, { apis, workers }: Shape): Promise<Installation> {
  const own = {
    ...env,
    WORKFLOWS_DIR: new URL('./workflows', import.meta.url).pathname,
    RATE_LIMIT_PER_MINUTE: '0',
    QUEUED_RUNS_MAX: '0',
    // What fills the store is to stay, however old it is.
    RUN_RETENTION_DAYS: '3650',
    DRAIN_SECONDS: '0',
    SHUTDOWN_SECONDS: '2',
    LOG_LEVEL: 'warn',
  }
  const roles = [...Array(apis).fill('execution'), ...Array(workers).fill('worker')]
  const started = await Promise.all(roles.map((role) => startProcess(role, own)))
  try {
    await Promise.all(started.map(untilReady))
  } catch (error) {
    for (const { child } of started) child.kill('SIGKILL')
    throw error
  }
  const pids = started.map(({ child }) => child.pid ?? 0)
  return {
    executionUrls: started.slice(0, apis).map(({ executionUrl }) => executionUrl),
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

async function untilReady({ child, managementUrl }: Started): Promise<void> {
  const deadline = performance.now() + readySecondsMax * 1000
  for (;;) {
    const answer = await fetch(`${managementUrl}/readyz`).catch(() => undefined)
    if (answer?.status === 200) return
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

/** Of these processes and all below them, in user and kernel mode; those that have ended count in their parents. */
export function cpuSeconds(roots: readonly number[]): number {
  const processes = new Map<number, { parent: number; ticks: number }>()
  for (const name of readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
    try {
      // proc_pid_stat(5), after the name: state, ppid … utime, stime, cutime, cstime.
      const fields = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
      const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
      processes.set(Number(name), { parent: Number(fields[1]), ticks })
    } catch {
      // It has just ended.
    }
  }
  const isBelow = (pid: number | undefined): boolean =>
    pid !== undefined && pid > 1 && (roots.includes(pid) || isBelow(processes.get(pid)?.parent))
  const ticks = [...processes].reduce((sum, [pid, each]) => (isBelow(pid) ? sum + each.ticks : sum), 0)
  return ticks / ticksPerSecond
}
