/**
 * The encrypted versions of browser contexts. A version is stored and verified before it is committed: a process that
 * dies while writing leaves the previous version current.
 */

import { v7 as uuid } from 'uuid'
import { Cursors, type PageRequest } from '../../storage/cursors.ts'
import type { Encryption } from '../../storage/encryption.ts'
import { boundPage } from '../../storage/purge-target.ts'
import { rowBytes } from '../../storage/runs/run-maintenance.ts'
import { parseId } from '../../storage/statement-values.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import type { BrowserContextVersionsTable } from '../../storage/tables/tables.ts'
import type { StorageUsage } from '../accounts/storage-usage.ts'
import { type Actor, type ApiKeyUse, recordAudit, toActor } from '../audit-log/audit-log.ts'
import { type ContextRow, findContext, selectContexts, versionAad } from './browser-contexts.sql.ts'
import type { ContextLease } from './context-lease.ts'
import { acceptGivenState } from './sign-ins.sql.ts'
import { emptyState, summarizeState } from './storage-state.ts'

type Writer = { runId: string } | { apiKeyId: string } | { userId: string }

interface ReplaceOptions {
  /** The number of the version that is stored again. */
  restoredFrom?: number
  /** Recorded in the audit log; without one, nothing is recorded. */
  actor?: Actor | ApiKeyUse | undefined
  /** Decides by the current version's id; by default, the state replaces any version. */
  mayReplace?: ((versionId: string) => boolean) | undefined
}

export class ContextVersions {
  readonly #store: Store
  readonly #encryption: Encryption
  readonly #cursors: Cursors
  readonly #versionsKept: number
  readonly #usage: StorageUsage | undefined

  /** @param versionsKept per context, including the current version. */
  constructor(store: Store, encryption: Encryption, versionsKept: number, usage?: StorageUsage) {
    this.#usage = usage
    this.#store = store
    this.#encryption = encryption
    this.#cursors = new Cursors(encryption)
    this.#versionsKept = versionsKept
  }

  /** The current storage state as JSON text; `undefined` if the account has no such context. */
  async read(accountId: string, contextId: string): Promise<string | undefined> {
    return (await this.readCurrent(accountId, contextId))?.state
  }

