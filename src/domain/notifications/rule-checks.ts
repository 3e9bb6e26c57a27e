/** What no statement decides, but the time: runs that have not started, and failure rates. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { v7 as uuid } from 'uuid'
import { findQueued, findQueuedAgain } from '../../storage/runs/run-maintenance.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import type { NotificationRulesTable } from '../../storage/tables/notification-tables.ts'
import type { RunStatistics } from '../statistics/run-statistics.ts'
import { firstIdSince } from '../webhooks/webhooks.sql.ts'
import { countedEventsMax, type NotificationEventType } from './notification-message.ts'
import { setFailing } from './notifications.sql.ts'

/** Ended runs of which a failure rate is computed at least. */
const rateRunsMin = 5

/** After it, a rule stores that it has found nothing. */
const storedAfterMilliseconds = 10 * 60_000

const rowsPerStatement = 500

export interface RuleCheckDependencies {
  store: Store
  statistics: Pick<RunStatistics, 'history'>
}

interface QueuedRun {
  id: string
  workflowId: string
  /** When it was queued last, or its delay ended. */
  queuedAt: number
}

interface Rate {
  workflowId: string
  percent: number
}

/** Returns whether it has added events. What rules share is read once for each account. */
export async function checkRules(dependencies: RuleCheckDependencies, now: number): Promise<boolean> {
  const { store, statistics } = dependencies
  const rules = await store.read.query
    .selectFrom('notification_rules')
    .selectAll()
    .where('enabled', '=', 1)
    .where((where) =>
      where.or([where('events', 'like', '%"run.notStarted"%'), where('events', 'like', '%"workflow.failing"%')]),
    )
    .execute()
  let hasFound = false
  for (const [accountId, ofAccount] of Map.groupBy(rules, ({ account_id }) => account_id)) {
    const having = (event: NotificationEventType) =>
      ofAccount.filter(({ events }) => JSON.parse(events).includes(event))
    const [waiting, failing] = [having('run.notStarted'), having('workflow.failing')]
    const again = waiting.length === 0 ? [] : await readQueuedAgain(store, accountId)
    for (const rule of waiting) if (await addNotStarted(store, rule, again, now)) hasFound = true
    const rates = failing.length === 0 ? [] : await readRates(statistics, accountId)
    for (const rule of failing) if (await addFailing(store, rule, rates, now)) hasFound = true
  }
  return hasFound
}

/** Runs that have been delayed or claimed before: their ids do not say since when they are queued. */
async function readQueuedAgain(store: Store, accountId: string): Promise<QueuedRun[]> {
  const found: QueuedRun[] = []
  for (let after = ''; ; ) {
    const rows = await store.read.all(findQueuedAgain, [accountId, after, rowsPerStatement])
    for (const { id, workflow_id, available_at, queued_at } of rows)
      found.push({ id, workflowId: workflow_id, queuedAt: Math.max(available_at, queued_at ?? 0) })
    const last = rows.at(-1)
    if (!last || rows.length < rowsPerStatement) return found
    after = last.id
    await nextTurn()
  }
}

/** Each run whose time in the queue has passed the limit since the last check. */
async function addNotStarted(
  store: Store,
  rule: NotificationRulesTable,
  again: readonly QueuedRun[],
  now: number,
): Promise<boolean> {
  const { id, account_id, checked_until: before } = rule
  const upTo = now - rule.not_started_seconds * 1000
  // A new rule concerns runs that pass the limit from now on.
  const after = before === 0 ? upTo : Math.min(before, upTo)
  // The id of a run has the time at which it was queued.
  const ids = [firstIdSince(after + 1), firstIdSince(upTo + 1)] as const
  const first = after === upTo ? [] : await store.read.all(findQueued, [account_id, ...ids, countedEventsMax])
  const late = [
    ...first.map((run) => ({ id: run.id, workflowId: run.workflow_id })),
    ...again.filter(({ queuedAt }) => queuedAt > after && queuedAt <= upTo),
  ]
  const wanted = late.filter(({ workflowId }) => concerns(rule, workflowId)).slice(0, countedEventsMax)
  if (wanted.length === 0 && before === after && upTo - after < storedAfterMilliseconds) return false
  const rows = wanted.map((run) => toEvent(id, 'run.notStarted', run.workflowId, now, run.id))
  return store.write(async (tx) => {
    const current = tx.query.updateTable('notification_rules').set({ checked_until: upTo }).where('id', '=', id)
    // Another process may have checked in between.
    const same = current.where('checked_until', '=', before)
    if ((await same.executeTakeFirst()).numUpdatedRows === 0n) return false
    await insertEvents(tx, rows)
    return rows.length > 0
  })
}

/** Of the workflows with runs that were queued within an hour and have ended. */
async function readRates(statistics: Pick<RunStatistics, 'history'>, accountId: string): Promise<Rate[]> {
  const { workflows } = await statistics.history(accountId, '1h')
  return workflows.map(({ workflowId, counts }) => {
    const failed = counts.failed + counts.timedOut + counts.expired
    const ended = failed + counts.succeeded
    return { workflowId, percent: ended < rateRunsMin ? 0 : Math.floor((100 * failed) / ended) }
  })
}

/** Each workflow whose failure rate has exceeded the limit since it was last below it. */
async function addFailing(
  store: Store,
  rule: NotificationRulesTable,
  rates: readonly Rate[],
  now: number,
): Promise<boolean> {
  const failing = rates.filter((rate) => rate.percent >= rule.failure_percent && concerns(rule, rate.workflowId))
  const compare = async ({ query }: Transaction) => {
    const groups = query.selectFrom('notification_groups').select('workflow_id').where('rule_id', '=', rule.id)
    const before = (await groups.where('is_failing', '=', 1).execute()).map(({ workflow_id }) => workflow_id)
    return {
      begun: failing.filter(({ workflowId }) => !before.includes(workflowId)),
      over: before.filter((id) => !failing.some(({ workflowId }) => workflowId === id)),
    }
  }
  const { begun, over } = await compare(store.read)
  if (begun.length + over.length === 0) return false
  return store.write(async (tx) => {
    const { begun, over } = await compare(tx)
    for (const id of over) await tx.all(setFailing, [rule.id, id, 0])
    for (const { workflowId } of begun) await tx.all(setFailing, [rule.id, workflowId, 1])
    const rows = begun.map(({ workflowId, percent }) =>
      toEvent(rule.id, 'workflow.failing', workflowId, now, null, `${percent}`),
    )
    await insertEvents(tx, rows)
    return rows.length > 0
  })
}

function concerns({ workflow_ids }: NotificationRulesTable, workflowId: string): boolean {
  const ids: string[] = JSON.parse(workflow_ids)
  return ids.length === 0 || ids.includes(workflowId)
}

function toEvent(
  rule_id: string,
  event: NotificationEventType,
  workflow_id: string,
  at: number,
  run_id: string | null,
  subject: string | null = null,
) {
  return { id: uuid({ msecs: at }), rule_id, event, workflow_id, run_id, subject, created_at: at }
}

async function insertEvents({ query }: Transaction, rows: readonly ReturnType<typeof toEvent>[]): Promise<void> {
  for (let start = 0; start < rows.length; start += rowsPerStatement) {
    const part = rows.slice(start, start + rowsPerStatement)
    await query.insertInto('notification_events').values(part).execute()
  }
}
