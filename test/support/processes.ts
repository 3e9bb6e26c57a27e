/** Processes that a test starts: forked with a channel, and gone when the test has ended. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { vi } from 'vitest'
import type { Test } from './domain.ts'
import type { StoreKind } from './store-kinds.ts'
import { waitLimits } from './timeouts.ts'

/** A process with a store of its own (store-process.ts), which goes on when it is sent a message. */
export async function startStoreProcess(
  test: Test,
  { kind, command, places }: { kind: StoreKind; command: string; places: readonly string[] },
): Promise<ChildProcess> {
  return startProcess(test, new URL('./store-process.ts', import.meta.url), [kind.name, command, ...places])
}

/** A process that runs the module, and has said its first word. */
export async function startProcess(test: Test, module: URL, args: readonly string[]): Promise<ChildProcess> {
  const child = fork(fileURLToPath(module), args, { execArgv: [] })
  test.onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'message')
  return child
}

/** Whether the process exists and is not merely waiting to be buried. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    // It was buried meanwhile, unless the system has no such files at all.
    return !existsSync('/proc/self/stat')
  }
}

/** Resolves when the process has ended. */
export async function waitForProcessEnd(pid: number): Promise<void> {
  await vi.waitUntil(() => !isAlive(pid), waitLimits)
}
