/** Runs the service like `npm start` on a temporary data directory, and measures the memory of its processes. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'

const main = new URL('../src/main.ts', import.meta.url).pathname

export interface Running {
  child: ChildProcess
  executionUrl: string
  browserContextUrl: string
  readyMilliseconds: number
}

const children = new Set<ChildProcess>()

/** Calls `measure` with the environment of a service on a temporary data directory. */
export async function withInstallation(measure: (env: NodeJS.ProcessEnv) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'bench-'))
  const ports = { DASHBOARD_PORT: '0', EXECUTION_PORT: '0', BROWSER_CONTEXT_PORT: '0', MANAGEMENT_PORT: '0' }
  const workflows = new URL('./workflows', import.meta.url).pathname
  try {
    await measure({ ...process.env, ...ports, DATA_DIR: directory, WORKFLOWS_DIR: workflows })
  } finally {
    // Some are still running after an error.
    for (const child of children) child.kill('SIGKILL')
    rmSync(directory, { recursive: true, force: true })
  }
}

export async function start(env: NodeJS.ProcessEnv): Promise<Running> {
  const startedAt = performance.now()
  const child = spawn(process.execPath, [main, 'start'], { env, stdio: ['ignore', 'pipe', 'ignore'] })
  children.add(child)
  child.once('exit', () => children.delete(child))
  const ready = await new Promise<{ execution: string; browserContext: string }>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.includes('"service ready"')) resolve(JSON.parse(line))
    })
    child.once('exit', () => reject(new Error('The service ended during startup.')))
  })
  const urls = { executionUrl: ready.execution, browserContextUrl: ready.browserContext }
  return { child, ...urls, readyMilliseconds: performance.now() - startedAt }
}

export async function stop({ child }: Running): Promise<void> {
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await ended
}

export async function createKey(env: NodeJS.ProcessEnv): Promise<string> {
  const args = [main, 'keys', 'create', '--name', 'bench', '--json']
  return JSON.parse((await promisify(execFile)(process.execPath, args, { env })).stdout).value
}

/** CPU time of the process itself so far, without its children. The kernel counts it in ticks of 10 ms. */
export function cpuMilliseconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

export interface Memory {
  name: string
  residentKilobytes: number
  proportionalKilobytes: number
}

/** Returns the memory of the process and its descendants when V8 has reduced that of the start. */
export async function measureIdleMemory(root: number): Promise<Memory[]> {
  await delay(15_000)
  return measureMemory(root)
}

/** Returns the memory of the process and its descendants. Resident memory includes shared memory each time. */
export function measureMemory(root: number): Memory[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const parents = new Map(pids.map((pid) => [Number(pid), findParent(pid)]))
  const isIncluded = (pid: number): boolean => pid === root || (parents.has(pid) && isIncluded(parents.get(pid) ?? 0))
  return [...parents.keys()].filter(isIncluded).flatMap((pid) => {
    try {
      const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
      const kilobytes = (name: string) => Number(rollup.match(new RegExp(`^${name}:\\s+(\\d+)`, 'm'))?.[1])
      return {
        name: describeProcess(pid),
        residentKilobytes: kilobytes('Rss'),
        proportionalKilobytes: kilobytes('Pss'),
      }
    } catch {
      // The process has ended.
      return []
    }
  })
}

/** Returns 0 for a process that has ended. */
function findParent(pid: string): number {
  try {
    return Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[1])
  } catch {
    return 0
  }
}

/** Returns the module and command of a Node process, of sources or of the package, or the type of a Chromium process. */
function describeProcess(pid: number): string {
  const [path = '', ...words] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1)
  const program = basename(path)
  if (/chrom|headless/.test(program)) return `chromium ${/--type=([\w-]+)/.exec(words.join(' '))?.[1] ?? ''}`.trim()
  if (program !== 'node') return program
  const [module = '', command = ''] = words.filter((word) => !word.startsWith('--'))
  return `${module.replace(/.*\/(src|\.bin)\//, '')} ${command.startsWith('/') ? '' : command}`.trim()
}

/** Returns table rows with a total. */
export function memoryRows(memory: Memory[]): string[][] {
  const megabytes = (value: number) => `${(value / 1024).toFixed(0)} MB`
  const sum = (member: 'residentKilobytes' | 'proportionalKilobytes') =>
    megabytes(memory.reduce((total, each) => total + each[member], 0))
  return [
    ...memory.map((each) => [each.name, megabytes(each.residentKilobytes), megabytes(each.proportionalKilobytes)]),
    ['total', sum('residentKilobytes'), sum('proportionalKilobytes')],
  ]
}