  /** The current version's id and state; `undefined` if the account has no such context. */
  async readCurrent(accountId: string, contextId: string): Promise<{ id: string; state: string } | undefined> {
    // In one statement, because the version may be replaced and removed between two.
    const contexts = selectContexts(this.#store.read, accountId).select('browser_context_versions.state')
    const id = parseId(contextId)
    const row = id && (await contexts.where('browser_contexts.id', '=', id).executeTakeFirst())
    if (!row) return undefined
    if (row.version_id === null) return { id: noVersionId, state: emptyState }
    const aad = versionAad(accountId, row.id, row.version_id)
    return { id: row.version_id, state: this.#encryption.decrypt(row.state ?? new Uint8Array(), aad) }
  }

  /** As `readCurrent`, for a caller: the audit log has who has got the cookies. */
  async reveal(accountId: string, contextId: string, by: Actor | ApiKeyUse) {
    const current = await this.readCurrent(accountId, contextId)
    const context = current && (await findContext(this.#store.read, accountId, contextId))
    if (!context) return undefined
    const subject = { id: context.id, name: context.name }
    await this.#store.write(async (tx) => {
      const entry = { action: 'browserContext.stateRead', by: await toActor(tx, by), subject } as const
      await recordAudit(tx, accountId, entry)
    })
    return current
  }

  /** The current version's id and size; `undefined` if the account has no such context. */
  async findCurrent(accountId: string, contextId: string): Promise<{ id: string; sizeBytes: number } | undefined> {
    const context = await findContext(this.#store.read, accountId, contextId)
    return context && { id: currentVersionId(context), sizeBytes: context.size_bytes ?? 0 }
  }

  /** The stored versions, newest first; `undefined` if the account has no such context. */
  async list(accountId: string, contextId: string): Promise<Version[] | undefined> {
    const context = await findContext(this.#store.read, accountId, contextId)
    return context && findVersions(this.#store.read, context)
  }

  /** A page of `list`; `undefined` if the account has no such context, `wrongCursor` for a cursor of another list. */
  async listPage(
    accountId: string,
    contextId: string,
    request: PageRequest,
  ): Promise<VersionPage | 'wrongCursor' | undefined> {
    const context = await findContext(this.#store.read, accountId, contextId)
    return context && listVersions(this.#store.read, this.#cursors, context, request)
  }

  /**
   * Stores the state as the context's next version. Returns `undefined` if the account has no such context.
   *
   * @throws {Problem} beyond the storage quota.
   */
  async replace(
    accountId: string,
    contextId: string,
    state: string,
    writer: Writer,
    { restoredFrom, actor, mayReplace = () => true }: ReplaceOptions = {},
  ): Promise<Version | ContextInUse | VersionChanged | undefined> {
    const context = await findContext(this.#store.read, accountId, contextId)
    if (!context) return undefined
    // Both are checked again at the commit. These checks avoid encrypting a state that would be refused.
    if (context.held_by_run_id !== null) return { heldByRunId: context.held_by_run_id }
    if (!mayReplace(currentVersionId(context))) return { currentVersionId: currentVersionId(context) }
    this.#usage?.require(accountId)
    const staged = await this.stage(accountId, context.id, state, writer, restoredFrom)
    if (!staged) return undefined
    this.#usage?.add(accountId, rowBytes + Buffer.byteLength(state))
    return this.#store.write(async (tx) => {
      const committed = await commitVersion(tx, staged, { mayReplace, versionsKept: this.#versionsKept })
      if (committed && 'number' in committed && context.has_sign_in === 1)
        await acceptGivenState(tx, context.id, committed.number, Date.now())
      if (actor && committed && 'number' in committed) await recordVersion(tx, context, committed, actor)
      return committed
    })
  }

  /** Stores a version again as the newest. Returns `undefined` if there is no such context or version. */
  async restore(
    accountId: string,
    contextId: string,
    number: number,
    writer: Writer,
    options: Omit<ReplaceOptions, 'restoredFrom'> = {},
  ): Promise<Version | ContextInUse | VersionChanged | undefined> {
    const context = await findContext(this.#store.read, accountId, contextId)
    const versions = this.#store.read.query.selectFrom('browser_context_versions').select('id')
    const row = await versions
      .where('browser_context_id', '=', context?.id ?? '')
      .where('version', '=', number)
      .executeTakeFirst()
    if (!context || !row) return undefined
    const state = await this.#decrypt(context, row.id)
    // Newer versions may have displaced it.
    if (state === undefined) return undefined
    return this.replace(accountId, contextId, state, writer, { ...options, restoredFrom: number })
  }

  /** Stores and verifies the state without committing it. Returns `undefined` if there is no such context. */
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
      // Encrypted inside the transaction: the key may be rotated while the transaction waits to start.
      const encrypted = this.#encryption.encrypt(state, versionAad(accountId, contextId, id))
      await tx.query
        .insertInto('browser_context_versions')
        .values({ ...row, state: encrypted })
        .execute()
      return found
    })
    const stored = context && (await this.#decrypt(context, id))
    // The context was deleted before or after the insert.
    if (stored === undefined) return undefined
    if (stored !== state) throw new Error('The stored state of a browser context differs from the state written.')
    return { id, contextId }
  }

  /**
   * Commits the staged version in the transaction that ends the attempt. Returns false if the context was deleted or a
   * later lease exists.
   */
  async commitForRun(tx: Transaction, staged: StagedVersion, lease: ContextLease): Promise<boolean> {
    const committed = await commitVersion(tx, staged, { lease, versionsKept: this.#versionsKept })
    return committed !== undefined && 'number' in committed
  }

  discard(tx: Transaction, staged: StagedVersion): Promise<void> {
    return discardVersion(tx, staged)
  }

  /** Returns `undefined` if the version was deleted. */
  async #decrypt(context: { id: string; account_id: string }, versionId: string): Promise<string | undefined> {
    const versions = this.#store.read.query.selectFrom('browser_context_versions').select('state')
    const row = await versions.where('id', '=', versionId).executeTakeFirst()
    return row && this.#encryption.decrypt(row.state, versionAad(context.account_id, context.id, versionId))
  }
}

// Lists the stored versions of a browser context, without their states.

export interface Version {
  id: string
  number: number
  /** Whether runs start with it. */
  isCurrent: boolean
  sizeBytes: number
  cookieDomains: string[]
  createdAt: number
  runId: string | null
  apiKeyId: string | null
  userId: string | null
  restoredFrom: number | null
}

interface VersionPage {
  versions: Version[]
  nextCursor: string | null
}

/** All columns but the state, which may be large. */
const metadataColumns = [
  'id',
  'version',
  'size_bytes',
  'cookie_domains',
  'created_at',
  'run_id',
  'api_key_id',
  'user_id',
  'restored_from',
] as const

type MetadataRow = Pick<BrowserContextVersionsTable, (typeof metadataColumns)[number]>

function toVersion(row: MetadataRow): Omit<Version, 'isCurrent'> {
  return {
    id: row.id,
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

/** Newest first. At most 100 exist (`BROWSER_CONTEXT_VERSIONS`). */
async function findVersions({ query }: Transaction, { id, version_id }: ContextRow): Promise<Version[]> {
  const rows = await query
    .selectFrom('browser_context_versions')
    .select(metadataColumns)
    .where('browser_context_id', '=', id)
    .where('version', 'is not', null)
    .orderBy('version', 'desc')
    .execute()
  return rows.map((row) => ({ ...toVersion(row), isCurrent: row.id === version_id }))
}

/** It has fewer versions than `limit` when their cookie domains would be larger than a page may be. */
async function listVersions(
  tx: Transaction,
  cursors: Cursors,
  context: ContextRow,
  request: PageRequest,
): Promise<VersionPage | 'wrongCursor'> {
  const find = async (after = String(Number.POSITIVE_INFINITY), limit: number) => {
    const following = (await findVersions(tx, context)).filter(({ number }) => number < Number(after))
    return following.slice(0, limit).map((version) => {
      const size_bytes = version.cookieDomains.reduce((bytes, domain) => bytes + Buffer.byteLength(domain), 0)
      return { ...version, size_bytes }
    })
  }
  const list = ['browser-context-versions', context.account_id, context.id]
  const page = await cursors.page(list, request, find, { bound: boundPage, positionOf: ({ number }) => String(number) })
  return page ? { versions: page.rows, nextCursor: page.nextCursor } : 'wrongCursor'
}

// Commits a stored version of a browser context: numbers it, makes it current, and records who wrote it.

/** A version that is stored but not committed. */
interface StagedVersion {
  id: string
  contextId: string
}

/** A run has the lease on the context; nothing was stored. */
export interface ContextInUse {
  heldByRunId: string
}

/** The writer may not replace the current version; nothing was stored. */
export interface VersionChanged {
  currentVersionId: string
}

/** In place of a version's id while the context is empty. */
const noVersionId = 'empty'

interface CommitOptions {
  /** The lease of the run that wrote the version; without one, no run may have a lease. */
  lease?: ContextLease
  /** Decides by the current version's id. */
  mayReplace?: (versionId: string) => boolean
  /** Versions that the context keeps, including the current one. */
  versionsKept: number
}

/** Numbers the version, makes it current, and deletes versions beyond the limit. */
async function commitVersion(
  tx: Transaction,
  staged: StagedVersion,
  { lease, mayReplace, versionsKept }: CommitOptions,
): Promise<Version | ContextInUse | VersionChanged | undefined> {
  const { id, contextId } = staged
  const { query } = tx
  const contexts = query.selectFrom('browser_contexts').selectAll().where('id', '=', contextId)
  const context = await contexts.executeTakeFirst()
  if (!context || context.deleted_at !== null) return undefined
  const hasLease = context.held_by_run_id === (lease?.runId ?? null) && (!lease || context.fence === lease.fence)
  if (!hasLease) {
    await discardVersion(tx, staged)
    return { heldByRunId: context.held_by_run_id ?? '' }
  }
  if (mayReplace?.(currentVersionId(context)) === false) {
    await discardVersion(tx, staged)
    return { currentVersionId: currentVersionId(context) }
  }
  const version = context.version + 1
  const numbered = query.updateTable('browser_context_versions').set({ version }).where('id', '=', id)
  const row = await numbered.returning(metadataColumns).executeTakeFirstOrThrow()
  const change = { version, version_id: id, updated_at: Date.now() }
  await query.updateTable('browser_contexts').set(change).where('id', '=', contextId).execute()
  const versions = query.deleteFrom('browser_context_versions').where('browser_context_id', '=', contextId)
  await versions.where('version', '<=', version - versionsKept).execute()
  return { ...toVersion(row), isCurrent: true }
}

async function discardVersion({ query }: Transaction, { id }: StagedVersion): Promise<void> {
  await query.deleteFrom('browser_context_versions').where('id', '=', id).execute()
}

function currentVersionId({ version_id }: { version_id: string | null }): string {
  return version_id ?? noVersionId
}

/** In the audit log. */
async function recordVersion(
  tx: Transaction,
  { id, account_id, name }: ContextRow,
  { number, restoredFrom }: Version,
  actor: Actor | ApiKeyUse,
) {
  const by = await toActor(tx, actor)
  const details = { version: number, ...(restoredFrom !== null && { restoredFrom }) }
  const action = restoredFrom === null ? 'browserContext.stateReplaced' : 'browserContext.restored'
  await recordAudit(tx, account_id, { action, by, subject: { id, name }, details })
}
