/** The Prometheus metrics of a process. No label contains data from a caller. */

import { setTimeout as delay } from 'node:timers/promises'
import {
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from 'prom-client'
import packageJson from '../../../package.json' with { type: 'json' }
import type { LimitRate } from '../../contract/stages.ts'
import { countSignIns } from '../../domain/browser-contexts/sign-ins.sql.ts'
import type { Claim } from '../../domain/queue/attempts.ts'
import type { LiveWorker, Workers } from '../../domain/queue/workers.ts'
import type { WaitingFor } from '../../domain/runs/run.ts'
import type { FailureReason, RunObserver, RunReason, RunStatus } from '../../domain/runs/run-state.ts'
import { findNextDue } from '../../domain/schedules/schedules.sql.ts'
import { type QueueDepth, type QueueLimits, queueDepth } from '../../domain/statistics/queue-depth.ts'
import type { ObserveWebhook } from '../../domain/webhooks/webhook-dispatcher.ts'
import { webhookBacklog } from '../../domain/webhooks/webhooks.sql.ts'
import type { Workflow } from '../../domain/workflows/workflow.ts'
import { limitPer } from '../../domain/workflows/workflow-limits.ts'
import { browserContextContract, executionContract } from '../../openapi/served-documents.ts'
import type { Commit, Store, Transaction } from '../../storage/store.ts'
import type { AttemptEnd, AttemptObserver, ObserveAttempt } from '../../worker/attempt/attempt-observer.ts'
import { labelledInQueue, otherWorkflows, WorkflowLabels } from './workflow-labels.ts'

type SerializedMetrics = MetricObjectWithValues<MetricValue<string>>[]

/** Defines metrics of a registry, with the prefix that all have in common. */
function define(registry: Registry) {
  const common = <Label extends string>(name: string, help: string, labelNames: Label[]) => ({
    name: `execution_service_${name}`,
    help,
    labelNames,
    registers: [registry],
  })
  return {
    counter: <Label extends string = never>(name: string, help: string, labelNames: Label[] = []) =>
      new Counter(common(name, help, labelNames)),
    histogram: <Label extends string = never>(name: string, help: string, buckets: number[], labels: Label[] = []) =>
      new Histogram({ ...common(name, help, labels), buckets }),
    gauge: <Label extends string = never>(
      name: string,
      help: string,
      labelNames: Label[],
      collect?: (gauge: Gauge<Label>) => void | Promise<void>,
    ) => {
      const gauge: Gauge<Label> = new Gauge({
        ...common(name, help, labelNames),
        ...(collect && { collect: () => collect(gauge) }),
      })
      return gauge
    },
  }
}

/** Interval of the samples of the event loop's lag, which include it. Every 10 ms, they cost 3 ms of CPU a second. */
const eventLoopMilliseconds = 100

export class Metrics {
  readonly registry = new Registry()
  readonly runs: RunMetrics
  readonly #labels = new WorkflowLabels()
  #attempts: ReturnType<typeof attemptMetrics> | undefined

  /** @param process a label of all metrics, because a service also exposes the metrics of its worker. */
  constructor(process: 'service' | 'worker', store: Store) {
    this.registry.setDefaultLabels({ process })
    collectDefaultMetrics({ register: this.registry, eventLoopMonitoringPrecision: eventLoopMilliseconds })
    this.runs = runMetrics(this.registry, this.#labels)
    store.observe(commitMetrics(this.registry))
  }

  /** All metrics in Prometheus' text format, with those of the worker process if `other` is given. */
  async text(other?: unknown): Promise<string> {
    const processes = [await this.registry.getMetricsAsJSON(), ...(other ? [other as SerializedMetrics] : [])]
    // The label `process` keeps the values apart. Other aggregators of prom-client drop some metrics.
    const summed = processes.map((metrics) => metrics.map((metric) => ({ ...metric, aggregator: 'sum' as const })))
    return AggregatorRegistry.aggregate(summed).metrics()
  }

  /** Metrics of each process with a management address. Their sum over processes has no meaning. */
  registerInstallationMetrics({ ready, ...queue }: InstallationMetricsDependencies): void {
    queueMetrics(this.registry, queue)
    const { gauge } = define(this.registry)
    gauge('ready', 'Whether the process is ready (1) or not (0), as `/readyz` reports.', [], async (it) =>
      it.set((await withTimeout(ready().then(() => 1)).catch(() => 0)) ?? 0),
    )
    const build = {
      version: packageJson.version,
      execution_document: executionContract.documentHash,
      browser_context_document: browserContextContract.documentHash,
    }
    const help = 'Always 1. Labels are the version and the hashes of the OpenAPI documents.'
    gauge('build_info', help, Object.keys(build)).set(build, 1)
  }

  registerRequestMetrics(followers: () => { run: number; account: number }) {
    const { counter, gauge, histogram } = define(this.registry)
    const requestBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30]
    const labels = ['surface', 'operation', 'status']
    const requests = histogram('request_duration_seconds', 'Duration of requests.', requestBuckets, labels)
    const refused = 'Requests refused by the rate limit of their API key.'
    const rateLimited = counter('rate_limited_requests_total', refused, ['surface'])
    const undocumented = counter(
      'undocumented_responses_total',
      'Responses and events that did not match their OpenAPI document, and were sent nevertheless.',
      ['surface'],
    )
    const followed = 'Event streams and waiting requests that follow a run or all runs of an account.'
    gauge('followers', followed, ['of'], (it) => {
      for (const [of, count] of Object.entries(followers())) it.set({ of }, count)
    })
    return {
      observe: (surface: string) => (operation: string, _method: string, status: number, seconds: number) =>
        requests.observe({ surface, operation, status: String(status) }, seconds),
      countMismatch(surface: string) {
        undocumented.inc({ surface }, 0)
        return () => undocumented.inc({ surface })
      },
      admit<P>(surface: string, admit: LimitRate<P>): LimitRate<P> {
        rateLimited.inc({ surface }, 0)
        return async (principal, client) => {
          const status = await admit(principal, client)
          if (status.isExceeded) rateLimited.inc({ surface })
          return status
        }
      },
    }
  }

  registerWebhookMetrics(): ObserveWebhook {
    return webhookMetrics(this.registry)
  }

  registerAttemptMetrics(): ObserveAttempt {
    const attempts = attemptMetrics(this.registry, this.#labels)
    this.#attempts = attempts
    return (claim) => attempts.observe(claim)
  }

  /** @returns a function that is called with the processes of the worker. */
  registerProcessMetrics(): (count: () => { busy: number; idle: number; idleBytes: number }) => void {
    const { gauge } = define(this.registry)
    return (count) => {
      gauge('executor_processes', 'Processes of the worker that execute a run, or wait for one.', ['state'], (it) => {
        const { busy, idle } = count()
        it.set({ state: 'busy' }, busy)
        it.set({ state: 'idle' }, idle)
      })
      const help =
        'Memory of the processes that wait for a run, when their last one ended. `IDLE_PROCESSES_MB` limits it.'
      gauge('idle_processes_bytes', help, [], (it) => it.set(count().idleBytes))
    }
  }

  /**
   * Creates the counters of deployed workflows with value 0, and removes those of others. Prometheus derives an increase from
   * two samples, and would miss the first increment of a counter that appears with it.
   */
  initializeWorkflows(workflows: readonly Pick<Workflow, 'id'>[]): void {
    for (const id of this.#labels.deployed(workflows.map((each) => each.id))) {
      this.runs.initializeWorkflow(id)
      this.#attempts?.initializeWorkflow(id)
    }
  }
}

interface InstallationMetricsDependencies extends QueueMetricsDependencies {
  /** @throws if the process is not ready. */
  ready(): Promise<void>
}

export type SurfaceMetrics = ReturnType<Metrics['registerRequestMetrics']>

function commitMetrics(registry: Registry): (commit: Commit) => void {
  const { counter, histogram } = define(registry)
  const seconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]
  const duration = histogram('durable_write_seconds', 'Duration of transactions until they are durable.', seconds)
  const sizes = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
  const batchSize = histogram('durable_write_batch_size', 'Number of writes per transaction.', sizes)
  const failures = counter('store_unavailable_total', 'Transactions that failed because the store was unavailable.')
  return ({ unavailable, seconds, writes }) => {
    if (unavailable) return failures.inc()
    duration.observe(seconds)
    batchSize.observe(writes)
  }
}

// Gauges of the queue, the workers, schedules and webhooks, read from the store: all processes export the same values.

interface QueueMetricsDependencies {
  tx: Transaction
  workers: Workers
  /** Their gauges are 0 without runs. */
  workflows(): readonly Pick<Workflow, 'id' | 'concurrency' | 'throttle'>[]
  /** Maximum concurrent runs of an account; 0 for no limit. */
  accountConcurrency?: number
}

interface Snapshot {
  depth: QueueDepth
  workers: LiveWorker[]
  /** When the next schedule is due, or has been due for longest; `null` if none is. */
  nextSchedule: number | null
  webhooks: { dueSince: number | null; disabledEndpoints: number }
  signIns: { needed: number; oldest: number | null }
  at: number
}

const waitingHelp =
  'Queued and waiting runs, by what they wait for: also a time (`sleep`), an answer (`answer`), a called run (`run`) or a session (`signIn`). Runs that wait for a key with both a limit and a rate count as `concurrencyLimit`.'

const waitingReasons: WaitingFor[] = ['worker', 'delay', 'concurrencyLimit', 'throttle', 'browserContext']

/** A snapshot is cached for this many times its query time, so that a hundred scrapers cost as much as a few. */
const cacheFactor = 9
const cacheMillisecondsMin = 500

/** Defines a gauge that is set from the snapshot. */
type DefineGauge = <Label extends string>(
  name: string,
  help: string,
  labelNames: Label[],
  fill: (gauge: Gauge<Label>, snapshot: Snapshot) => void,
) => void

export function queueMetrics(registry: Registry, dependencies: QueueMetricsDependencies): void {
  const snapshot = cached(() => readSnapshot(dependencies))
  const gauge: DefineGauge = (name, help, labelNames, fill) =>
    define(registry).gauge(name, help, labelNames, async (it) => {
      it.reset()
      const found = await snapshot()
      if (found) fill(it, found)
      // prom-client exports 0 for a gauge without labels that was not set, which would be wrong.
      else if (labelNames.length === 0) it.remove()
    })
  runsInQueueMetrics(gauge, () => dependencies.workflows().map(({ id }) => id))
  gauge('workers', 'Live workers.', [], (it, { workers }) => it.set(workers.length))
  gauge('worker_slots', 'Total slots of live workers.', [], (it, { workers }) =>
    it.set(workers.reduce((sum, { slots }) => sum + slots, 0)),
  )
  gauge(
    'schedule_delay_seconds',
    'For how long the schedule that is due for longest has been due; 0 without one.',
    [],
    (it, { nextSchedule, at }) => it.set(Math.max(0, at - (nextSchedule ?? at)) / 1000),
  )
  gauge(
    'webhook_delay_seconds',
    'For how long the webhook delivery that is due for longest has been due; 0 without one.',
    [],
    (it, { webhooks, at }) => it.set(Math.max(0, at - (webhooks.dueSince ?? at)) / 1000),
  )
  gauge(
    'disabled_webhook_endpoints',
    'Webhook endpoints that were disabled because deliveries failed.',
    [],
    (it, found) => it.set(found.webhooks.disabledEndpoints),
  )
  gauge('contexts_needing_sign_in', 'Browser contexts that need a person to sign in.', [], (it, { signIns }) =>
    it.set(signIns.needed),
  )
  gauge(
    'oldest_session_seconds',
    'How long ago the browser context was signed in whose session is the oldest; 0 without one.',
    [],
    (it, { signIns, at }) => it.set(Math.max(0, at - (signIns.oldest ?? at)) / 1000),
  )
}

function runsInQueueMetrics(gauge: DefineGauge, workflowIds: () => string[]): void {
  const toLabels = ({ depth }: Snapshot) => {
    const labelled = labelledInQueue(depth, workflowIds())
    return { labelled, labelOf: (id: string) => (labelled.has(id) ? id : otherWorkflows) }
  }
  gauge('waiting_runs', waitingHelp, ['workflow', 'waiting_for'], (it, found) => {
    const { labelled, labelOf } = toLabels(found)
    for (const workflow of labelled) for (const waiting_for of waitingReasons) it.set({ workflow, waiting_for }, 0)
    for (const { workflowId, waitingFor, count } of found.depth.waiting)
      it.inc({ workflow: labelOf(workflowId), waiting_for: waitingFor }, count)
  })
  gauge('running_runs', 'Running runs.', ['workflow'], (it, found) => {
    const { labelled, labelOf } = toLabels(found)
    for (const workflow of labelled) it.set({ workflow }, 0)
    for (const { workflowId, count } of found.depth.running) it.inc({ workflow: labelOf(workflowId) }, count)
  })
  gauge(
    'oldest_waiting_run_seconds',
    'How long the oldest queued run has been waiting for a worker or a concurrency limit; 0 without one.',
    ['workflow'],
    (it, found) => {
      const { labelled, labelOf } = toLabels(found)
      for (const workflow of labelled) it.set({ workflow }, 0)
      // The oldest last, for the workflows that share a label.
      for (const { workflowId, since } of found.depth.oldest.toSorted((a, b) => b.since - a.since))
        it.set({ workflow: labelOf(workflowId) }, Math.max(0, found.at - since) / 1000)
    },
  )
}

async function readSnapshot(dependencies: QueueMetricsDependencies): Promise<Snapshot> {
  const { tx, workers, workflows, accountConcurrency = 0 } = dependencies
  const byId = new Map(workflows().map((workflow) => [workflow.id, workflow]))
  const limits: QueueLimits = {
    ofWorkflow: ({ workflow_id }) => limitPer('workflow', byId.get(workflow_id)),
    ofWorkflowInAccount: ({ workflow_id }) => limitPer('account', byId.get(workflow_id)),
    ofAccount: accountConcurrency || Number.POSITIVE_INFINITY,
    throttleOf: ({ workflow_id }) => byId.get(workflow_id)?.throttle,
    isLimitedPerKey: (workflowId) =>
      byId.get(workflowId)?.throttle?.per !== 'key' || limitPer('key', byId.get(workflowId)) < Number.POSITIVE_INFINITY,
  }
  const depth = await queueDepth(tx, limits)
  const [schedule] = await tx.all(findNextDue, [])
  const [webhooks = { dueSince: null, disabledEndpoints: 0 }] = await tx.all(webhookBacklog, [])
  const [signIns = { needed: 0, oldest: null }] = await tx.all(countSignIns, [])
  const nextSchedule = schedule?.at ?? null
  return { depth, workers: await workers.alive(), nextSchedule, webhooks, signIns, at: Date.now() }
}

/** Shares a snapshot among the gauges and with scrapes soon after; `undefined` if the store is unavailable. */
function cached(read: () => Promise<Snapshot>): () => Promise<Snapshot | undefined> {
  let current: Promise<Snapshot | undefined> | undefined
  const start = () => {
    const startedAt = performance.now()
    const snapshot = read().catch(() => undefined)
    const cacheMilliseconds = () => Math.max(cacheMillisecondsMin, cacheFactor * (performance.now() - startedAt))
    void snapshot
      .then(() => delay(cacheMilliseconds(), undefined, { ref: false }))
      .then(() => {
        current = undefined
      })
    return snapshot
  }
  return () => {
    current ??= start()
    return withTimeout(current)
  }
}

/** Prometheus' default timeout for a whole scrape is 10 s. */
const timeoutMilliseconds = 2000

/** Resolves to `undefined` after 2 s, so that a scrape does not wait for an unresponsive store. */
function withTimeout<Result>(result: Promise<Result>): Promise<Result | undefined> {
  return Promise.race([result, delay(timeoutMilliseconds, undefined, { ref: false })])
}

// Metrics of attempts that this process executes, and of runs that finish in it.

const durationBuckets = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600]
const latencyBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600]

