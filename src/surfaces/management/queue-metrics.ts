/** Gauges of the queue, the workers, schedules and webhooks, read from the store: all processes export the same values. */
import { setTimeout as delay } from 'node:timers/promises'
import { Gauge, type Registry } from 'prom-client'
import { type QueueDepth, type QueueLimits, queueDepth } from '../../domain/runs/queue-depth.ts'
import type { WaitingFor } from '../../domain/runs/run.ts'
import type { LiveWorker, Workers } from '../../domain/runs/workers.ts'
import { findNextDue } from '../../domain/schedules/schedules.sql.ts'
import { webhookBacklog } from '../../domain/webhooks/webhooks.sql.ts'
import { limitPer } from '../../domain/workflows/concurrency.ts'
import type { Workflow } from '../../domain/workflows/workflow.ts'
import type { Transaction } from '../../storage/store.ts'

export interface QueueMetricsDependencies {
  tx: Transaction
  workers: Workers
  /** Their gauges are 0 without runs. */
  workflows(): readonly Pick<Workflow, 'id' | 'concurrencyLimit' | 'concurrency' | 'throttle'>[]
  /** Maximum concurrent runs of an account; 0 for no limit. */
  accountConcurrency?: number
}

interface Snapshot {
  depth: QueueDepth
  workers: LiveWorker[]
  /** When the next schedule is due, or has been due for longest; `null` if none is. */
  nextSchedule: number | null
  webhooks: { dueSince: number | null; disabledEndpoints: number }
  at: number
}

const waitingHelp =
  'Queued runs, by what they wait for. Runs that wait for a key with both a limit and a rate count as `concurrencyLimit`.'

const waitingReasons: WaitingFor[] = ['worker', 'delay', 'concurrencyLimit', 'throttle', 'browserContext']

/** A snapshot is cached for this many times its query time, so that a hundred scrapers cost as much as a few. */
const cacheFactor = 9
const cacheMillisecondsMin = 500

export function queueMetrics(registry: Registry, dependencies: QueueMetricsDependencies): void {
  const snapshot = cached(() => readSnapshot(dependencies))
  const workflowIds = () => dependencies.workflows().map(({ id }) => id)
  const gauge = <Label extends string>(
    name: string,
    help: string,
    labelNames: Label[],
    fill: (gauge: Gauge<Label>, snapshot: Snapshot) => void,
  ) =>
    new Gauge({
      name: `execution_service_${name}`,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        this.reset()
        const found = await snapshot()
        if (found) fill(this as Gauge<Label>, found)
        // prom-client exports 0 for a gauge without labels that was not set, which would be wrong.
        else if (labelNames.length === 0) this.remove()
      },
    })
  gauge('waiting_runs', waitingHelp, ['workflow', 'waiting_for'], (it, { depth }) => {
    for (const workflow of workflowIds()) for (const waiting_for of waitingReasons) it.set({ workflow, waiting_for }, 0)
    for (const each of depth.waiting) it.set({ workflow: each.workflowId, waiting_for: each.waitingFor }, each.count)
  })
  gauge('running_runs', 'Running runs.', ['workflow'], (it, { depth }) => {
    for (const workflow of workflowIds()) it.set({ workflow }, 0)
    for (const { workflowId: workflow, count } of depth.running) it.set({ workflow }, count)
  })
  gauge(
    'oldest_waiting_run_seconds',
    'How long the oldest queued run has been waiting for a worker or a concurrency limit; 0 without one.',
    ['workflow'],
    (it, { depth, at }) => {
      for (const workflow of workflowIds()) it.set({ workflow }, 0)
      for (const { workflowId: workflow, since } of depth.oldest) it.set({ workflow }, Math.max(0, at - since) / 1000)
    },
  )
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
  const nextSchedule = schedule?.at ?? null
  return { depth, workers: await workers.alive(), nextSchedule, webhooks, at: Date.now() }
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
export function withTimeout<Result>(result: Promise<Result>): Promise<Result | undefined> {
  return Promise.race([result, delay(timeoutMilliseconds, undefined, { ref: false })])
}
