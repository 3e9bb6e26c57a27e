/** Forked processes with an IPC channel, which are killed with their test. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { vi } from 'vitest'
import type { Test } from './domain.ts'
import type { StoreKind } from './store-kinds.ts'
import { waitLimits } from './timeouts.ts'

/** Starts store-process.ts, which waits for a message before it runs the command. */
export async function startStoreProcess(
  test: Test,
  { kind, command, locations }: { kind: StoreKind; command: string; locations: readonly string[] },
): Promise<ChildProcess> {
  return startProcess(test, new URL('./store-process.ts', import.meta.url), [kind.name, command, ...locations])
}

/** Starts a process that runs the module, and waits for its first message. */
export async function startProcess(test: Test, module: URL, args: readonly string[]): Promise<ChildProcess> {
  const child = fork(fileURLToPath(module), args, { execArgv: [] })
  test.onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'message')
  return child
}

/** Whether the process is running, and not a zombie. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    // The process has ended, unless this system has no /proc.
    return !existsSync('/proc/self/stat')
  }
}

/** Resolves when the process has ended. */
export async function waitForProcessEnd(pid: number): Promise<void> {
  await vi.waitUntil(() => !isAlive(pid), waitLimits)
}

/** Returns the processes of the worker that has started the process, directly or not. */
export function findMarkedProcesses(pid: number): number[] {
  const [mark = ''] = /EXECUTION_SERVICE_PROCESS=[^.]+/.exec(environmentOf(pid)) ?? []
  if (mark === '') throw new Error(`Process ${pid} has no mark.`)
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map(Number).filter((each) => environmentOf(each).includes(mark))
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1')
  } catch {
    return ''
  }
}
