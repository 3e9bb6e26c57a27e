/** Fills a store with finished runs and their events, spread over several accounts, as after months of use. */
import { type RawBuilder, sql } from 'kysely'
import { Accounts } from '../src/domain/accounts/accounts.ts'
import { ApiKeys } from '../src/domain/api-keys/api-keys.ts'
import { operator } from '../src/domain/audit-log/audit-log.ts'
import { knownScopes } from '../src/openapi/served-documents.ts'
import type { Store, Transaction } from '../src/storage/store.ts'

/** The first account has half of the runs. */
export const accountCount = 20
/** As many as an account may have. */
const keysOfEach = 5
/** The first workflow is the one that the benchmark queues; the others exist in stored runs only. */
const workflowIds = [
  ...['first-line', 'export-orders', 'sync-prices', 'send-invoices', 'renew-session'],
  ...['import-products', 'count-visits', 'take-pictures', 'compare-offers', 'close-month'],
]
const days = 30
const dayMilliseconds = 24 * 60 * 60 * 1000
/** Keeps statements below PostgreSQL's limit of 30 seconds, even on a busy machine. */
const runsPerTransaction = 25_000

/** SQL for a number in base 16, padded to `digits`. */
export type Hexadecimal = (value: RawBuilder<unknown>, digits: number) => RawBuilder<unknown>

export const hexadecimal: Record<'embedded' | 'postgres', Hexadecimal> = {
  embedded: (value, digits) => sql`printf(${sql.lit(`%0${digits}x`)}, ${value})`,
  postgres: (value, digits) => sql`lpad(to_hex(CAST(${value} AS BIGINT)), ${sql.lit(digits)}, '0')`,
}

/** Creates the accounts, and returns the API keys of each. */
export async function createAccounts(store: Store): Promise<string[][]> {
  const accounts = new Accounts(store)
  const apiKeys = new ApiKeys(store, knownScopes())
  const values: string[][] = []
  for (let number = 1; number <= accountCount; number += 1) {
    const { id: accountId } = await accounts.create({ name: `Account ${number}`, scopesEnabled: false })
    const userId = await accounts.findAdminId(accountId)
    const ofAccount: string[] = []
    for (let count = 1; count <= keysOfEach; count += 1) {
      const created = { accountId, userId, name: `bench ${count}`, scopes: null, expiresAt: null }
      ofAccount.push((await apiKeys.create(created, operator)).value)
    }
    values.push(ofAccount)
  }
  await apiKeys.close()
  return values
}

/** Inserts runs spread evenly from 30 days ago to an hour ago, in the order of their ids. */
export async function addFinishedRuns(store: Store, count: number, hex: Hexadecimal): Promise<void> {
  const first = Date.now() - days * dayMilliseconds
  const stepMilliseconds = Math.floor((days * dayMilliseconds - dayMilliseconds / 24) / Math.max(1, count))
  for (let from = 0; from < count; from += runsPerTransaction) {
    const upTo = Math.min(count, from + runsPerTransaction)
    await store.write(async (tx) => {
      await insertBatch(tx, hex, { from, upTo, first, stepMilliseconds })
    })
  }
}

interface Batch {
  from: number
  upTo: number
  first: number
  stepMilliseconds: number
}

async function insertBatch({ query }: Transaction, hex: Hexadecimal, batch: Batch): Promise<void> {
  const runs = finishedRuns(hex, batch)
  await sql`INSERT INTO runs (id, account_id, api_key_id, workflow_id, workflow_version, status, reason, priority,
      attempts, failures, variables, output, error, progress, created_at, started_at, finished_at, tags)
    ${runs} SELECT id, account_id, api_key_id, workflow_id, '1.0.0', status, reason, 0, 1, failures,
      ${sql.lit(JSON.stringify({ note: 'a run of the benchmark', orderId: 'A-2041', retries: 3 }))},
      output, error, progress, created_at, created_at + 3, created_at + 1200,
      '["nightly","customer:' || customer || '"]' FROM finished ORDER BY n`.execute(query)
  await sql`INSERT INTO run_terms (account_id, term, scope, status, run_id)
    ${runs} SELECT account_id, term, CASE WHEN of_workflow = 1 THEN workflow_id ELSE '' END, status, id
    FROM (SELECT n, account_id, workflow_id, status, id, 'tag:nightly' AS term FROM finished WHERE customer IS NOT NULL
      UNION ALL SELECT n, account_id, workflow_id, status, id, 'tag:customer:' || customer FROM finished
        WHERE customer IS NOT NULL
      UNION ALL SELECT n, account_id, workflow_id, status, id, word FROM finished CROSS JOIN (${errorWords}) AS words
        WHERE error IS NOT NULL) AS terms
    CROSS JOIN (SELECT 0 AS of_workflow UNION ALL SELECT 1) AS scopes ORDER BY n`.execute(query)
  await sql`INSERT INTO run_events (run_id, sequence, at, type, data)
    ${runs} SELECT id, sequence, created_at + after_milliseconds, type, COALESCE(data, final_event)
    FROM finished CROSS JOIN (${eventsPerRun}) AS events ORDER BY n, sequence`.execute(query)
}

