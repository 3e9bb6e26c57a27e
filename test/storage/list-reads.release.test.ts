/**
 * Each list of runs that the document permits, and the place of a run in the queue, reads few pages of a large store. The
 * test counts pages instead of milliseconds, so that other work on the machine does not change its result.
 */
import { readFileSync } from 'node:fs'
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { addWaitingDetails } from '../../src/domain/queue/waiting.ts'
import { findListErrors, type ListRequest, toRunFilter } from '../../src/domain/run-api/list-request.ts'
import { Run } from '../../src/domain/runs/run.ts'
import { transitions } from '../../src/domain/runs/run-state.ts'
import { listQuery } from '../../src/storage/runs/run-list.ts'
import type { Store, Transaction, Value } from '../../src/storage/store.ts'
import type { RunsTable } from '../../src/storage/tables/run-tables.ts'
import { operationOf } from '../operations/document.ts'
import { newStoreLocation, openStore, type Test } from '../support/domain.ts'
import { type StoreKind, stores } from '../support/store-kinds.ts'

const runs = 200_000
const runsPerWrite = 20_000
/** Each list of queued runs by workflow or key reads an index of the account's 80,000, about 2,300 pages. */
const pagesOfListMax = 3500
const pagesOfPlaceMax = 1200

const [account, other] = ['0198f2c4-0000-7000-8000-000000000001', '0198f2c4-0000-7000-8000-000000000002']
const [common, rare] = ['0198f2c4-1a20-7b11-8c22-5d3e6f7a8b90', '0198f2c4-1a20-7b11-8c22-5d3e6f7a8b91']
const firstAt = Date.UTC(2026, 0, 1)
const timeOf = (number: number) => firstAt + number * 1000

type Filters = Omit<ListRequest, 'limit' | 'cursor' | 'search'>

/** By parameter: values that match most runs, few and none. `undefined` leaves the filter out. */
const choices: { [Name in keyof Required<Filters>]: Filters[Name][] } = {
  workflowId: [undefined, 'sync', 'rare', 'none'],
  status: [undefined, ...Object.keys(transitions).map((status) => [status]), ['queued', 'failed']] as never,
  tag: [undefined, ['nightly'], ['none'], ['nightly', 'b', ...'cdefghij']],
  browserContextId: [undefined, common, rare],
  reason: [undefined, 'timeLimit', 'workerLost'],
  apiKeyId: [undefined, common, rare],
  scheduleId: [undefined, common, rare],
  parentRunId: [undefined, rare],
  errorWord: [undefined, 'timeout', 'none'],
  order: ['newestFirst', 'oldestFirst'],
  createdAfter: [undefined, timeOf(runs / 2)],
  createdBefore: [undefined, timeOf(runs / 2 + 1000)],
}

/** Every combination of the choices that the service does not refuse. */
function allRequests(): ListRequest[] {
  let requests: ListRequest[] = [{ limit: 100 }]
  for (const [name, values] of Object.entries(choices)) {
    const combined = requests.flatMap((request) => values.map((value) => ({ ...request, [name]: value })))
    requests = combined.filter((request) => findListErrors(request).length === 0)
  }
  return requests
}

/** Runs a second apart: almost half are queued; a tenth belong to another account. */
async function fill(store: Store, kind: StoreKind) {
  const hex = (value: string, digits: number) =>
    kind.name === 'sqlite' ? `printf('%0${digits}x', ${value})` : `lpad(to_hex(${value}), ${digits}, '0')`
  const at = `(CAST(${firstAt} AS BIGINT) + n * 1000)`
  const id = `substr(${hex(at, 12)}, 1, 8) || '-' || substr(${hex(at, 12)}, 9, 4) || '-7000-8000-' || ${hex('n', 12)}`
  const status = `CASE WHEN n % 20 < 9 THEN 'queued' WHEN n % 2000 = 19 THEN 'running' WHEN n % 20 < 15 THEN 'succeeded'
    WHEN n % 20 < 17 THEN 'failed' WHEN n % 20 = 17 THEN 'timedOut' WHEN n % 20 = 18 THEN 'cancelled' ELSE 'expired' END`
  const execute = (text: string) => store.write(({ query }) => sql.raw(text).execute(query))
  await execute(`INSERT INTO accounts (id, name, scopes_enabled, created_at)
    VALUES ('${account}', 'a', 0, 0), ('${other}', 'b', 0, 0)`)
  for (let from = 0; from < runs; from += runsPerWrite) {
    await execute(`INSERT INTO runs (id, account_id, api_key_id, workflow_id, workflow_version, status, reason, priority,
        created_at, finished_at, browser_context_id, schedule_id, tags, variables)
      WITH RECURSIVE numbers (n) AS (
        SELECT CAST(${from} AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < ${from + runsPerWrite - 1})
      SELECT ${id}, CASE WHEN n % 10 = 3 THEN '${other}' ELSE '${account}' END,
        CASE WHEN n % 1000 = 3 THEN '${rare}' WHEN n % 2 = 0 THEN '${common}' END,
        CASE WHEN n % 5000 = 19 THEN 'rare' WHEN n % 3 = 0 THEN 'sync' ELSE 'export' END, '1.0.0', ${status},
        CASE WHEN n % 20 IN (15, 16) THEN 'workflowFailed' WHEN n % 20 = 17 THEN 'timeLimit'
          WHEN n % 20 = 18 THEN 'cancelRequested' END,
        n % 3 - 1, ${at}, CASE WHEN n % 20 < 9 OR n % 2000 = 19 THEN NULL ELSE ${at} + 10 END,
        CASE WHEN n % 2 = 1 THEN '${common}' END, CASE WHEN n % 4 = 2 THEN '${common}' END, '["nightly"]', '{"a":1}'
      FROM numbers`)
    await execute(`INSERT INTO run_terms (account_id, term, scope, status, run_id)
      SELECT account_id, term, CASE WHEN of_workflow = 1 THEN workflow_id ELSE '' END, status, id FROM runs
      CROSS JOIN (SELECT 'tag:nightly' AS term UNION ALL SELECT 'tag:b' UNION ALL SELECT 'error:timeout') AS terms
      CROSS JOIN (SELECT 0 AS of_workflow UNION ALL SELECT 1) AS scopes
      WHERE created_at >= ${timeOf(from)} AND (term <> 'error:timeout' OR status IN ('failed', 'timedOut'))`)
  }
}

