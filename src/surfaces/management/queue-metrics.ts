/** What the store knows of all runs and workers, whichever process asks: for gauges of which one is enough. */
import { setTimeout as delay } from 'node:timers/promises'
import { Gauge, type Registry } from 'prom-client'
import type { ConcurrencyLimits } from '../../domain/runs/concurrency-limits.ts'
import { type QueueDepth, queueDepth } from '../../domain/runs/queue-depth.ts'
import type { WaitingFor } from '../../domain/runs/run.ts'
import type { LiveWorker, Workers } from '../../domain/runs/workers.ts'
import type { Workflow } from '../../domain/workflows/workflow.ts'
import type { Transaction } from '../../storage/store.ts'
import { withinTime } from './within-time.ts'

export interface QueueMetricsDependencies {
  tx: Transaction
  workers: Workers
  /** They are told also while none of their runs waits. */
  workflows(): readonly Pick<Workflow, 'id' | 'concurrencyLimit'>[]
  /** How many runs of an account run at the same time; 0 for any number. */
  accountConcurrency?: number
}

interface Known {
  depth: QueueDepth
  workers: LiveWorker[]
  at: number
}

const waitingFor: WaitingFor[] = ['worker', 'delay', 'concurrencyLimit', 'browserContext']

/** What was read is told again for so many times as long as reading took: a hundred scrapers cost what a few do. */
const restFactor = 9
const restMillisecondsMin = 500

export function queueMetrics(registry: Registry, parts: QueueMetricsDependencies): void {
  const known = remembered(() => read(parts))
  const workflowIds = () => parts.workflows().map(({ id }) => id)
  const gauge = <Label extends string>(
    name: string,
    help: string,
    labelNames: Label[],
    fill: (gauge: Gauge<Label>, known: Known) => void,
  ) =>
    new Gauge({
      name: `execution_service_${name}`,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        this.reset()
        const found = await known()
        if (found) fill(this as Gauge<Label>, found)
        // Without a label, prom-client tells 0 of what was not set, which would be an untruth.
        else if (labelNames.length === 0) this.remove()
      },
    })
  gauge('waiting_runs', 'Queued runs, by what they wait for.', ['workflow', 'waiting_for'], (it, { depth }) => {
    for (const workflow of workflowIds()) for (const waiting_for of waitingFor) it.set({ workflow, waiting_for }, 0)
    for (const each of depth.waiting) it.set({ workflow: each.workflowId, waiting_for: each.waitingFor }, each.count)
  })
  gauge('running_runs', 'Runs of which an attempt runs now.', ['workflow'], (it, { depth }) => {
    for (const workflow of workflowIds()) it.set({ workflow }, 0)
    for (const { workflowId: workflow, count } of depth.running) it.set({ workflow }, count)
  })
  gauge(
    'oldest_waiting_run_seconds',
    'For how long the run that was queued first waits for a worker or a concurrency limit; 0 when none does.',
    ['workflow'],
    (it, { depth, at }) => {
      for (const workflow of workflowIds()) it.set({ workflow }, 0)
      for (const { workflowId: workflow, since } of depth.oldest) it.set({ workflow }, Math.max(0, at - since) / 1000)
    },
  )
  gauge('workers', 'Workers that are alive.', [], (it, { workers }) => it.set(workers.length))
  gauge('worker_slots', 'How many attempts they execute at the same time at most.', [], (it, { workers }) =>
    it.set(workers.reduce((sum, { slots }) => sum + slots, 0)),
  )
}

async function read({ tx, workers, workflows, accountConcurrency = 0 }: QueueMetricsDependencies): Promise<Known> {
  const limitOf = new Map(workflows().map(({ id, concurrencyLimit }) => [id, concurrencyLimit]))
  const limits: ConcurrencyLimits = {
    ofWorkflow: (id) => limitOf.get(id) ?? Number.POSITIVE_INFINITY,
    ofAccount: accountConcurrency || Number.POSITIVE_INFINITY,
  }
  const depth = await queueDepth(tx, limits)
  return { depth, workers: await workers.alive(), at: Date.now() }
}

/** One reading for all gauges of a scrape, and for those that come soon after it; nothing when the store is unavailable. */
function remembered(read: () => Promise<Known>): () => Promise<Known | undefined> {
  let reading: Promise<Known | undefined> | undefined
  const begin = () => {
    const begun = performance.now()
    const found = read().catch(() => undefined)
    const rest = () => Math.max(restMillisecondsMin, restFactor * (performance.now() - begun))
    void found
      .then(() => delay(rest(), undefined, { ref: false }))
      .then(() => {
        reading = undefined
      })
    return found
  }
  return () => {
    reading ??= begin()
    return withinTime(reading)
  }
}
