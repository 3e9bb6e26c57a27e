/** What the service counts and measures, for Prometheus. No label holds anything that a caller sent. */
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Session } from '../storage/store.ts'

export class Metrics {
  readonly registry = new Registry()
  readonly #requests: Histogram<'surface' | 'operation' | 'status'>

  constructor(session: Session) {
    collectDefaultMetrics({ register: this.registry })
    this.#requests = new Histogram({
      name: 'execution_service_request_duration_seconds',
      help: 'Time from the request to its answer, by operationId and status.',
      labelNames: ['surface', 'operation', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
      registers: [this.registry],
    })
    new Gauge({
      name: 'execution_service_runs',
      help: 'Runs that are queued or running.',
      labelNames: ['status'],
      registers: [this.registry],
      async collect() {
        try {
          for (const [status, sql] of Object.entries(unfinishedSql)) {
            const [row] = await session.all<{ count: number }>(sql, [])
            this.set({ status }, row?.count ?? 0)
          }
        } catch {
          // The store is unavailable, which /readyz tells; the other metrics are wanted all the more.
          this.reset()
        }
      },
    })
  }

  /** What a surface tells of each request. */
  observe(surface: string) {
    return (operation: string, _method: string, status: number, seconds: number): void =>
      this.#requests.observe({ surface, operation, status: String(status) }, seconds)
  }
}

/** Each is answered by an index that holds these runs alone. */
const unfinishedSql = {
  queued: "SELECT COUNT(*) AS count FROM runs WHERE status = 'queued' AND delayed = 0",
  delayed: "SELECT COUNT(*) AS count FROM runs WHERE status = 'queued' AND delayed = 1",
  running: "SELECT COUNT(*) AS count FROM runs WHERE status = 'running'",
}