const bytesRead = () => Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1])

/** Pages of the database that the statement reads, from its cache or from files. */
async function countPages(store: Store, kind: StoreKind, text: string, values: readonly Value[]): Promise<number> {
  if (kind.name === 'sqlite') {
    // Empties the page cache, so that each page is read from the file.
    await store.read.all('PRAGMA shrink_memory', [])
    const before = bytesRead()
    await store.read.all(text, values)
    return (bytesRead() - before) / 4096
  }
  return store.write(async ({ query }) => {
    let count = 0
    await sql.raw(`PREPARE counted AS ${text.replaceAll('?', () => `$${++count}`)}`).execute(query)
    const literals = values.map((value) => `'${value}'`).join(', ')
    const explain = `EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE counted (${literals})`
    const { rows } = await sql.raw<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(explain).execute(query)
    await sql.raw('DEALLOCATE counted').execute(query)
    const { Plan: plan } = (rows[0] as (typeof rows)[number])['QUERY PLAN'][0]
    return (plan['Shared Hit Blocks'] as number) + (plan['Shared Read Blocks'] as number)
  })
}

async function openFilled(test: Test, kind: StoreKind) {
  const store = await openStore(test, await newStoreLocation(test, kind), kind)
  await fill(store, kind)
  return store
}

/** The statement that counts the runs before one. */
async function placeStatement({ read }: Store, id: string, changes: Partial<RunsTable>) {
  const [row] = await read.all<RunsTable>('SELECT * FROM runs WHERE id = ?', [id])
  const statements: { sql: string; values: readonly Value[] }[] = []
  const all: Transaction['all'] = async (statement, values) => {
    statements.push({
      sql: typeof statement === 'string' ? statement : statement.sql,
      values: values as unknown as Value[],
    })
    return []
  }
  await addWaitingDetails({ ...read, all }, new Run({ ...(row as RunsTable), ...changes }, () => undefined, [], []))
  const counting = statements.filter(({ sql }) => sql.includes('COUNT'))
  expect(counting).toHaveLength(1)
  return counting[0] as (typeof statements)[number]
}

test('the choices cover every filter that the document has', () => {
  const names = operationOf('listRuns').parameters.map(({ name }) => name)
  expect(Object.keys(choices).sort()).toEqual(names.filter((name) => !['limit', 'cursor'].includes(name)).sort())
})

describe.each(stores)('with 200,000 runs ($name)', (kind) => {
  test('no list reads more than its page and the index of the queue', async (test) => {
    const store = await openFilled(test, kind)
    const small = { join: store.read.statements.joinSmallRuns, bytesMax: 8 * 1024 }
    const requests = allRequests()
    expect(requests.length).toBeGreaterThan(2000)
    const exceeding: string[] = []
    for (const request of requests) {
      const { list, values } = listQuery(account, toRunFilter(request, undefined), request.limit + 1, small)
      const pages = await countPages(store, kind, list.sql, values)
      if (pages > pagesOfListMax) exceeding.push(`${Math.round(pages)} pages: ${JSON.stringify(request)}`)
    }
    expect(exceeding).toEqual([])
  })

  test('the place of a queued run is counted up to 1,000', async (test) => {
    const store = await openFilled(test, kind)
    const queued = store.read.query.selectFrom('runs').select(['id']).where('status', '=', 'queued')
    const last = await queued.where('account_id', '=', account).orderBy('id', 'desc').executeTakeFirstOrThrow()
    for (const priority of [10, 1, 0, -1, -10]) {
      const { sql: text, values } = await placeStatement(store, last.id, { priority })
      expect(await countPages(store, kind, text, values), `priority ${priority}`).toBeLessThan(pagesOfPlaceMax)
    }
  })
})
