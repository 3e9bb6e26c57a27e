/** Statements that find browser contexts, and their encrypted column. */
import type { EncryptedColumn } from '../../storage/encrypted-columns.ts'
import { parseId } from '../../storage/statement-values.ts'
import type { Transaction } from '../../storage/store.ts'
import type { BrowserContextsRow, SignInStatus } from '../../storage/tables/tables.ts'

/** A context with metadata of its current version. */
export type ContextRow = BrowserContextsRow & {
  size_bytes: number | null
  cookie_domains: string | null
  sign_in_status: SignInStatus | null
  sign_in_run_id: string | null
  signed_in_at: number | null
  needs_sign_in_since: number | null
}

export function selectContexts({ query }: Transaction, accountId: string) {
  return query
    .selectFrom('browser_contexts')
    .leftJoin('browser_context_versions', 'browser_context_versions.id', 'browser_contexts.version_id')
    .leftJoin('context_sign_ins', 'context_sign_ins.browser_context_id', 'browser_contexts.id')
    .selectAll('browser_contexts')
    .select([
      'browser_context_versions.size_bytes',
      'browser_context_versions.cookie_domains',
      'context_sign_ins.status as sign_in_status',
      'context_sign_ins.run_id as sign_in_run_id',
      'context_sign_ins.signed_in_at',
      'context_sign_ins.needs_sign_in_since',
    ])
    .where('browser_contexts.account_id', '=', accountId)
    .where('deleted_at', 'is', null)
}

export async function findContext(tx: Transaction, accountId: string, id: string): Promise<ContextRow | undefined> {
  const parsed = parseId(id)
  if (parsed === undefined) return undefined
  return selectContexts(tx, accountId).where('browser_contexts.id', '=', parsed).executeTakeFirst()
}

/** The runs that lease the browser contexts of these runs, by context; without contexts that do not exist. */
export async function findContextLeases(
  tx: Transaction,
  accountId: string,
  runs: readonly { browser_context_id: string | null }[],
): Promise<Map<string, string | null>> {
  const ids = [...new Set(runs.flatMap(({ browser_context_id: id }) => parseId(id ?? '') ?? []))]
  if (ids.length === 0) return new Map()
  const contexts = tx.query.selectFrom('browser_contexts').select(['id', 'held_by_run_id'])
  const found = await contexts
    .where('account_id', '=', accountId)
    .where('deleted_at', 'is', null)
    .where('id', 'in', ids)
    .execute()
  return new Map(found.map(({ id, held_by_run_id }) => [id, held_by_run_id]))
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