/** Of the only message. */
const errorWords = sql`SELECT 'error:error' AS word UNION ALL SELECT 'error:the' UNION ALL SELECT 'error:shop'
  UNION ALL SELECT 'error:said' UNION ALL SELECT 'error:503'`

const status = (status: string, attempt: number) => sql.lit(JSON.stringify({ status, attempt, reason: null }))
const step = sql.lit(JSON.stringify({ attempt: 1, name: 'fetch', status: 'finished', milliseconds: 310 }))
const log = sql.lit(
  JSON.stringify({ attempt: 1, level: 'info', message: 'Fetched 20 orders, 3 of them new', line: 12 }),
)

const eventsPerRun = sql`
  SELECT 1 AS sequence, 0 AS after_milliseconds, 'status' AS type, ${status('queued', 0)} AS data
  UNION ALL SELECT 2, 3, 'status', ${status('running', 1)}
  UNION ALL SELECT 3, 320, 'step', ${step}
  UNION ALL SELECT 4, 330, 'log', ${log}
  UNION ALL SELECT 5, 1200, 'status', CAST(NULL AS TEXT)`

/** Selects deterministic runs. `shuffled` is a multiplicative hash of the number, which spreads accounts, workflows and statuses. */
function finishedRuns(hex: Hexadecimal, { from, upTo, first, stepMilliseconds }: Batch): RawBuilder<unknown> {
  const big = (value: number) => sql`CAST(${sql.lit(value)} AS BIGINT)`
  const at = sql`(${big(first)} + n * ${sql.lit(stepMilliseconds)})`
  const time = hex(at, 12)
  const id = sql`substr(${time}, 1, 8) || '-' || substr(${time}, 9, 4) || '-7' || ${hex(sql`shuffled % 4096`, 3)}
    || '-8' || ${hex(sql`(shuffled / 4096) % 4096`, 3)} || '-' || ${hex(sql`n % 65536`, 4)}
    || ${hex(sql`shuffled`, 8)}`
  const workflow = sql.join(
    workflowIds.map((name, index) => sql`WHEN ${sql.lit(index)} THEN ${sql.lit(name)}`),
    sql` `,
  )
  return sql`WITH RECURSIVE numbers (n) AS (
      SELECT ${big(from)} UNION ALL SELECT n + 1 FROM numbers WHERE n < ${big(upTo - 1)}),
    shuffled_numbers AS (SELECT n, (n * 2654435761) % 4294967296 AS shuffled FROM numbers),
    holders AS (SELECT account_id, id AS api_key_id, ROW_NUMBER() OVER (ORDER BY account_id) - 1 AS place FROM api_keys),
    drawn AS (SELECT n, shuffled, ${id} AS id, ${at} AS created_at, (shuffled / 256) % 100 AS fate,
      CASE (shuffled / 1024) % ${sql.lit(workflowIds.length)} ${workflow} END AS workflow_id,
      CASE WHEN shuffled % 2 = 0 THEN 0 ELSE (shuffled / 2) % ${sql.lit(accountCount)} END AS place
      FROM shuffled_numbers),
    finished AS (SELECT n, drawn.id, CASE WHEN shuffled % 4 = 1 THEN shuffled % 1000 END AS customer, account_id, api_key_id, workflow_id, created_at,
      CASE WHEN fate < 92 THEN 'succeeded' WHEN fate < 97 THEN 'failed' WHEN fate < 99 THEN 'cancelled' ELSE 'timedOut' END
        AS status,
      CASE WHEN fate BETWEEN 92 AND 96 THEN 'workflowFailed' WHEN fate IN (97, 98) THEN 'cancelRequested' WHEN fate = 99 THEN 'timeLimit' END AS reason,
      CASE WHEN fate BETWEEN 92 AND 96 THEN 1 ELSE 0 END AS failures,
      CASE WHEN fate < 92 THEN ${sql.lit(JSON.stringify({ orders: 20, total: 1834.5 }))} END AS output,
      CASE WHEN fate BETWEEN 92 AND 96 THEN ${sql.lit(JSON.stringify({ name: 'Error', message: 'The shop said 503' }))} END
        AS error,
      CASE WHEN fate < 50 THEN ${sql.lit(JSON.stringify({ percent: 100, message: 'done' }))} END AS progress,
      CASE WHEN fate < 92 THEN ${status('succeeded', 1)} WHEN fate < 97 THEN ${status('failed', 1)}
        WHEN fate < 99 THEN ${status('cancelled', 1)} ELSE ${status('timedOut', 1)} END AS final_event
      FROM drawn JOIN holders ON holders.place = drawn.place)`
}
