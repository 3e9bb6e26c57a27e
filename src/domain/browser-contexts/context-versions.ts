/**
 * What browser contexts hold, encrypted, in versions. One is written whole and read again before it counts, so that a
 * writer that dies on its way leaves the version before it untouched.
 */
import { v7 as uuid } from 'uuid'
import type { Encryption } from '../../storage/encryption.ts'
import { parseId } from '../../storage/statement-values.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import type { BrowserContextVersionsTable } from '../../storage/tables.ts'
import { type Actor, recordAudit } from '../audit-log/audit-log.ts'
import { type ContextRow, findContext, selectContexts } from './browser-contexts.sql.ts'
import type { ContextLease } from './context-lease.ts'
import { emptyState, summarizeState } from './storage-state.ts'

/** Who writes a version. */
export type Writer = { runId: string } | { apiKeyId: string } | { userId: string }

export interface Version {
  number: number
  /** The one that runs start with. */
  isCurrent: boolean
  sizeBytes: number
  cookieDomains: string[]
  createdAt: number
  runId: string | null
  apiKeyId: string | null
  userId: string | null
  /** The number of the version that this one repeats. */
  restoredFrom: number | null
}

/** A version that is written and does not count yet. */
export interface StagedVersion {
  id: string
  contextId: string
}

/** The context is the run's alone at the moment; nothing was stored. */
export interface ContextInUse {
  heldByRunId: string
}

export class ContextVersions {
  readonly #store: Store
  readonly #encryption: Encryption
  readonly #kept: number

  /** @param kept how many versions of a context are kept, the current one included. */
  constructor(store: Store, encryption: Encryption, kept: number) {
    this.#store = store
    this.#encryption = encryption
    this.#kept = kept
  }

