/** The audit log: who changed an account's keys, browser contexts, users and settings. Entries never change. */
import { v7 as uuid } from 'uuid'
import type { Store, Transaction } from '../../storage/store.ts'
import type { AuditLogTable } from '../../storage/tables/account-tables.ts'

/** Every action, with its description for people. */
export const actions = {
  'apiKey.created': 'created an API key',
  'apiKey.renamed': 'renamed an API key',
  'apiKey.rotated': 'rotated an API key',
  'apiKey.deleted': 'deleted an API key',
  'apiKey.usedAfterDeletion': 'used a deleted API key',
  'apiKey.usedWithoutRole': 'used an API key of a member without a role',
  'apiKey.usedAfterExpiry': 'used an expired API key',
  'apiKey.rateLimited': 'exceeded the rate limit of an API key',
  'browserContext.created': 'created a browser context',
  'browserContext.renamed': 'renamed a browser context',
  'browserContext.deleted': 'deleted a browser context',
  'browserContext.stateRead': 'read the state of a browser context',
  'browserContext.stateReplaced': 'replaced the state of a browser context',
  'browserContext.restored': 'restored a version of a browser context',
  'browserContext.signInSet': 'set the sign-in of a browser context',
  'browserContext.signInDeleted': 'deleted the sign-in of a browser context',
  'browserContext.signInRequested': 'had a browser context signed in',
  'browserContext.signInByHandStarted': 'signed in to a browser context by hand',
  'browserContext.signInCancelled': 'cancelled the sign-in of a browser context',
  'run.cancelled': 'cancelled a run',
  'run.repeated': 'ran a run again',
  'run.tokenCreated': 'created a token that reads a run',
  'run.deleted': 'deleted a run',
  'wait.answered': 'answered a run that waits',
  'wait.linkCreated': 'created a link to answer a run',
  'bulkAction.cancelStarted': 'started to cancel many runs',
  'bulkAction.rerunStarted': 'started to run many runs again',
  'schedule.created': 'created a schedule',
  'schedule.changed': 'changed a schedule',
  'schedule.triggered': 'started a run of a schedule',
  'schedule.deleted': 'deleted a schedule',
  'run.watched': 'watched the browser of a run',
  'run.takenOver': 'took over the browser of a run',
  'run.returnedControl': 'returned control of the browser of a run',
  'webhookEndpoint.created': 'created a webhook endpoint',
  'webhookEndpoint.changed': 'changed a webhook endpoint',
  'webhookEndpoint.secretRotated': 'replaced the secret of a webhook endpoint',
  'webhookEndpoint.deleted': 'deleted a webhook endpoint',
  'webhookEndpoint.tested': 'sent a test event to a webhook endpoint',
  'webhookEndpoint.redelivered': 'delivered events again to a webhook endpoint',
  'notificationRule.created': 'created a notification rule',
  'notificationRule.changed': 'changed a notification rule',
  'notificationRule.tested': 'sent a test message of a notification rule',
  'notificationRule.deleted': 'deleted a notification rule',
  'file.created': 'uploaded a file',
  'file.deleted': 'deleted a file',
  'secret.stored': 'stored a secret',
  'secret.deleted': 'deleted a secret',
  'setting.stored': 'stored a setting',
  'setting.deleted': 'deleted a setting',
  'worker.removed': 'signed a worker off',
  'workflows.deployed': 'deployed workflows',
  'workflows.rolledBack': 'rolled workflows back',
  'user.invited': 'invited a user',
  'user.invitationWithdrawn': 'revoked an invitation',
  'user.joined': 'joined the account',
  'user.roleChanged': 'changed a role',
  'user.removed': 'removed a user',
  'user.allowedAgain': 'let join again',
  'user.signedIn': 'signed in',
  'user.signInRefused': 'failed to sign in as',
  'user.passwordRefused': 'entered a wrong current password as',
  'user.secondFactorRefused': 'entered a wrong code as',
  'user.rateLimited': 'made too many attempts to sign in as',
  'user.sessionEnded': 'ended a session',
  'user.signedOutEverywhere': 'signed out everywhere',
  'user.signInLinkMade': 'created a sign-in link',
  'user.described': 'changed their profile',
  'user.passwordChanged': 'changed a password',
  'user.secondFactorSetUp': 'set up two-factor authentication',
  'user.secondFactorRemoved': 'removed two-factor authentication',
  'user.recoveryCodesReplaced': 'created new recovery codes',
  'environment.added': 'added an environment',
  'environment.removalStarted': 'started to remove an environment',
  'environment.removed': 'removed an environment',
  'account.exported': 'exported the account with its secrets',
  'account.renamed': 'renamed the account',
  'account.scopesEnabled': 'turned scopes on',
  'account.scopesDisabled': 'turned scopes off',
  'account.secondFactorRequired': 'required two-factor authentication',
  'account.secondFactorOptional': 'made two-factor authentication optional',
} as const

export type Action = keyof typeof actions

export function isAction(text: string): text is Action {
  return Object.hasOwn(actions, text)
}