const failures = {
  workflowFailed: 'failed',
  nonRetryable: 'failed',
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
  needsSignIn: 'expired',
}

interface RunMetrics extends RunObserver {
  initializeWorkflow(workflow: string): void
}

function runMetrics(registry: Registry, workflows: WorkflowLabels): RunMetrics {
  const { counter, histogram, gauge } = define(registry)
  const labels = ['workflow', 'status', 'reason']
  const finished = counter('finished_runs_total', 'Finished runs. `reason` is empty for successful runs.', labels)
  const duration =
    'Duration of runs from the start of the first attempt to the end, retries and the delays between them included; of runs that have waited, the execution of the last attempt.'
  const durations = histogram('run_duration_seconds', duration, durationBuckets, ['workflow', 'status'])
  const lost = 'Attempts that were lost because their worker stopped sending heartbeats.'
  const expiredLeases = counter('expired_leases_total', lost)
  const does = "Whether this process does the store's maintenance (1) or not (0). One process of an installation does."
  const maintenance = gauge('maintenance', does, [])
  return {
    initializeWorkflow(workflow) {
      for (const [reason, status] of Object.entries(statusByReason))
        finished.inc(workflows.keep(finished, workflow, { status, reason }), 0)
    },
    finished({ workflowId, status, reason, seconds }) {
      finished.inc(workflows.of(finished, workflowId, { status, reason: reason ?? '' }))
      if (seconds !== undefined) durations.observe(workflows.of(durations, workflowId, { status }), seconds)
    },
    leasesExpired: (count) => expiredLeases.inc(count),
    ...sessionMetrics(registry),
    maintains: (isOwner) => maintenance.set(isOwner ? 1 : 0),
  }
}

