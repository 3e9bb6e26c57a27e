/** What a worker is told when it is made. */

import type { RunObserver } from '../domain/runs/run-observer.ts'
import type { Retention } from '../maintenance/retention.ts'
import type { BrowserOptions } from './browser/browser-host.ts'
import type { WatchAttempt } from './watch.ts'

export interface WorkerOptions {
  workflowsDirectory: string
  /** How many attempts it executes at the same time. */
  slots: number
  /** A worker that is silent for this long has lost its runs. */
  leaseSeconds: number
  abortGraceSeconds: number
  memoryMegabytesMax: number
  /** Where the browser is that workflows use. */
  browser: BrowserOptions
  /** How many versions of a browser context are kept. */
  contextVersionsKept: number
  retention: Retention
  /** How many runs of one account may run at the same time, over all workers; 0, as without it, for any number. */
  accountConcurrency?: number
  /** How long the workflows may take to load. */
  loadSecondsMax?: number
  /** Told of what becomes of runs. */
  observer?: RunObserver
  /** Who watches its attempts. */
  watches?: readonly WatchAttempt[]
}
