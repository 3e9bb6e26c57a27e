/** What a process counts and measures, for Prometheus. No label holds anything that a caller sent. */
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
import type { LimitRate } from '../../contract/stages.ts'
import type { Workflow } from '../../domain/workflows/workflow.ts'
import type { Commit, Store } from '../../storage/store.ts'
import type { ObserveAttempt } from '../../worker/attempt-observer.ts'
import type { build } from './build.ts'
import { type QueueMetricsDependencies, queueMetrics } from './queue-metrics.ts'
import { AttemptMetrics, RunMetrics } from './run-metrics.ts'
import { withinTime } from './within-time.ts'

/** What another process has measured, as it sends it. */
type Measured = MetricObjectWithValues<MetricValue<string>>[]

export class Metrics {
  readonly registry = new Registry()
  /** To be told what becomes of runs in this process. */
  readonly runs: RunMetrics
  #attempts: AttemptMetrics | undefined

  /** @param process tells this process from others that are read through the same address, as a label of everything. */
  constructor(process: 'service' | 'worker', store: Store) {
    this.registry.setDefaultLabels({ process })
    collectDefaultMetrics({ register: this.registry })
    this.runs = new RunMetrics(this.registry)
    store.observe(commitMetrics(this.registry))
  }

  /** Everything that was measured here, and in another process if it has told: as text for Prometheus. */
  async text(other?: unknown): Promise<string> {
    const measured = [await this.registry.getMetricsAsJSON(), ...(other ? [other as Measured] : [])]
    // Each value stands alone, by the label of its process; prom-client's own way leaves some metrics out.
    const summed = measured.map((metrics) => metrics.map((metric) => ({ ...metric, aggregator: 'sum' as const })))
    return AggregatorRegistry.aggregate(summed).metrics()
  }

  /** What each process with a management address tells, of itself and of the store: sums over processes mean nothing. */
  registerInstallationMetrics({ ready, build, ...queue }: AddressMetricsDependencies): void {
    const registers = [this.registry]
    queueMetrics(this.registry, queue)
    new Gauge({
      name: 'execution_service_ready',
      help: 'Whether requests may be sent here: what /readyz says.',
      registers,
      async collect() {
        this.set((await withinTime(ready().then(() => 1)).catch(() => 0)) ?? 0)
      },
    })
    const info = new Gauge({
      name: 'execution_service_build_info',
      help: 'The version, and the hashes of the documents that it follows.',
      labelNames: Object.keys(build),
      registers,
    })
    info.set(build, 1)
  }

  /** What is told of requests. */
  registerRequestMetrics(followers: () => { run: number; account: number }) {
    const registers = [this.registry]
    const requests = new Histogram({
      name: 'execution_service_request_duration_seconds',
      help: 'Time from the request to its answer, by its operation and status.',
      labelNames: ['surface', 'operation', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
      registers,
    })
    const rateLimited = new Counter({
      name: 'execution_service_rate_limited_requests_total',
      help: 'Requests that were refused because their API key had made too many.',
      labelNames: ['surface'],
      registers,
    })
    new Gauge({
      name: 'execution_service_followers',
      help: 'Event streams and waiting requests that follow one run, or all runs of an account.',
      labelNames: ['of'],
      registers,
      collect() {
        for (const [of, count] of Object.entries(followers())) this.set({ of }, count)
      },
    })
    return {
      /** What a surface tells of each request. */
      observe: (surface: string) => (operation: string, _method: string, status: number, seconds: number) =>
        requests.observe({ surface, operation, status: String(status) }, seconds),
      /** Counts what a surface does not admit. */
      admit<P>(surface: string, admit: LimitRate<P>): LimitRate<P> {
        rateLimited.inc({ surface }, 0)
        return async (principal) => {
          const exceeded = await admit(principal)
          if (exceeded) rateLimited.inc({ surface })
          return exceeded
        }
      },
    }
  }

  /** What a worker tells of its attempts. */
  registerAttemptMetrics(): ObserveAttempt {
    const attempts = new AttemptMetrics(this.registry)
    this.#attempts = attempts
    return (claim) => attempts.watch(claim)
  }

  /**
   * Begins to count at 0. Prometheus tells how a counter grows from two values of it: of one that appears with what it
   * counts, the first scrape's share would be missing, and with it all of a workflow that seldom runs.
   */
  initializeWorkflows(workflows: readonly Pick<Workflow, 'id'>[]): void {
    for (const { id } of workflows) {
      this.runs.initializeWorkflow(id)
      this.#attempts?.initializeWorkflow(id)
    }
  }
}

export interface AddressMetricsDependencies extends QueueMetricsDependencies {
  /** @throws when the process cannot serve. */
  ready(): Promise<void>
  build: typeof build
}

export type SurfaceMetrics = ReturnType<Metrics['registerRequestMetrics']>

function commitMetrics(registry: Registry): (commit: Commit) => void {
  const registers = [registry]
  const seconds = new Histogram({
    name: 'execution_service_durable_write_seconds',
    help: 'From the beginning of a transaction until it was durable.',
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5],
    registers,
  })
  const works = new Histogram({
    name: 'execution_service_durable_write_batch_size',
    help: 'How many writes shared a transaction.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
    registers,
  })
  const unavailable = new Counter({
    name: 'execution_service_store_unavailable_total',
    help: 'Transactions that were refused because the store was unavailable.',
    registers,
  })
  return (commit) => {
    if (commit.unavailable) return unavailable.inc()
    seconds.observe(commit.seconds)
    works.observe(commit.writes)
  }
}
