/**
 * Makes messages of what rules have collected, and of the ends of runs that users follow. Maintenance calls it. The events and
 * the followers are deleted in the transaction that adds the message, so that each is reported once.
 */
import { type DueTimes, findFollowedEnds, followersEndpoint } from '../../storage/runs/run-maintenance.ts'
import type { Transaction } from '../../storage/store.ts'
import { findEnvironmentName } from '../accounts/accounts.sql.ts'
import { deletedStatus } from '../runs/run-state.ts'
import { newDelivery } from '../webhooks/webhook-deliveries.ts'
import { firstIdSince } from '../webhooks/webhooks.sql.ts'
import { countedEventsMax, linksTo, toEndedMessage, toMessage } from './notification-message.ts'
import { findGroups, setNextMessage, takeEvents } from './notifications.sql.ts'
import { checkRules, type RuleCheckDependencies } from './rule-checks.ts'

/** Between two messages of a rule for a workflow. */
export const groupMilliseconds = 10 * 60_000

/** Between two looks for runs that have not started, and for failure rates. */
const checkMilliseconds = 30_000

/** Followed runs whose end is handled in one transaction. */
const followedMax = 200

/** Between two looks for them, which read the run of each follower. */
const followersMilliseconds = 2000

interface NotifierDependencies extends RuleCheckDependencies {
  dashboard: { url: string }
  now?: () => number
}

export class Notifier {
  readonly #dependencies: NotifierDependencies
  readonly #now: () => number
  #checkedAt = Number.NEGATIVE_INFINITY
  /** By a clock that cannot be set. */
  #groupsAfter = 0
  #followersAfter = 0

  constructor(dependencies: NotifierDependencies) {
    this.#dependencies = dependencies
    this.#now = dependencies.now ?? Date.now
  }

  /** Returns whether it has added messages, which dispatchers send. */
  async once({ hasNotifications }: Pick<DueTimes, 'hasNotifications'>) {
    const { store } = this.#dependencies
    const found = await this.#checkRules()
    const followed = await this.#mailFollowers()
    const grouped = hasNotifications || found ? await this.#addMessages() : 0
    if (followed + grouped > 0) store.notify('runs')
    return followed + grouped > 0
  }

  // Messages.

  async #addMessages(): Promise<number> {
    const startedAt = performance.now()
    if (startedAt < this.#groupsAfter) return 0
    const now = this.#now()
    const groups = await this.#dependencies.store.read.all(findGroups, [])
    // Reading many events takes a while: nine times as long is left to other work.
    this.#groupsAfter = performance.now() + 9 * (performance.now() - startedAt)
    let added = 0
    for (const { rule_id, workflow_id, next_at } of groups) {
      // A time further ahead was set by another clock.
      const isEarly = next_at !== null && next_at > now && next_at <= now + groupMilliseconds
      if (!isEarly && (await this.#addMessage(rule_id, workflow_id, now))) added++
    }
    return added
  }

  /** Returns whether there was anything to report. */
  async #addMessage(ruleId: string, workflowId: string, now: number): Promise<boolean> {
    const { store, dashboard } = this.#dependencies
    const add = async (tx: Transaction) => {
      const rules = tx.query.selectFrom('notification_rules').select(['id', 'name', 'account_id', 'enabled'])
      const rule = await rules.where('id', '=', ruleId).executeTakeFirst()
      const rows = await tx.all(takeEvents, [ruleId, workflowId, countedEventsMax])
      // A rule that was paused or deleted reports nothing that was collected before.
      if (!rule || rule.enabled === 0 || rows.length === 0)
        return { isAdded: false, hasMore: rows.length === countedEventsMax }
      rows.sort((a, b) => (a.id < b.id ? -1 : 1))
      const link = linksTo(dashboard.url, await findEnvironmentName(tx, rule.account_id))
      const message = toMessage({ rule, workflowId, rows, link, at: now })
      const target = { endpointId: ruleId, accountId: rule.account_id }
      const row = newDelivery({ ...target, event: 'notification', at: now, body: JSON.stringify(message) })
      await tx.query.insertInto('webhook_deliveries').values(row).execute()
      await tx.all(setNextMessage, [ruleId, workflowId, now + groupMilliseconds])
      return { isAdded: true, hasMore: rows.length === countedEventsMax }
    }
    const { isAdded, hasMore } = await store.write(add)
    if (hasMore) await this.#dropRest(ruleId, workflowId, now)
    return isAdded
  }

  /** The message says that there were more. */
  async #dropRest(ruleId: string, workflowId: string, before: number): Promise<void> {
    const sql = `DELETE FROM notification_events WHERE id IN (SELECT id FROM notification_events
      WHERE rule_id = ? AND workflow_id = ? AND id < ? ORDER BY id LIMIT ${countedEventsMax}) RETURNING 1`
    const values = [ruleId, workflowId, firstIdSince(before)]
    const drop = () => this.#dependencies.store.write((tx) => tx.all(sql, values))
    while ((await drop()).length === countedEventsMax);
  }

  async #mailFollowers(): Promise<number> {
    const { store, dashboard } = this.#dependencies
    const startedAt = performance.now()
    if (startedAt < this.#followersAfter) return 0
    const ended = await store.read.all(findFollowedEnds, [1])
    const endedAt = performance.now()
    this.#followersAfter = endedAt + Math.max(followersMilliseconds, 9 * (endedAt - startedAt))
    if (ended.length === 0) return 0
    return store.write(async (tx) => {
      const ends = await tx.all(findFollowedEnds, [followedMax])
      let count = 0
      for (const { run_id, user_id, account_id, workflow_id, status, finished_at } of ends) {
        const followers = tx.query.deleteFrom('run_followers').where('run_id', '=', run_id)
        await followers.where('user_id', '=', user_id).execute()
        // A run that was erased is not mentioned any more.
        if (workflow_id === null || status === null || finished_at === null || status === deletedStatus) continue
        const run = { id: run_id, workflowId: workflow_id, status, finishedAt: finished_at }
        const link = linksTo(dashboard.url, await findEnvironmentName(tx, account_id))
        const body = JSON.stringify(toEndedMessage(run, link))
        const target = { endpointId: followersEndpoint, accountId: account_id, runId: run_id, userId: user_id }
        const row = newDelivery({ ...target, event: 'run.ended', at: this.#now(), body })
        await tx.query.insertInto('webhook_deliveries').values(row).execute()
        count++
      }
      return count
    })
  }

  /** Returns whether it has added events. */
  async #checkRules(): Promise<boolean> {
    const now = this.#now()
    // Also when the clock was set back.
    if (Math.abs(now - this.#checkedAt) < checkMilliseconds) return false
    this.#checkedAt = now
    return checkRules(this.#dependencies, now)
  }
}
