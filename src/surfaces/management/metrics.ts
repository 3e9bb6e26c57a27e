/** The Prometheus metrics of a process. No label contains data from a caller. */
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
import type { ObserveWebhook } from '../../domain/webhooks/webhook-dispatcher.ts'
import type { Workflow } from '../../domain/workflows/workflow.ts'
import { browserContextContract, executionContract } from '../../openapi/served-documents.ts'
import type { Commit, Store } from '../../storage/store.ts'
import type { ObserveAttempt } from '../../worker/attempt-observer.ts'
import { type QueueMetricsDependencies, queueMetrics, withTimeout } from './queue-metrics.ts'
import { AttemptMetrics, RunMetrics } from './run-metrics.ts'
import { webhookMetrics } from './webhook-metrics.ts'

type SerializedMetrics = MetricObjectWithValues<MetricValue<string>>[]

export class Metrics {
  readonly registry = new Registry()
  readonly runs: RunMetrics
  #attempts: AttemptMetrics | undefined

  /** @param process a label of all metrics, because a service also exposes the metrics of its worker. */
  constructor(process: 'service' | 'worker', store: Store) {
    this.registry.setDefaultLabels({ process })
    collectDefaultMetrics({ register: this.registry })
    this.runs = new RunMetrics(this.registry)
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
    const registers = [this.registry]
    queueMetrics(this.registry, queue)
    new Gauge({
      name: 'execution_service_ready',
      help: 'Whether the process is ready (1) or not (0), as `/readyz` reports.',
      registers,
      async collect() {
        this.set((await withTimeout(ready().then(() => 1)).catch(() => 0)) ?? 0)
      },
    })
    const build = {
      version: packageJson.version,
      execution_document: executionContract.documentHash,
      browser_context_document: browserContextContract.documentHash,
    }
    const info = new Gauge({
      name: 'execution_service_build_info',
      help: 'Always 1. Labels are the version and the hashes of the OpenAPI documents.',
      labelNames: Object.keys(build),
      registers,
    })
    info.set(build, 1)
  }

  registerRequestMetrics(followers: () => { run: number; account: number }) {
    const registers = [this.registry]
    const requests = new Histogram({
      name: 'execution_service_request_duration_seconds',
      help: 'Duration of requests.',
      labelNames: ['surface', 'operation', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
      registers,
    })
    const rateLimited = new Counter({
      name: 'execution_service_rate_limited_requests_total',
      help: 'Requests refused by the rate limit of their API key.',
      labelNames: ['surface'],
      registers,
    })
    new Gauge({
      name: 'execution_service_followers',
      help: 'Event streams and waiting requests that follow a run or all runs of an account.',
      labelNames: ['of'],
      registers,
      collect() {
        for (const [of, count] of Object.entries(followers())) this.set({ of }, count)
      },
    })
    return {
      observe: (surface: string) => (operation: string, _method: string, status: number, seconds: number) =>
        requests.observe({ surface, operation, status: String(status) }, seconds),
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
    const attempts = new AttemptMetrics(this.registry)
    this.#attempts = attempts
    return (claim) => attempts.observe(claim)
  }

  /**
   * Creates the counters of all workflows with value 0. Prometheus derives an increase from two samples, and would miss
   * the first increment of a counter that appears with it.
   */
  initializeWorkflows(workflows: readonly Pick<Workflow, 'id'>[]): void {
    for (const { id } of workflows) {
      this.runs.initializeWorkflow(id)
      this.#attempts?.initializeWorkflow(id)
    }
  }
}

export interface InstallationMetricsDependencies extends QueueMetricsDependencies {
  /** @throws if the process is not ready. */
  ready(): Promise<void>
}

export type SurfaceMetrics = ReturnType<Metrics['registerRequestMetrics']>

function commitMetrics(registry: Registry): (commit: Commit) => void {
  const registers = [registry]
  const duration = new Histogram({
    name: 'execution_service_durable_write_seconds',
    help: 'Duration of transactions until they are durable.',
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
    registers,
  })
  const batchSize = new Histogram({
    name: 'execution_service_durable_write_batch_size',
    help: 'Number of writes per transaction.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
    registers,
  })
  const failures = new Counter({
    name: 'execution_service_store_unavailable_total',
    help: 'Transactions that failed because the store was unavailable.',
    registers,
  })
  return ({ unavailable, seconds, writes }) => {
    if (unavailable) return failures.inc()
    duration.observe(seconds)
    batchSize.observe(writes)
  }
}
