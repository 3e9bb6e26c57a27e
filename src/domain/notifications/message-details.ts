/** Adds what happened to runs when a message is sent: the stored message has their ids only, so that an erasure is complete. */
import { findWaits } from '../../storage/runs/wait-statements.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import type { NotificationRulesTable } from '../../storage/tables/notification-tables.ts'
import { findUserRow } from '../accounts/accounts.sql.ts'
import type { Actor, ApiKeyUse } from '../audit-log/audit-log.ts'
import { readAttempts } from '../queue/attempt-history.ts'
import { findRun } from '../queue/runs.sql.ts'
import type { Waits } from '../run-api/waits.ts'
import { declaredWait, type Workflow } from '../workflows/workflow.ts'
import type { Message, NotificationMessage, NotifiedEvent, RunDetails, WaitDetails } from './notification-message.ts'

export interface MessageDetailsDependencies {
  store: Store
  /** Those that an account sees. */
  workflows: { current(accountId: string): { get(id: string): Pick<Workflow, 'title' | 'waits'> | undefined } }
  /** Creates a link by which a wait is answered once; `undefined` if it takes no answer any more. */
  createAnswerLink(accountId: string, runId: string, name: string, by: ApiKeyUse | Actor): Promise<string | undefined>
}

/** Links of messages end with the wait, and after a week at the latest. */
const answerLinkSeconds = 7 * 86_400

export function answerLinks(
  waits: Pick<Waits, 'createLink'>,
  dashboard: { url: string },
): MessageDetailsDependencies['createAnswerLink'] {
  return async (accountId, runId, name, by) => {
    const created = await waits.createLink(accountId, runId, name, answerLinkSeconds, by)
    return 'token' in created ? `${dashboard.url}/answer/${created.token}` : undefined
  }
}

/** What the rule permits. Reads up to ten runs. */
export async function addDetails<Sent extends Message>(
  message: Sent,
  rule: NotificationRulesTable,
  dependencies: MessageDetailsDependencies,
): Promise<Sent | NotificationMessage> {
  if (message.type !== 'notification') return message
  const events: NotifiedEvent[] = []
  for (const event of message.data.events) {
    const isWait = event.event === 'run.waiting'
    const run = rule.details === 1 && !isWait ? await readRun(event, rule, dependencies) : null
    events.push({ ...event, run, wait: isWait ? await readWait(event, rule, dependencies) : null })
  }
  return { ...message, data: { ...message.data, events } }
}

async function readRun(
  { runId }: NotifiedEvent,
  { account_id }: NotificationRulesTable,
  { store, workflows }: MessageDetailsDependencies,
): Promise<RunDetails | null> {
  const row = runId === null ? undefined : await findRun(store.read, account_id, runId)
  if (!row) return null
  const { started_at, finished_at } = row
  const seconds = started_at === null || finished_at === null ? null : Math.max(0, finished_at - started_at) / 1000
  return {
    title: workflows.current(account_id).get(row.workflow_id)?.title ?? null,
    error: row.error === null ? null : JSON.parse(row.error),
    step: await failedStep(store.read, row),
    tags: row.tags === null ? [] : JSON.parse(row.tags),
    attempts: row.attempts,
    durationSeconds: seconds,
  }
}

async function failedStep(tx: Transaction, row: Parameters<typeof readAttempts>[1]): Promise<string | null> {
  if (row.error === null) return null
  return (await readAttempts(tx, row)).at(-1)?.error?.step ?? null
}

/** Without the question if the rule has no details: its link needs neither. */
async function readWait(
  { runId, subject }: NotifiedEvent,
  rule: NotificationRulesTable,
  { store, workflows, createAnswerLink }: MessageDetailsDependencies,
): Promise<WaitDetails | null> {
  const { account_id, details } = rule
  const name = subject ?? ''
  const row = runId === null ? undefined : (await findWaits(store.read, runId, [name])).get(name)
  if (runId === null || row?.account_id !== account_id) return null
  const by = await findLinkCreator(store.read, rule)
  const answerUrl = (by && (await createAnswerLink(account_id, runId, name, by))) ?? null
  if (details === 0) return answerUrl === null ? null : { title: null, deadline: null, answerUrl }
  return {
    title: row.title ?? declaredWait(workflows.current(account_id).get(row.workflow_id), name)?.title ?? null,
    deadline: row.deadline === null ? null : new Date(row.deadline).toISOString(),
    answerUrl,
  }
}

async function findLinkCreator(
  tx: Transaction,
  { links_key_id, links_user_id }: NotificationRulesTable,
): Promise<ApiKeyUse | Actor | undefined> {
  if (links_key_id !== null) return { apiKeyId: links_key_id }
  const user = links_user_id === null ? undefined : await findUserRow(tx, links_user_id)
  return user && { kind: 'user', id: user.id, name: user.name ?? '' }
}
