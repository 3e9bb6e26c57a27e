/**
 * Throttles: at most so many attempts of a workflow start within any period, over all processes. Each start is a row,
 * numbered within its throttle: with a limit of 10, the next start waits until the tenth-last one is a period ago.
 * Starts are counted and stored by the claim, in its transaction.
 */
import type { PurgeTarget } from '../../storage/purge-target.ts'
import { inList } from '../../storage/statement-values.ts'
import { type Statement, statement, type Transaction } from '../../storage/store.ts'
import type { ThrottlesTable } from '../../storage/tables/run-tables.ts'
import { isStoredRate, type Throttle } from '../workflows/throttle.ts'
import { groupOf } from './concurrency-groups.ts'
import type { ScopeOf } from './concurrency-limits.ts'

interface ThrottledRun {
  account_id: string
  workflow_id: string
}

/** Identifies the starts that are counted together. @param group the run's concurrency group, for a rate per key. */
export function throttleId(
  { per }: Pick<Throttle, 'per'>,
  run: ThrottledRun,
  group: string | null,
  scopeOf: ScopeOf = ({ workflow_id }) => workflow_id,
): string {
  if (per === 'key') return group ?? groupOf(run, undefined)
  return per === 'account' ? `${run.account_id} ${run.workflow_id}` : scopeOf(run)
}

/** Whether no run may start yet. A row of another rate, from before a deployment, says nothing. */
export function isAtRate(row: ThrottlesTable | undefined, throttle: Throttle, now: number): boolean {
  return row !== undefined && isStoredRate(row, throttle) && row.permits_at > now
}

/** Those of the throttles that are at their rate, by id. */
export async function findThrottles(tx: Transaction, ids: Iterable<string>): Promise<Map<string, ThrottlesTable>> {
  const distinct = [...new Set(ids)]
  if (distinct.length === 0) return new Map()
  const { marks, values } = inList(distinct)
  const rows = await tx.all<ThrottlesTable>(`SELECT * FROM throttles WHERE id IN (${marks})`, values)
  return new Map(rows.map((row) => [row.id, row]))
}

/** Whether a run may start now. If not, stores when the next one may. Claims of throttled runs are exclusive. */
export async function permitsStart(tx: Transaction, id: string, throttle: Throttle, now: number): Promise<boolean> {
  const count = await countStarts(tx, id)
  return storePermit(tx, id, throttle, count, now)
}

/** Counts a start; returns whether another run may start now. */
export async function recordStart(tx: Transaction, id: string, throttle: Throttle, now: number): Promise<boolean> {
  const number = (await countStarts(tx, id)) + 1
  await tx.all(tx.statements.insertStart, [id, number, now, now + throttle.periodSeconds * 1000])
  await tx.all(tx.statements.deleteStarts, [id, number - throttle.limit])
  return storePermit(tx, id, throttle, number, now)
}

async function countStarts(tx: Transaction, id: string): Promise<number> {
  const [latest] = await tx.all(tx.statements.latestStart, [id])
  return latest?.number ?? 0
}

async function storePermit(
  tx: Transaction,
  id: string,
  { limit, periodSeconds }: Throttle,
  count: number,
  now: number,
): Promise<boolean> {
  const [start] = count < limit ? [] : await tx.all(tx.statements.findStart, [id, count - limit + 1])
  const permitsAt = start ? start.started_at + periodSeconds * 1000 : 0
  if (permitsAt <= now) await tx.all(tx.statements.deleteThrottle, [id])
  else await tx.all(tx.statements.setThrottle, [id, limit, periodSeconds, permitsAt])
  return permitsAt <= now
}

/** When the next throttle permits a start; `null` if none is at its rate. */
export async function nextPermit(tx: Transaction): Promise<number | null> {
  const [row] = await tx.all(tx.statements.nextPermit, [])
  return row?.at ?? null
}

/** Resumes the next run of each group whose throttle permits a start now. The ready runs of others need a claim only. */
export async function resumePermitted(tx: Transaction, now: number): Promise<void> {
  const permitted = await tx.all(tx.statements.deletePermitting, [now, now])
  // In the same order in all processes, which prevents deadlocks.
  for (const id of permitted.map((row) => row.id).sort()) await tx.all(tx.statements.resumeNextOfGroup, [id])
}

const purgedMax = 1000
/** Starts are purged this long after they count, since most are deleted by later ones. */
const purgeDelayMilliseconds = 60 * 60 * 1000

const findExpiredStart: Statement<{ throttle_id: string }, [until: number]> = statement(
  'SELECT throttle_id FROM throttle_starts WHERE expires_at <= ? ORDER BY expires_at LIMIT 1',
)

const deleteExpiredStarts: Statement<object, [until: number]> = statement(`DELETE FROM throttle_starts
  WHERE (throttle_id, number) IN (SELECT throttle_id, number FROM throttle_starts
    WHERE expires_at <= ? ORDER BY expires_at LIMIT ${purgedMax})`)

export function expiredStarts(now: () => number): PurgeTarget {
  const until = () => now() - purgeDelayMilliseconds
  return {
    concurrent: true,
    next: async (tx) => (await tx.all(findExpiredStart, [until()]))[0]?.throttle_id,
    async remove(tx) {
      await tx.all(deleteExpiredStarts, [until()])
    },
  }
}
