/** Commits a stored version of a browser context: numbers it, makes it current, and records who wrote it. */
import type { Transaction } from '../../storage/store.ts'
import { type Actor, type ApiKeyUse, recordAudit, toActor } from '../audit-log/audit-log.ts'
import type { ContextRow } from './browser-contexts.sql.ts'
import type { ContextLease } from './context-lease.ts'
import { metadataColumns, toVersion, type Version } from './version-list.ts'

/** A version that is stored but not committed. */
export interface StagedVersion {
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
export const noVersionId = 'empty'

interface CommitOptions {
  /** The lease of the run that wrote the version; without one, no run may have a lease. */
  lease?: ContextLease
  /** Decides by the current version's id. */
  mayReplace?: (versionId: string) => boolean
  /** Versions that the context keeps, including the current one. */
  versionsKept: number
}

/** Numbers the version, makes it current, and deletes versions beyond the limit. */
export async function commitVersion(
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

export async function discardVersion({ query }: Transaction, { id }: StagedVersion): Promise<void> {
  await query.deleteFrom('browser_context_versions').where('id', '=', id).execute()
}

export function currentVersionId({ version_id }: { version_id: string | null }): string {
  return version_id ?? noVersionId
}

/** In the audit log. */
export async function recordVersion(
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
