/** The rows of one account in all tables, to export and to delete them. */
import type { Transaction, Value } from './store.ts'
import { jsonOfRules } from './tables/notification-tables.ts'
import { jsonOfRuns } from './tables/run-tables.ts'
import { jsonOfEndpoints, type Tables } from './tables/tables.ts'

export interface AccountTable {
  name: keyof Tables
  /** The columns of the primary key, in its order. */
  key: readonly string[]
  /** The condition of the account's rows, with the account's id as its only value. */
  isOfAccount: string
  /** Columns of JSON text. */
  json?: readonly string[]
  /** Columns whose values say nothing to people, or from which a secret could be guessed, such as hashes. */
  hidden?: readonly string[]
  /** Rows that are read at once; default 500. Rows of some tables have megabytes. */
  batch?: number
}

const ofUser = 'user_id IN (SELECT id FROM users WHERE account_id = ?)'
const ofContext = 'browser_context_id IN (SELECT id FROM browser_contexts WHERE account_id = ?)'
const ofAccount = 'account_id = ?'
const ofFile = 'file_id IN (SELECT id FROM files WHERE account_id = ?)'
const ofRule = 'rule_id IN (SELECT id FROM notification_rules WHERE account_id = ?)'
/** The table's name stands apart, since only `storage/runs` has statements about runs. */
const ofRun = (runs: keyof Tables = 'runs') => `run_id IN (SELECT id FROM ${runs} WHERE account_id = ?)`
/** The ids of throttles begin with the account. */
const startsWithAccount = (column: string) => `substr(${column}, 1, 36) = ?`

/** Each table before those that it refers to, so that rows can be deleted in this order. */
export const accountTables: readonly AccountTable[] = [
  { name: 'live_views', key: ['id'], isOfAccount: ofRun(), hidden: ['address'] },
  { name: 'wait_links', key: ['hash'], isOfAccount: ofAccount, hidden: ['hash'] },
  { name: 'run_waits', key: ['run_id', 'name'], isOfAccount: ofAccount, json: ['shown', 'completed_by'] },
  { name: 'attempt_reports', key: ['run_id'], isOfAccount: ofRun() },
  {
    name: 'run_terms',
    key: ['account_id', 'term', 'scope', 'status', 'run_id'],
    isOfAccount: ofAccount,
  },
  { name: 'run_events', key: ['id'], isOfAccount: ofRun(), json: ['data'] },
  { name: 'run_steps', key: ['run_id', 'name'], isOfAccount: ofRun(), batch: 50 },
  { name: 'artifacts', key: ['run_id', 'name'], isOfAccount: ofRun(), hidden: ['blob'], batch: 4 },
  { name: 'run_files', key: ['run_id', 'file_id'], isOfAccount: ofFile },
  { name: 'schedule_files', key: ['schedule_id', 'file_id'], isOfAccount: ofFile },
  { name: 'file_parts', key: ['file_id', 'position'], isOfAccount: ofFile, hidden: ['blob'], batch: 4 },
  { name: 'files', key: ['id'], isOfAccount: ofAccount },
  {
    name: 'runs',
    key: ['id'],
    isOfAccount: ofAccount,
    json: jsonOfRuns,
    batch: 50,
  },
  {
    name: 'run_rollups',
    key: ['account_id', 'period_seconds', 'starts_at', 'workflow_id'],
    isOfAccount: ofAccount,
    json: ['durations'],
  },
  { name: 'run_usage', key: ['account_id', 'day', 'workflow_id'], isOfAccount: ofAccount },
  {
    name: 'idempotency_keys',
    key: ['account_id', 'key'],
    isOfAccount: ofAccount,
    json: ['run_ids'],
    hidden: ['fingerprint'],
  },
  { name: 'throttle_starts', key: ['throttle_id', 'number'], isOfAccount: startsWithAccount('throttle_id') },
  { name: 'throttles', key: ['id'], isOfAccount: startsWithAccount('id') },
  { name: 'workers', key: ['id'], isOfAccount: ofAccount, json: ['workflows'] },
  { name: 'run_followers', key: ['run_id', 'user_id'], isOfAccount: ofAccount },
  { name: 'notification_events', key: ['id'], isOfAccount: ofRule },
  { name: 'notification_groups', key: ['rule_id', 'workflow_id'], isOfAccount: ofRule },
  { name: 'webhook_deliveries', key: ['id'], isOfAccount: ofAccount, batch: 100 },
  { name: 'notification_rules', key: ['id'], isOfAccount: ofAccount, json: jsonOfRules },
  {
    name: 'webhook_endpoints',
    key: ['id'],
    isOfAccount: ofAccount,
    json: jsonOfEndpoints,
  },
  {
    name: 'bulk_actions',
    key: ['id'],
    isOfAccount: ofAccount,
    json: ['filter', 'first_failure'],
    hidden: ['fingerprint'],
  },
  { name: 'schedules', key: ['id'], isOfAccount: ofAccount, json: ['options', 'variables'], batch: 50 },
  { name: 'context_sign_in_entries', key: ['id'], isOfAccount: ofContext, json: ['actor', 'error'] },
  { name: 'context_sign_ins', key: ['browser_context_id'], isOfAccount: ofAccount, json: ['variables', 'error'] },
  { name: 'browser_context_versions', key: ['id'], isOfAccount: ofContext, json: ['cookie_domains'], batch: 4 },
  { name: 'browser_contexts', key: ['id'], isOfAccount: ofAccount },
  { name: 'remote_workflows', key: ['id'], isOfAccount: ofAccount },
  { name: 'deployment_activations', key: ['id'], isOfAccount: ofAccount },
  { name: 'deployments', key: ['id'], isOfAccount: ofAccount, json: ['workflows'], batch: 1 },
  { name: 'account_values', key: ['account_id', 'kind', 'name'], isOfAccount: ofAccount },
  { name: 'storage_usage', key: ['account_id'], isOfAccount: ofAccount },
  { name: 'storage_days', key: ['account_id', 'day'], isOfAccount: ofAccount },
  { name: 'audit_log', key: ['id'], isOfAccount: ofAccount, json: ['details'] },
  { name: 'api_keys', key: ['id'], isOfAccount: ofAccount, json: ['scopes', 'workflow_ids'], hidden: ['hash'] },
  { name: 'sign_in_links', key: ['id'], isOfAccount: ofAccount, hidden: ['hash'] },
  { name: 'sessions', key: ['id'], isOfAccount: ofUser, hidden: ['hash'] },
  { name: 'recovery_codes', key: ['user_id', 'hash'], isOfAccount: ofUser, hidden: ['hash'] },
  { name: 'users', key: ['id'], isOfAccount: ofAccount, hidden: ['password_hash', 'totp_secret'] },
  { name: 'accounts', key: ['id'], isOfAccount: 'id = ?' },
]

