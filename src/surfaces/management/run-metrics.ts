/** What a process measures of the attempts that it executes, and of the runs that come to their end in it. */
import { Counter, Histogram, type Registry } from 'prom-client'
import type { Claim } from '../../domain/runs/attempts.ts'
import type { FailureReason, FinishedRun, RunObserver, RunReason, RunStatus } from '../../domain/runs/run-state.ts'
import type { AttemptEnd, AttemptObserver } from '../../worker/attempt-observer.ts'

/** From a moment to an hour. */
const durations = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600]
const latencies = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600]

const failures = {
  workflowFailed: 'failed',
  workflowExited: 'failed',
  outputInvalid: 'failed',
  contextNotSaved: 'failed',
  workerLost: 'failed',
} as const satisfies Record<FailureReason | 'workerLost', RunStatus>

/** How a run can end: each reason, and its status. */
const endings: Partial<Record<RunReason | '', RunStatus>> = {
  '': 'succeeded',
  ...failures,
  timeLimit: 'timedOut',
  cancelRequested: 'cancelled',
  notStartedInTime: 'expired',
}

/** Labels are workflows and words of the service's own: nothing that a caller sent. */
export class RunMetrics implements RunObserver {
  readonly #finished: Counter<'workflow' | 'status' | 'reason'>
  readonly #durations: Histogram<'workflow' | 'status'>
  readonly #leasesExpired: Counter

  constructor(registry: Registry) {
    const registers = [registry]
    this.#finished = new Counter({
      name: 'execution_service_finished_runs_total',
      help: 'Runs that finished, by workflow, status and reason (empty where there is none).',
      labelNames: ['workflow', 'status', 'reason'],
      registers,
    })
    this.#durations = new Histogram({
      name: 'execution_service_run_duration_seconds',
      help: "From the start of a run's first attempt to its end, retries and what lies between them included.",
      labelNames: ['workflow', 'status'],
      buckets: durations,
      registers,
    })
    this.#leasesExpired = new Counter({
      name: 'execution_service_expired_leases_total',
      help: 'Attempts whose worker was silent past its lease, so that their runs were queued again or failed.',
      registers,
    })
  }

  /** Tells 0 of what has not happened to runs of a workflow. */
  initializeWorkflow(workflow: string): void {
    for (const [reason, status] of Object.entries(endings)) this.#finished.inc({ workflow, status, reason }, 0)
  }

  finished({ workflowId: workflow, status, reason, seconds }: FinishedRun): void {
    this.#finished.inc({ workflow, status, reason: reason ?? '' })
    if (seconds !== undefined) this.#durations.observe({ workflow, status }, seconds)
  }

  leasesExpired(count: number): void {
    this.#leasesExpired.inc(count)
  }
}

/** Of a process that executes attempts. */
export class AttemptMetrics {
  readonly #measures: Measures

  constructor(registry: Registry) {
    const registers = [registry]
    this.#measures = {
      latency: new Histogram({
        name: 'execution_service_start_latency_seconds',
        help: "From when a run could have started to its first attempt's start.",
        labelNames: ['workflow'],
        buckets: latencies,
        registers,
      }),
      started: new Counter({
        name: 'execution_service_started_attempts_total',
        help: 'Attempts that were started.',
        labelNames: ['workflow'],
        registers,
      }),
      durations: new Histogram({
        name: 'execution_service_attempt_duration_seconds',
        help: 'From the start of an attempt to its end, by outcome.',
        labelNames: ['workflow', 'outcome'],
        buckets: durations,
        registers,
      }),
    }
  }

  /** Tells 0 as long as no attempt of a workflow was started. */
  initializeWorkflow(workflow: string): void {
    this.#measures.started.inc({ workflow }, 0)
  }

  watch(claim: Claim): AttemptObserver {
    return new MeasuredAttempt(this.#measures, claim)
  }
}

interface Measures {
  latency: Histogram<'workflow'>
  started: Counter<'workflow'>
  durations: Histogram<'workflow' | 'outcome'>
}

class MeasuredAttempt implements AttemptObserver {
  readonly #measures: Measures
  readonly #claim: Claim
  #startedAt: number | undefined

  constructor(measures: Measures, claim: Claim) {
    this.#measures = measures
    this.#claim = claim
  }

  started(): void {
    const { workflowId: workflow, attempt, availableAt } = this.#claim
    this.#startedAt = performance.now()
    this.#measures.started.inc({ workflow })
    // Clocks of several machines may differ.
    if (attempt === 1) this.#measures.latency.observe({ workflow }, Math.max(0, Date.now() - availableAt) / 1000)
  }

  ended(how: AttemptEnd): void {
    if (this.#startedAt === undefined) return
    const outcome = how?.kind ?? 'notCarriedThrough'
    const seconds = (performance.now() - this.#startedAt) / 1000
    this.#measures.durations.observe({ workflow: this.#claim.workflowId, outcome }, seconds)
  }
}
