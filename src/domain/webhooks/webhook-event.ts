/** The request of a delivery, signed by the Standard Webhooks specification, and the delays between its attempts. */
import { Webhook } from 'standardwebhooks'
import type { WebhookDeliveriesTable } from '../../storage/tables/tables.ts'

/** What the trigger on `runs` stores; a test has only `finishedAt`. Times are in milliseconds. */
interface StoredRun {
  workflowId?: string
  status?: string
  reason?: string | null
  tags?: string[]
  attempts?: number
  createdAt?: number
  finishedAt: number
}

export function toBody({ event, run_id, run }: Pick<WebhookDeliveriesTable, 'event' | 'run_id' | 'run'>): string {
  const { createdAt, finishedAt, ...members } = JSON.parse(run) as StoredRun
  const timestamp = new Date(finishedAt).toISOString()
  const data: Record<string, unknown> = {}
  if (run_id !== null) Object.assign(data, { runId: run_id, ...members })
  if (createdAt !== undefined)
    Object.assign(data, { createdAt: new Date(createdAt).toISOString(), finishedAt: timestamp })
  return JSON.stringify({ type: event, timestamp, data })
}

/** @param secrets one signature is added for each. */
export function signedHeaders(id: string, at: Date, body: string, secrets: readonly string[]): Record<string, string> {
  return {
    'content-type': 'application/json',
    'user-agent': 'execution-service',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(id, at, body)).join(' '),
  }
}

const delayMilliseconds = { min: 5000, max: 12 * 60 * 60 * 1000 }

/**
 * The time of the next attempt after a failure; `undefined` after the deadline. The delay is the time since the first
 * attempt, plus up to 20 %, so that deliveries that failed together spread out.
 */
export function nextAttemptAt(
  now: number,
  since: number,
  deadline: number,
  random = Math.random(),
): number | undefined {
  if (now >= deadline) return undefined
  const delay = Math.min(Math.max(now - since, delayMilliseconds.min), delayMilliseconds.max)
  return Math.min(deadline, Math.round(now + delay * (1 + 0.2 * random)))
}
