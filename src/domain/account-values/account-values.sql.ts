/** Statements of secrets and settings, and their encrypted columns. */
import type { EncryptedColumn } from '../../storage/encrypted-columns.ts'
import { inList } from '../../storage/statement-values.ts'
import { statement, type Transaction } from '../../storage/store.ts'
import type { AccountValuesTable } from '../../storage/tables/account-tables.ts'

/** `secret`: no response contains its value. */
export type ValueKind = 'secret' | 'setting'

/** The names that a workflow declares. */
export interface DeclaredNames {
  secrets: readonly string[]
  settings: readonly string[]
}

/** Binds an encrypted value to its account, kind and name. */
export function valueAad(accountId: string, kind: string, name: string): string {
  return `${accountId}/values/${kind}/${name}`
}

/** Binds what a worker outside of the service has got to the run. */
export function declaredAad(runId: string): string {
  return `runs/${runId}/declared`
}

export const encryptedInAccountValues: readonly EncryptedColumn[] = [
  {
    table: 'account_values',
    key: ['account_id', 'kind', 'name'],
    column: 'value',
    aadColumns: ['account_id', 'kind', 'name'],
    aad: valueAad,
  },
  { table: 'attempt_reports', key: ['run_id'], column: 'declared', aadColumns: ['run_id'], aad: declaredAad },
]

/** Secrets and settings of the account with these names, at least one name. Each is one look-up in the primary key. */
export function findValues(
  tx: Transaction,
  accountId: string,
  { secrets, settings }: DeclaredNames,
): Promise<Pick<AccountValuesTable, 'kind' | 'name' | 'version' | 'updated_at' | 'value'>[]> {
  const { marks, values } = inList([...new Set([...secrets, ...settings])])
  const kinds = [...(secrets.length > 0 ? ["'secret'"] : []), ...(settings.length > 0 ? ["'setting'"] : [])]
  const sql = `SELECT kind, name, version, updated_at, value FROM account_values
    WHERE account_id = ? AND kind IN (${kinds.join(', ')}) AND name IN (${marks}) ORDER BY kind, name`
  return tx.all(sql, [accountId, ...values])
}

/** In each transaction that changes a value: attempts that start later do not use what was read before. */
export const nextValuesVersion = statement<object, [accountId: string]>(
  'UPDATE accounts SET values_version = values_version + 1 WHERE id = ?',
)

/** Identifies the versions of what the account has of these names, so that a change is noticed. */
export function describeVersions(
  rows: readonly Pick<AccountValuesTable, 'kind' | 'name' | 'version' | 'updated_at'>[],
) {
  return rows
    .map(({ kind, name, version, updated_at }) => `${kind} ${name} ${version} ${updated_at}`)
    .sort()
    .join('\n')
}

/** In the store only: the reason of a queued run that waits for a secret or a setting. `waitingFor` shows the kind. */
export function waitReason(kind: ValueKind, name: string): string {
  return `${kind}:${name}`
}
