/** Reads what strace has written down of a process: the order of its writes to the disk and of its answers. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isInstalled } from './mounts.ts'
import { until } from './service.ts'

/** Why system calls cannot be traced here; `undefined` when they can. */
export function whyTracingFails(): string | undefined {
  if (!isInstalled('strace')) return 'strace is not installed'
  try {
    execFileSync('strace', ['-o', '/dev/null', 'true'], { stdio: 'pipe' })
    return undefined
  } catch {
    return 'strace may not trace a process here'
  }
}

/** Long enough for several pages of a log, which is where a run's id stands. */
const bytesShown = 70_000
const traced = 'trace=fsync,fdatasync,pwrite64,pwritev,write,writev,sendto,sendmsg'

/** Writes beside `output` what the processes do from now on, and those that they start; returns what ends that. */
export function trace(pids: readonly number[], output: string): Promise<() => Promise<void>> {
  // Each thread into a file of its own, so that no call is cut in two by another's; `-ttt -T` tell when each ended.
  const flags = ['-ff', '-ttt', '-T', '-y', '-s', String(bytesShown), '-e', traced, '-e', 'signal=none']
  return attach(pids, [...flags, '-o', output])
}

/** Lets the system calls of running processes fail; returns what ends that. */
export function injectFailures(pids: readonly number[], names: string, error: string): Promise<() => Promise<void>> {
  return attach(pids, ['-f', '-o', '/dev/null', '-e', `trace=${names}`, '-e', `inject=${names}:error=${error}`])
}

async function attach(pids: readonly number[], flags: string[]): Promise<() => Promise<void>> {
  const child = spawn('strace', [...flags, ...pids.flatMap((pid) => ['-p', String(pid)])], { stdio: 'ignore' })
  const ended = once(child, 'exit')
  await until('the processes are traced', () => pids.every(isTracedOrGone))
  return async () => {
    child.kill('SIGINT')
    await ended
  }
}

/** Some of a database's processes end by themselves, or because a call of theirs has just been made to fail. */
function isTracedOrGone(pid: number): boolean {
  try {
    return !/^TracerPid:\s+0$/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch (error) {
    if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    return true
  }
}

export interface Call {
  name: string
  /** The file or connection that it was about. */
  target: string
  /** As strace shows them. */
  text: string
  succeeded: boolean
  /** In seconds. */
  began: number
  ended: number
}

const pattern = /^(\d+\.\d+) (\w+)\(\d+<([^>]*)>(.*) = (-?\d+)[^<]*<(\d+\.\d+)>$/

/** The calls of all threads, in the order in which they began. */
export function readCalls(output: string): Call[] {
  const files = readdirSync(dirname(output)).filter((name) => name.startsWith(`${basename(output)}.`))
  const lines = files.flatMap((name) => readFileSync(join(dirname(output), name), 'latin1').split('\n'))
  const found = lines.flatMap((line) => {
    const [, at = '', name = '', target = '', text = '', result = '', took = ''] = pattern.exec(line) ?? []
    const began = Number(at)
    return name ? [{ name, target, text, succeeded: Number(result) >= 0, began, ended: began + Number(took) }] : []
  })
  return found.sort((a, b) => a.began - b.began)
}

export interface Order {
  /** Answers with 202 that were traced. */
  answers: number
  /** Those that began after an fsync of the log had returned which began after the run was written to it. */
  afterSync: number
  /** How many fsyncs of the log there were. */
  syncs: number
}

const syncs = new Set(['fsync', 'fdatasync'])
const acknowledgement = /^, .*HTTP\/1\.1 202 .*Location: \S*\/([0-9a-f-]{36})\\r\\n/i

/** Compares each answer with the writes of its run's id to files whose path matches `log`. */
export function compareOrder(calls: readonly Call[], log: RegExp): Order {
  const toLog = calls.filter(({ target }) => log.test(target))
  const synced = toLog.filter(({ name, succeeded }) => succeeded && syncs.has(name))
  const written = toLog.filter(({ name, succeeded }) => succeeded && !syncs.has(name))
  let answers = 0
  let afterSync = 0
  for (const call of calls) {
    const id = /socket|TCP/i.test(call.target) && acknowledgement.exec(call.text)?.[1]
    if (!id) continue
    answers += 1
    const first = written.find(({ text }) => text.includes(id))
    if (first && synced.some((sync) => sync.began >= first.ended && sync.ended <= call.began)) afterSync += 1
  }
  return { answers, afterSync, syncs: synced.length }
}
