/** A run's events, bounded for a page: a run may have logged 100,000 lines. */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { type Statement, statement, type Transaction } from '../../storage/store.ts'
import type { RunEvent } from './run.ts'
import { firstEvent, followsFirst, toEvent } from './runs.sql.ts'

export interface History {
  /** In order: statuses, steps, artifacts, the last progress and the last log lines. */
  events: RunEvent[]
  /** Older log lines that are left out. */
  logsOmitted: number
  /** Older events of other types that are left out. */
  othersOmitted: number
}

/** How many statuses, steps and artifacts a history has at most. */
const othersMax = 1000

/**
 * Events per read, between which the event loop continues: 2,000 take 0.4 ms. An index by type would save reading every
 * log line (35 ms for 100,000), but cost a write for each event of every run.
 */
const eventsPerRead = 2000

const findLast = statement<{ latest: number }, [runId: string]>(
  'SELECT COALESCE(MAX(sequence), 1) AS latest FROM run_events WHERE run_id = ?',
)

interface Row {
  sequence: number
  at: number
  type: string
  data: string
}
const toRow = ({ data, ...event }: RunEvent): Row => ({ ...event, data: JSON.stringify(data) })
type Range = [runId: string, above: number, upTo: number]

const inRange = 'SELECT sequence, at, type, data FROM run_events WHERE run_id = ? AND sequence > ? AND sequence <= ?'
const findOthers: Statement<Row, Range> = statement(`${inRange} AND type <> 'log' ORDER BY sequence DESC`)
const findLogs: Statement<Row, [...Range, limit: number]> = statement(
  `${inRange} AND type = 'log' ORDER BY sequence DESC LIMIT ?`,
)

/** Reads backwards from the last event. */
export async function readHistory(tx: Transaction, runId: string, logsMax: number): Promise<History> {
  const [last] = await tx.all(findLast, [runId])
  const latest = last?.latest ?? 1
  const logs: Row[] = []
  const others: Row[] = []
  let progress: Row | undefined
  let othersOmitted = 0
  // Sequence numbers have no gaps, so every event that is not of another type is a log line.
  let logCount = latest
  for (let end = latest; end > 0; end -= eventsPerRead) {
    if (end < latest) await yieldToEventLoop()
    const above = Math.max(0, end - eventsPerRead)
    const found = await tx.all(findOthers, [runId, above, end])
    if (above === 0 && followsFirst(found.at(-1))) found.push(toRow(firstEvent(runId)))
    for (const row of found) {
      logCount -= 1
      if (row.type === 'progress') progress ??= row
      else if (others.length < othersMax) others.push(row)
      else othersOmitted += 1
    }
    const missing = logsMax - logs.length
    if (missing > 0) logs.push(...(await tx.all(findLogs, [runId, above, end, missing])))
  }
  const rows = [...logs, ...others, ...(progress ? [progress] : [])].sort((a, b) => a.sequence - b.sequence)
  return { events: rows.map(toEvent), logsOmitted: logCount - logs.length, othersOmitted }
}