  /** The storage state that runs start with, as JSON text; `undefined` when the account has no such context. */
  async read(accountId: string, contextId: string): Promise<string | undefined> {
    // In one statement: the version may be replaced, and removed, between two.
    const contexts = selectContexts(this.#store.read, accountId).select('browser_context_versions.state')
    const id = parseId(contextId)
    const row = id && (await contexts.where('browser_contexts.id', '=', id).executeTakeFirst())
    if (!row) return undefined
    if (row.version_id === null) return emptyState
    return this.#encryption.decrypt(row.state ?? new Uint8Array(), versionAad(accountId, row.id, row.version_id))
  }

  /** The versions that are kept, newest first; `undefined` when the account has no such context. */
  async list(accountId: string, contextId: string): Promise<Version[] | undefined> {
    const context = await findContext(this.#store.read, accountId, contextId)
    if (!context) return undefined
    const rows = await this.#store.read.query
      .selectFrom('browser_context_versions')
      .select(['id', ...told])
      .where('browser_context_id', '=', context.id)
      .where('version', 'is not', null)
      .orderBy('version', 'desc')
      .execute()
    return rows.map((row) => ({ ...versionOf(row), isCurrent: row.id === context.version_id }))
  }

  /**
   * Makes the state the context's next version. `undefined` when the account has no such context.
   *
   * @param actor is written to the audit log; without one nothing is.
   */
  async replace(
    accountId: string,
    contextId: string,
    state: string,
    writer: Writer,
    restoredFrom: number | null = null,
    actor?: Actor,
  ): Promise<Version | ContextInUse | undefined> {
    const context = await findContext(this.#store.read, accountId, contextId)
    if (!context) return undefined
    // Again at the commit; but what is refused anyway need not be encrypted first.
    if (context.held_by_run_id !== null) return { heldByRunId: context.held_by_run_id }
    const staged = await this.stage(accountId, context.id, state, writer, restoredFrom)
    if (!staged) return undefined
    return this.#store.write(async (tx) => {
      const counted = await this.#count(tx, staged)
      if (actor && counted && 'number' in counted) await recordVersion(tx, context, counted, actor)
      return counted
    })
  }

  /** Makes an earlier version the newest too. `undefined` when the account has no such context or version. */
  async restore(accountId: string, contextId: string, number: number, writer: Writer, actor?: Actor) {
    const context = await findContext(this.#store.read, accountId, contextId)
    const versions = this.#store.read.query.selectFrom('browser_context_versions').select('id')
    const row = await versions
      .where('browser_context_id', '=', context?.id ?? '')
      .where('version', '=', number)
      .executeTakeFirst()
    if (!context || !row) return undefined
    const state = await this.#open(this.#store.read, context, row.id)
    // Removed since, by newer versions.
    if (state === undefined) return undefined
    return this.replace(accountId, contextId, state, writer, number, actor)
  }

  /** Writes the state durably and reads it again; `count` makes it a version. `undefined` without such a context. */
  async stage(
    accountId: string,
    contextId: string,
    state: string,
    writer: Writer,
    restoredFrom: number | null = null,
  ): Promise<StagedVersion | undefined> {
    const id = uuid()
    const { sizeBytes, cookieDomains } = summarizeState(state)
    const row = {
      id,
      browser_context_id: contextId,
      version: null,
      size_bytes: sizeBytes,
      cookie_domains: JSON.stringify(cookieDomains),
      created_at: Date.now(),
      run_id: 'runId' in writer ? writer.runId : null,
      api_key_id: 'apiKeyId' in writer ? writer.apiKeyId : null,
      user_id: 'userId' in writer ? writer.userId : null,
      restored_from: restoredFrom,
    }
    const context = await this.#store.write(async (tx) => {
      const found = await findContext(tx, accountId, contextId)
      if (!found) return undefined
      // Here, since the store may be waited for, long enough for a key to be changed.
      const sealed = this.#encryption.encrypt(state, versionAad(accountId, contextId, id))
      await tx.query
        .insertInto('browser_context_versions')
        .values({ ...row, state: sealed })
        .execute()
      return found
    })
    const stored = context && (await this.#open(this.#store.read, context, id))
    // Deleted, before it was written or since.
    if (stored === undefined) return undefined
    if (stored !== state) {
      throw new Error('A browser context was not stored as it was written.')
    }
    return { id, contextId }
  }

  /**
   * Gives the staged version its number, in the transaction of the run's end. False when it is the run's to write no
   * more: the context was deleted, or another has held it since.
   */
  async commitForRun(tx: Transaction, staged: StagedVersion, hold: ContextLease): Promise<boolean> {
    const counted = await this.#count(tx, staged, hold)
    return counted !== undefined && 'number' in counted
  }

  /** Gives a staged version up. */
  async discard({ query }: Transaction, { id }: StagedVersion): Promise<void> {
    await query.deleteFrom('browser_context_versions').where('id', '=', id).execute()
  }

  async #count(
    tx: Transaction,
    staged: StagedVersion,
    hold?: ContextLease,
  ): Promise<Version | ContextInUse | undefined> {
    const { id, contextId } = staged
    const { query } = tx
    const contexts = query.selectFrom('browser_contexts').selectAll().where('id', '=', contextId)
    const context = await contexts.executeTakeFirst()
    if (!context || context.deleted_at !== null) return undefined
    const isHeldAsExpected = context.held_by_run_id === (hold?.runId ?? null) && (!hold || context.fence === hold.fence)
    if (!isHeldAsExpected) {
      await this.discard(tx, staged)
      return { heldByRunId: context.held_by_run_id ?? '' }
    }
    const version = context.version + 1
    const numbered = query.updateTable('browser_context_versions').set({ version }).where('id', '=', id)
    const row = await numbered.returning(told).executeTakeFirstOrThrow()
    const change = { version, version_id: id, updated_at: Date.now() }
    await query.updateTable('browser_contexts').set(change).where('id', '=', contextId).execute()
    const versions = query.deleteFrom('browser_context_versions').where('browser_context_id', '=', contextId)
    await versions.where('version', '<=', version - this.#kept).execute()
    return { ...versionOf(row), isCurrent: true }
  }

  /** What the version holds; `undefined` when it is gone. */
  async #open(
    { query }: Transaction,
    context: { id: string; account_id: string },
    versionId: string,
  ): Promise<string | undefined> {
    const versions = query.selectFrom('browser_context_versions').select('state').where('id', '=', versionId)
    const row = await versions.executeTakeFirst()
    return row && this.#encryption.decrypt(row.state, versionAad(context.account_id, context.id, versionId))
  }
}

/** Names the row that a version's state belongs to, so that it opens nowhere else. */
export function versionAad(accountId: string, contextId: string, versionId: string): string {
  return `${accountId}/browser-contexts/${contextId}/versions/${versionId}`
}

/** In the audit log, which names the version and says nothing of what it holds. */
async function recordVersion(tx: Transaction, { id, account_id, name }: ContextRow, version: Version, by: Actor) {
  const { number, restoredFrom } = version
  const details = { version: number, ...(restoredFrom !== null && { restoredFrom }) }
  const action = restoredFrom === null ? 'browserContext.stateReplaced' : 'browserContext.restored'
  await recordAudit(tx, account_id, { action, by, subject: { id, name }, details })
}

/** Not the state, which may be large. */
const told = [
  'version',
  'size_bytes',
  'cookie_domains',
  'created_at',
  'run_id',
  'api_key_id',
  'user_id',
  'restored_from',
] as const

function versionOf(row: Pick<BrowserContextVersionsTable, (typeof told)[number]>): Omit<Version, 'isCurrent'> {
  return {
    number: row.version ?? 0,
    sizeBytes: row.size_bytes,
    cookieDomains: JSON.parse(row.cookie_domains),
    createdAt: row.created_at,
    runId: row.run_id,
    apiKeyId: row.api_key_id,
    userId: row.user_id,
    restoredFrom: row.restored_from,
  }
}
