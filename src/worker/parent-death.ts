/**
 * Ends executor processes when their worker dies, even while a workflow blocks the event loop. On Linux, util-linux'
 * `setpriv` asks the kernel for it (prctl PR_SET_PDEATHSIG). On other systems, a thread polls the parent's id every 500
 * ms, which costs 20 MB per process.
 */
import { spawnSync } from 'node:child_process'
import { Worker, workerData } from 'node:worker_threads'

interface Launcher {
  execPath: string
  /** Arguments before Node's own. */
  execArgv: string[]
  /** Arguments after the module's own. */
  args: string[]
}

const watchdogArgument = '--watchdog'

let launcher: Launcher | undefined

/** How to start a process that dies with this one. */
export function parentBoundLauncher(): Launcher {
  launcher ??= setprivWorks()
    ? { execPath: 'setpriv', execArgv: ['--pdeathsig', 'KILL', '--', process.execPath], args: [] }
    : { execPath: process.execPath, execArgv: [], args: [watchdogArgument] }
  return launcher
}

function setprivWorks(): boolean {
  return spawnSync('setpriv', ['--pdeathsig', 'KILL', '--', process.execPath, '--version']).status === 0
}

/** Called by the started process; starts the watchdog thread if the launcher asked for it. */
export function watchParent(): void {
  if (!process.argv.includes(watchdogArgument)) return
  new Worker(new URL(import.meta.url), { workerData: { watchdogOf: process.ppid } }).unref()
}

// This module is also the watchdog thread's entry point.
if (workerData?.watchdogOf !== undefined) {
  setInterval(() => {
    if (process.ppid !== workerData.watchdogOf) process.kill(process.pid, 'SIGKILL')
  }, 500)
}