/** A user of the dashboard, the operator on the command line, or a caller with an API key. */
export interface Actor {
  kind: 'user' | 'operator' | 'caller'
  id: string | null
  name: string
}

/** A caller that is known by its key. */
export type ApiKeyUse = { apiKeyId: string }

export const operator: Actor = { kind: 'operator', id: null, name: 'command line' }

export interface AuditEntry {
  id: string
  at: number
  action: Action
  by: Actor
  /** The key, browser context, user or invitation, with its name at that time. */
  subject: { id: string; name: string } | null
  details: Record<string, unknown>
}

export type NewEntry = Pick<AuditEntry, 'action' | 'by'> & Partial<Pick<AuditEntry, 'subject' | 'details' | 'at'>>

/** The actor with the name that the key has now. */
export async function toActor({ query }: Transaction, by: Actor | ApiKeyUse): Promise<Actor> {
  if (!('apiKeyId' in by)) return by
  const key = await query.selectFrom('api_keys').select('name').where('id', '=', by.apiKeyId).executeTakeFirst()
  return { kind: 'caller', id: by.apiKeyId, name: key?.name ?? 'unknown' }
}

/** Who queues or cancels a run: a key, a user, or else the operator. */
interface RunActor {
  apiKeyId?: string | null | undefined
  userId?: string | null | undefined
}

/** Records an action of a caller or a user on a run. */
export async function recordRunAction(
  tx: Transaction,
  { accountId, apiKeyId, userId }: RunActor & { accountId: string },
  run: { id: string; workflowId: string },
  action: Action,
  details: Record<string, unknown> = {},
): Promise<void> {
  const by = apiKeyId ? await toActor(tx, { apiKeyId }) : userId ? await toUserActor(tx, userId) : operator
  await recordAudit(tx, accountId, { action, by, subject: { id: run.id, name: run.workflowId }, details })
}

async function toUserActor({ query }: Transaction, id: string): Promise<Actor> {
  const user = await query.selectFrom('users').select('name').where('id', '=', id).executeTakeFirst()
  return { kind: 'user', id, name: user?.name ?? 'unknown' }
}

/** Records an action in the transaction that performs it. */
export function recordAudit(tx: Transaction, accountId: string, entry: NewEntry): Promise<void> {
  return recordAuditOfAccounts(tx, [accountId], entry)
}

/** PostgreSQL allows 65,535 values in a statement. */
const entriesPerStatement = 500

/** Records an action that affects several accounts, with few statements: nothing else is written meanwhile. */
export async function recordAuditOfAccounts(
  { query }: Transaction,
  accountIds: readonly string[],
  { action, by, subject = null, details = {}, at = Date.now() }: NewEntry,
): Promise<void> {
  const entry = {
    at,
    action,
    actor_kind: by.kind,
    actor_id: by.id,
    actor_name: by.name,
    subject_id: subject?.id ?? null,
    subject_name: subject?.name ?? null,
    details: JSON.stringify(details),
  }
  for (let start = 0; start < accountIds.length; start += entriesPerStatement) {
    const accounts = accountIds.slice(start, start + entriesPerStatement)
    const rows = accounts.map((accountId) => ({ ...entry, id: uuid(), account_id: accountId }))
    await query.insertInto('audit_log').values(rows).execute()
  }
}

export interface AuditFilter {
  action?: Action | undefined
  /** The ID of the user who acted. */
  actorId?: string | undefined
  /** The name of the subject at the time of the action. */
  subject?: string | undefined
}

const pageSize = 500

export class AuditLog {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** The account's entries, newest first, that are older than the entry `before`. */
  async list(
    accountId: string,
    { action, actorId, subject, before, limit }: AuditFilter & { before?: string | undefined; limit: number },
  ): Promise<AuditEntry[]> {
    let rows = this.#store.read.query.selectFrom('audit_log').selectAll().where('account_id', '=', accountId)
    if (action !== undefined) rows = rows.where('action', '=', action)
    if (actorId !== undefined) rows = rows.where('actor_id', '=', actorId)
    if (subject !== undefined) rows = rows.where('subject_name', '=', subject)
    if (before !== undefined) rows = rows.where('id', '<', before)
    return (await rows.orderBy('id', 'desc').limit(limit).execute()).map(toAuditEntry)
  }

  /** All entries of the account, newest first, read in pages to bound the memory. */
  async *all(accountId: string, filter: AuditFilter): AsyncGenerator<AuditEntry> {
    let before: string | undefined
    for (;;) {
      const entries = await this.list(accountId, { ...filter, before, limit: pageSize })
      yield* entries
      before = entries.at(-1)?.id
      if (entries.length < pageSize) return
    }
  }
}

function toAuditEntry(row: AuditLogTable): AuditEntry {
  return {
    id: row.id,
    at: row.at,
    action: row.action as Action,
    by: { kind: row.actor_kind as Actor['kind'], id: row.actor_id, name: row.actor_name },
    subject: row.subject_id === null ? null : { id: row.subject_id, name: row.subject_name ?? '' },
    details: JSON.parse(row.details),
  }
}
