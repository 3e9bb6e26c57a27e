/** The request of a delivery, signed by the Standard Webhooks specification, and the delays between its attempts. */
import { Webhook } from 'standardwebhooks'
import type { RunsTable, RunWaitsTable } from '../../storage/tables/run-tables.ts'
import type { WebhookDeliveriesTable } from '../../storage/tables/tables.ts'
import { attemptsOf } from '../runs/run.ts'

/** The columns of a run that its event needs. */
export const eventColumns = [
  'id',
  'workflow_id',
  'reason',
  'attempts',
  'continuations',
  'tags',
  'created_at',
  'status',
] as const

interface EventDetails {
  /** What the run waits for, of `run.waiting`. */
  wait?: Pick<RunWaitsTable, 'name' | 'title' | 'deadline'> | undefined
  /** What needs a person, of `browserContext.needsSignIn`. */
  context?: { id: string; name: string } | undefined
}

/** @param run `undefined` for a test, and if no run could be queued that signs in. */
export function toBody(
  { event, created_at }: Pick<WebhookDeliveriesTable, 'event' | 'created_at'>,
  run?: Pick<RunsTable, (typeof eventColumns)[number]>,
  { wait, context }: EventDetails = {},
): string {
  const timestamp = new Date(created_at).toISOString()
  const data = run && {
    runId: run.id,
    workflowId: run.workflow_id,
    status: wait ? 'waiting' : event.startsWith('run.') ? event.replace('run.', '') : run.status,
    reason: wait ? 'waiting' : run.reason,
    attempts: attemptsOf(run),
    tags: JSON.parse(run.tags ?? '[]'),
    createdAt: new Date(run.created_at).toISOString(),
    ...(wait
      ? {
          wait: {
            name: wait.name,
            title: wait.title,
            deadline: wait.deadline && new Date(wait.deadline).toISOString(),
          },
        }
      : { finishedAt: timestamp }),
  }
  return JSON.stringify({ type: event, timestamp, data: { ...data, ...(context && { browserContext: context }) } })
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
