/** Lists the stored versions of a browser context, without their states. */
import type { Cursors } from '../../storage/cursors.ts'
import { pageBytesMax, takeBatch } from '../../storage/purge-target.ts'
import type { Transaction } from '../../storage/store.ts'
import type { BrowserContextVersionsTable } from '../../storage/tables/browser-context-tables.ts'
import type { ContextRow } from './browser-contexts.sql.ts'

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
  /** The number of the version that was restored. */
  restoredFrom: number | null
}

export interface VersionPage {
  versions: Version[]
  nextCursor: string | null
}

/** All columns but the state, which may be large. */
export const metadataColumns = [
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

export function toVersion(row: MetadataRow): Omit<Version, 'isCurrent'> {
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
export async function findVersions({ query }: Transaction, { id, version_id }: ContextRow): Promise<Version[]> {
  const rows = await query
    .selectFrom('browser_context_versions')
    .select(metadataColumns)
    .where('browser_context_id', '=', id)
    .where('version', 'is not', null)
    .orderBy('version', 'desc')
    .execute()
  return rows.map((row) => ({ ...toVersion(row), isCurrent: row.id === version_id }))
}

/** It has fewer versions than `limit` when their cookie domains would be larger than `pageBytesMax` together. */
export async function listVersions(
  tx: Transaction,
  cursors: Cursors,
  context: ContextRow,
  { limit, cursor }: { limit: number; cursor?: string | undefined },
): Promise<VersionPage | 'wrongCursor'> {
  const list = JSON.stringify(['browser-context-versions', context.account_id, context.id])
  const after = cursor === undefined ? undefined : cursors.read(list, cursor)
  if (cursor !== undefined && after === undefined) return 'wrongCursor'
  const all = await findVersions(tx, context)
  const following = after === undefined ? all : all.filter(({ number }) => number < Number(after))
  const sized = following.slice(0, limit).map((version) => ({ version, size_bytes: sizeOf(version) }))
  const versions = takeBatch(sized, pageBytesMax).map(({ version }) => version)
  const last = following.length > versions.length ? versions.at(-1) : undefined
  return { versions, nextCursor: last ? cursors.write(list, String(last.number)) : null }
}

function sizeOf({ cookieDomains }: Version): number {
  return cookieDomains.reduce((bytes, domain) => bytes + Buffer.byteLength(domain), 0)
}
