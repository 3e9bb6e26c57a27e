/** Row types of webhook endpoints and deliveries. */
import type { Json, Milliseconds } from './column-values.ts'

export interface WebhookEndpointsTable {
  id: string
  account_id: string
  url: string
  events: Json
  /** Empty for all. */
  workflow_ids: Json
  /** Empty for all. */
  tags: Json
  /** Encrypted. */
  secret: Uint8Array
  /** The secret before the last rotation, encrypted. */
  previous_secret: Uint8Array | null
  previous_secret_expires_at: Milliseconds | null
  /** `null` while the endpoint is enabled. */
  disabled_reason: string | null
  created_at: Milliseconds
}

export interface WebhookDeliveriesTable {
  /** A UUIDv7, which is also the id of the message. */
  id: string
  endpoint_id: string
  account_id: string
  event: string
  /** `null` for a test. */
  run_id: string | null
  /** Members of the event's data, with times in milliseconds. */
  run: Json
  status: string
  /** Number of started attempts, which is the fencing token of the last one. */
  attempts: number
  created_at: Milliseconds
  /** During an attempt, when another one may start if the process dies. `null` unless the delivery is pending. */
  next_attempt_at: Milliseconds | null
  /** An attempt that fails after this time is the last. */
  deadline: Milliseconds
  last_attempt_at: Milliseconds | null
  latency_ms: number | null
  request_url: string | null
  request_body: string | null
  response_status: number | null
  response_body: string | null
  error: string | null
}