const sessionBuckets = [60, 300, 900, 3600, 14_400, 43_200, 86_400, 259_200, 604_800, 2_592_000]
const signInStatuses = ['succeeded', 'failed', 'timedOut', 'cancelled'] as const

function sessionMetrics(registry: Registry): Pick<RunObserver, 'signedOut' | 'signInEnded'> {
  const { counter, histogram } = define(registry)
  const signedOut = counter('signed_out_total', 'Attempts that found that their browser context is signed out.')
  const help = 'Ended checks and sign-ins of browser contexts: by the clock, by a workflow, or by a person.'
  const signIns = counter('sign_ins_total', help, ['kind', 'status'])
  for (const kind of ['check', 'signIn', 'byHand'])
    for (const status of signInStatuses) signIns.inc({ kind, status }, 0)
  const age = 'Age of sessions of browser contexts when a run found that they had ended.'
  const ages = histogram('session_age_seconds', age, sessionBuckets)
  return {
    signedOut({ sessionSeconds }) {
      signedOut.inc()
      if (sessionSeconds !== undefined) ages.observe(sessionSeconds)
    },
    signInEnded: ({ kind, status }) => signIns.inc({ kind, status }),
  }
}

function attemptMetrics(registry: Registry, workflows: WorkflowLabels) {
  const { counter, histogram } = define(registry)
  const latency = 'Time from when a run is ready to start until its first attempt starts.'
  const latencies = histogram('start_latency_seconds', latency, latencyBuckets, ['workflow'])
  const started = counter('started_attempts_total', 'Started attempts.', ['workflow'])
  const labels = ['workflow', 'outcome']
  const durations = histogram('attempt_duration_seconds', 'Duration of attempts.', durationBuckets, labels)
  return {
    initializeWorkflow: (workflow: string) => started.inc(workflows.keep(started, workflow, {}), 0),
    observe({ workflowId, attempt, availableAt }: Claim): AttemptObserver {
      let startedAt: number | undefined
      return {
        started: () => {
          startedAt = performance.now()
          started.inc(workflows.of(started, workflowId, {}))
          // Never negative, although clocks of machines differ.
          if (attempt > 1) return
          latencies.observe(workflows.of(latencies, workflowId, {}), Math.max(0, Date.now() - availableAt) / 1000)
        },
        ended: (how: AttemptEnd) => {
          if (startedAt === undefined) return
          const outcome = how?.kind ?? 'notExecuted'
          const seconds = (performance.now() - startedAt) / 1000
          durations.observe(workflows.of(durations, workflowId, { outcome }), seconds)
        },
      }
    },
  }
}

// Metrics of the webhook requests that this process sends.

const outcomes = ['delivered', 'retried', 'failed'] as const

/** A request is aborted after ten seconds. */
const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

function webhookMetrics(registry: Registry): ObserveWebhook {
  const { counter, histogram } = define(registry)
  const help = 'Webhook requests: `delivered` with a 2xx response, `retried` later, or `failed` for the last time.'
  const requests = counter('webhook_requests_total', help, ['outcome'])
  const untilResponse = 'Duration of webhook requests until their response or error.'
  const duration = histogram('webhook_request_duration_seconds', untilResponse, buckets)
  for (const outcome of outcomes) requests.inc({ outcome }, 0)
  return (outcome, seconds) => {
    requests.inc({ outcome })
    duration.observe(seconds)
  }
}
