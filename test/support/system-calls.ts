/** Traces processes with strace, and checks the order of their synced writes and responses. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isInstalled } from './mounts.ts'
import { until } from './service.ts'

/** Returns why system calls cannot be traced here; `undefined` when they can. */
export function whyTracingFails(): string | undefined {
  if (!isInstalled('strace')) return 'strace is not installed'
  try {
    execFileSync('strace', ['-o', '/dev/null', 'true'], { stdio: 'pipe' })
    return undefined
  } catch {
    return 'strace has no permission to trace processes here'
  }
}

/** Bytes shown per call: several pages of a log, which contain the run's id. */
const bytesShown = 2_000_000
const traced = 'trace=fsync,fdatasync,pwrite64,pwritev,write,writev,sendto,sendmsg'

/** Traces the processes and their children into files with the prefix `output`. Returns a function that stops the trace. */
export async function trace(findProcesses: () => readonly number[], output: string): Promise<() => Promise<void>> {
  // `-ff` writes a file per thread, so that calls do not interleave; `-ttt -T` records when each began and ended.
  const options = ['-ff', '-ttt', '-T', '-y', '-s', String(bytesShown), '-e', traced, '-e', 'signal=none']
  const flags = [...options, '-o', output]
  const stops = [await attach(findProcesses(), flags)]
  // Children from before their parent was traced.
  const missed = findProcesses().filter((pid) => !isTracedOrGone(pid))
  if (missed.length > 0) stops.push(await attach(missed, flags))
  return async () => {
    for (const stop of stops) await stop()
  }
}

/** Makes system calls of running processes fail. Returns a function that stops this. */
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

/** Some processes of a database end by themselves, or because of an injected failure. */
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
  /** The file or connection of the descriptor. */
  target: string
  /** The arguments, as printed by strace. */
  text: string
  succeeded: boolean
  /** Seconds since 1970. */
  began: number
  ended: number
}

const pattern = /^(\d+\.\d+) (\w+)\(\d+<([^>]*)>(.*) = (-?\d+)[^<]*<(\d+\.\d+)>$/

/** Reads the calls of all threads, in the order of their start. */
export function readCalls(output: string): Call[] {
  const files = readdirSync(dirname(output)).filter((name) => name.startsWith(`${basename(output)}.`))
  const lines = files.flatMap((name) => readFileSync(join(dirname(output), name), 'latin1').split('\n'))
  const calls = lines.flatMap((line) => {
    const [, at = '', name = '', target = '', text = '', result = '', took = ''] = pattern.exec(line) ?? []
    const began = Number(at)
    return name ? [{ name, target, text, succeeded: Number(result) >= 0, began, ended: began + Number(took) }] : []
  })
  return calls.sort((a, b) => a.began - b.began)
}

export interface Order {
  /** Number of 202 responses. */
  responses: number
  /** Responses that began after an fsync of the log, which itself began after the run was written to the log. */
  afterSync: number
  /** Number of fsyncs of the log. */
  syncs: number
}

const syncs = new Set(['fsync', 'fdatasync'])
const acknowledgement = /^, .*HTTP\/1\.1 202 .*Location: \S*\/([0-9a-f-]{36})\\r\\n/i

/** Compares each response with the writes of its run's id to files whose path matches `log`. */
export function compareOrder(calls: readonly Call[], log: RegExp): Order {
  const toLog = calls.filter(({ target }) => log.test(target))
  const synced = toLog.filter(({ name, succeeded }) => succeeded && syncs.has(name))
  const written = toLog.filter(({ name, succeeded }) => succeeded && !syncs.has(name))
  let responses = 0
  let afterSync = 0
  for (const call of calls) {
    const id = /socket|TCP/i.test(call.target) && acknowledgement.exec(call.text)?.[1]
    if (!id) continue
    responses += 1
    const first = written.find(({ text }) => text.includes(id))
    if (first && synced.some((sync) => sync.began >= first.ended && sync.ended <= call.began)) afterSync += 1
  }
  return { responses, afterSync, syncs: synced.length }
}