/** Tables whose rows belong to the installation. */
export const installationTables: readonly (keyof Tables)[] = [
  'encryption_check',
  'leases',
  'run_rollup_progress',
  'schema_compatibility',
  'unused_blobs',
]

/** A row by the names of its columns. */
export type AccountRow = Record<string, Value>

const batchDefault = 500

/**
 * Reads the account's rows of the table in the order of its key.
 *
 * @param expressions SQL expressions over the row, whose values are members with these names.
 */
export async function* readAccountRows(
  tx: Pick<Transaction, 'all'>,
  { name, key, isOfAccount, batch = batchDefault }: AccountTable,
  accountId: string,
  expressions: Readonly<Record<string, string>> = {},
): AsyncGenerator<AccountRow> {
  const columns = key.join(', ')
  const selected = [`${name}.*`, ...Object.entries(expressions).map(([member, sql]) => `${sql} AS "${member}"`)]
  const marks = key.map(() => '?').join(', ')
  let after: Value[] | undefined
  for (;;) {
    const isAfter = after ? `AND (${columns}) > (${marks})` : ''
    const sql = `SELECT ${selected.join(', ')} FROM ${name} WHERE ${isOfAccount} ${isAfter} ORDER BY ${columns} LIMIT ${batch}`
    const rows: AccountRow[] = await tx.all<AccountRow>(sql, [accountId, ...(after ?? [])])
    yield* rows
    const last = rows.at(-1)
    if (!last || rows.length < batch) return
    after = key.map((column) => last[column] as Value)
  }
}

export async function countAccountRows(
  tx: Pick<Transaction, 'all'>,
  { name, isOfAccount }: AccountTable,
  accountId: string,
): Promise<number> {
  const [row] = await tx.all<{ count: number }>(`SELECT COUNT(*) AS count FROM ${name} WHERE ${isOfAccount}`, [
    accountId,
  ])
  return Number(row?.count)
}

/**
 * Deletes the account's rows of the table, one batch per transaction. They are found outside of it, since not every table has an
 * index by account, so that other writers wait for the deletion alone.
 *
 * @param write runs a transaction.
 */
export async function deleteAccountRows(
  read: Pick<Transaction, 'all'>,
  write: (work: (tx: Transaction) => Promise<unknown>) => Promise<unknown>,
  { name, key, isOfAccount, batch = batchDefault }: AccountTable,
  accountId: string,
): Promise<void> {
  const columns = key.join(', ')
  const marks = `(${key.map(() => '?').join(', ')})`
  const remove = `DELETE FROM ${name} WHERE ${key.map((column) => `${column} = ?`).join(' AND ')}`
  let after: Value[] | undefined
  for (;;) {
    const isAfter = after ? `AND (${columns}) > ${marks}` : ''
    const next = `SELECT ${columns} FROM ${name} WHERE ${isOfAccount} ${isAfter} ORDER BY ${columns} LIMIT ${batch}`
    const rows = await read.all<AccountRow>(next, [accountId, ...(after ?? [])])
    const keys = rows.map((row) => key.map((column) => row[column] as Value))
    after = keys.at(-1)
    if (!after) return
    await write((tx) => Promise.all(keys.map((values) => tx.all(remove, values))))
    if (keys.length < batch) return
  }
}
