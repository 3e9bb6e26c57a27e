/** Metrics of attempts that this process executes, and of runs that finish in it. */
import { Counter, Histogram, type Registry } from 'prom-client'
import type { Claim } from '../../domain/runs/attempts.ts'
import type { FailureReason, FinishedRun, RunObserver, RunReason, RunStatus } from '../../domain/runs/run-state.ts'
import type { AttemptEnd, AttemptObserver } from '../../worker/attempt-observer.ts'

const durationBuckets = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600]
const latencyBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600]

const failures = {
  workflowFailed: 'failed',
  workflowExited: 'failed',
  outputInvalid: 'failed',
  contextNotSaved: 'failed',
  workerLost: 'failed',
} as const satisfies Record<FailureReason | 'workerLost', RunStatus>

const statusByReason: Partial<Record<RunReason | '', RunStatus>> = {
  '': 'succeeded',
  ...failures,
  timeLimit: 'timedOut',
  cancelRequested: 'cancelled',
  notStartedInTime: 'expired',
}

export class RunMetrics implements RunObserver {
  readonly #finished: Counter<'workflow' | 'status' | 'reason'>
  readonly #durations: Histogram<'workflow' | 'status'>
  readonly #expiredLeases: Counter

  constructor(registry: Registry) {
    const registers = [registry]
    this.#finished = new Counter({
      name: 'execution_service_finished_runs_total',
      help: 'Finished runs. `reason` is empty for successful runs.',
      labelNames: ['workflow', 'status', 'reason'],
      registers,
    })
    this.#durations = new Histogram({
      name: 'execution_service_run_duration_seconds',
      help: 'Duration of runs from the start of the first attempt to the end, including retries and the waits between them.',
      labelNames: ['workflow', 'status'],
      buckets: durationBuckets,
      registers,
    })
    this.#expiredLeases = new Counter({
      name: 'execution_service_expired_leases_total',
      help: 'Attempts that were lost because their worker stopped sending heartbeats.',
      registers,
    })
  }

  initializeWorkflow(workflow: string): void {
    for (const [reason, status] of Object.entries(statusByReason)) this.#finished.inc({ workflow, status, reason }, 0)
  }

  finished({ workflowId: workflow, status, reason, seconds }: FinishedRun): void {
    this.#finished.inc({ workflow, status, reason: reason ?? '' })
    if (seconds !== undefined) this.#durations.observe({ workflow, status }, seconds)
  }

  leasesExpired(count: number): void {
    this.#expiredLeases.inc(count)
  }
}

export class AttemptMetrics {
  readonly #latencies: Histogram<'workflow'>
  readonly #started: Counter<'workflow'>
  readonly #durations: Histogram<'workflow' | 'outcome'>

  constructor(registry: Registry) {
    const registers = [registry]
    this.#latencies = new Histogram({
      name: 'execution_service_start_latency_seconds',
      help: 'Time from when a run is ready to start until its first attempt starts.',
      labelNames: ['workflow'],
      buckets: latencyBuckets,
      registers,
    })
    this.#started = new Counter({
      name: 'execution_service_started_attempts_total',
      help: 'Started attempts.',
      labelNames: ['workflow'],
      registers,
    })
    this.#durations = new Histogram({
      name: 'execution_service_attempt_duration_seconds',
      help: 'Duration of attempts.',
      labelNames: ['workflow', 'outcome'],
      buckets: durationBuckets,
      registers,
    })
  }

  initializeWorkflow(workflow: string): void {
    this.#started.inc({ workflow }, 0)
  }

  observe({ workflowId: workflow, attempt, availableAt }: Claim): AttemptObserver {
    let startedAt: number | undefined
    return {
      started: () => {
        startedAt = performance.now()
        this.#started.inc({ workflow })
        // Never negative, although clocks of machines differ.
        if (attempt === 1) this.#latencies.observe({ workflow }, Math.max(0, Date.now() - availableAt) / 1000)
      },
      ended: (how: AttemptEnd) => {
        if (startedAt === undefined) return
        const outcome = how?.kind ?? 'notExecuted'
        this.#durations.observe({ workflow, outcome }, (performance.now() - startedAt) / 1000)
      },
    }
  }
}
