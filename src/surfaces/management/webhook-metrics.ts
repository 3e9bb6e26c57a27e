/** Metrics of the webhook requests that this process sends. */
import { Counter, Histogram, type Registry } from 'prom-client'
import type { ObserveWebhook } from '../../domain/webhooks/webhook-dispatcher.ts'

const outcomes = ['delivered', 'retried', 'failed'] as const

/** A request is aborted after ten seconds. */
const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

export function webhookMetrics(registry: Registry): ObserveWebhook {
  const registers = [registry]
  const requests = new Counter({
    name: 'execution_service_webhook_requests_total',
    help: 'Webhook requests: `delivered` with a 2xx response, `retried` later, or `failed` for the last time.',
    labelNames: ['outcome'],
    registers,
  })
  const duration = new Histogram({
    name: 'execution_service_webhook_request_duration_seconds',
    help: 'Duration of webhook requests until their response or error.',
    buckets,
    registers,
  })
  for (const outcome of outcomes) requests.inc({ outcome }, 0)
  return (outcome, seconds) => {
    requests.inc({ outcome })
    duration.observe(seconds)
  }
}
