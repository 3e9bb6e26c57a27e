/** Statements that find browser contexts, and their encrypted column. */
import type { EncryptedColumn } from '../../storage/encrypted-columns.ts'
import { parseId } from '../../storage/statement-values.ts'
import type { Transaction } from '../../storage/store.ts'
import type { BrowserContextsRow } from '../../storage/tables.ts'

/** A context with metadata of its current version. */
export type ContextRow = BrowserContextsRow & { size_bytes: number | null; cookie_domains: string | null }

export function selectContexts({ query }: Transaction, accountId: string) {
  return query
    .selectFrom('browser_contexts')
    .leftJoin('browser_context_versions', 'browser_context_versions.id', 'browser_contexts.version_id')
    .selectAll('browser_contexts')
    .select(['browser_context_versions.size_bytes', 'browser_context_versions.cookie_domains'])
    .where('account_id', '=', accountId)
    .where('deleted_at', 'is', null)
}

export async function findContext(tx: Transaction, accountId: string, id: string): Promise<ContextRow | undefined> {
  const parsed = parseId(id)
  if (parsed === undefined) return undefined
  return selectContexts(tx, accountId).where('browser_contexts.id', '=', parsed).executeTakeFirst()
}

export async function isContextNameTaken({ query }: Transaction, accountId: string, name: string): Promise<boolean> {
  const row = query.selectFrom('browser_contexts').select('id').where('account_id', '=', accountId)
  return (await row.where('name', '=', name).executeTakeFirst()) !== undefined
}

/** Binds an encrypted state to its row, so that it cannot be decrypted as another row's. */
export function versionAad(accountId: string, contextId: string, versionId: string): string {
  return `${accountId}/browser-contexts/${contextId}/versions/${versionId}`
}

export const encryptedInBrowserContexts: readonly EncryptedColumn[] = [
  {
    table: 'browser_context_versions',
    key: ['id'],
    column: 'state',
    aadColumns: [
      '(SELECT account_id FROM browser_contexts WHERE browser_contexts.id = browser_context_id)',
      'browser_context_id',
      'id',
    ],
    aad: versionAad,
  },
]
