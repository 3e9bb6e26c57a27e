/**
 * Makes a process die with its worker, also while a workflow blocks it. Linux does that for nothing
 * (prctl PR_SET_PDEATHSIG), but only a program can ask for it, such as util-linux' setpriv; where there is none, a
 * thread in the process looks every half second, which costs 20 MB.
 */
import { spawnSync } from 'node:child_process'
import { Worker } from 'node:worker_threads'

export interface Launcher {
  execPath: string
  /** Stands before Node's own arguments. */
  execArgv: string[]
  /** Stands after the module's arguments. */
  watchdog: string[]
}

const watchdogArgument = '--watchdog'

let launcher: Launcher | undefined

/** How to start a process that dies with this one. */
export function dyingWithParent(): Launcher {
  launcher ??= setprivWorks()
    ? { execPath: 'setpriv', execArgv: ['--pdeathsig', 'KILL', '--', process.execPath], watchdog: [] }
    : { execPath: process.execPath, execArgv: [], watchdog: [watchdogArgument] }
  return launcher
}

function setprivWorks(): boolean {
  return spawnSync('setpriv', ['--pdeathsig', 'KILL', '--', process.execPath, '--version']).status === 0
}

/** For the process that was started so: starts the thread, where it is needed. */
export function watchParent(): void {
  if (!process.argv.includes(watchdogArgument)) return
  new Worker(new URL('./watchdog.ts', import.meta.url), { workerData: process.ppid }).unref()
}
