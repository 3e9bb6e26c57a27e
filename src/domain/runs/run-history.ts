/** What has happened to a run, bounded for a page: a run may have said a hundred thousand things. */
import { setImmediate as turn } from 'node:timers/promises'
import type { Transaction } from '../../storage/store.ts'
import type { RunEvent } from './run.ts'

export interface History {
  /** In their order: statuses, steps, the last progress, the last lines of the log. Each names its attempt. */
  events: RunEvent[]
  /** How many lines of the log are not among them, being older. */
  logsOmitted: number
  /** How many statuses and steps are not among them, being older. */
  othersOmitted: number
}

/** How many statuses and steps are told at most. */
const othersMax = 1000

/**
 * So many events are looked at before others get a turn; 2,000 take 0.4 ms. An index by type would spare looking at
 * every line of the log (100,000 took 35 ms in all), but each event of every run would have to be written to it.
 */
const eventsPerTurn = 2000

const latestSql = 'SELECT COALESCE(MAX(sequence), 0) AS latest FROM run_events WHERE run_id = ?'

const columns = 'SELECT sequence, at, type, data FROM run_events WHERE run_id = ? AND sequence > ? AND sequence <= ?'
const othersSql = `${columns} AND type <> 'log' ORDER BY sequence DESC`
const logsSql = `${columns} AND type = 'log' ORDER BY sequence DESC LIMIT ?`

interface Row {
  sequence: number
  at: number
  type: RunEvent['type']
  data: string
}

/** Reads from the end, so that what comes last is had without what is omitted. */
export async function historyOf(tx: Transaction, runId: string, logsMax: number): Promise<History> {
  const [last] = await tx.all<{ latest: number }>(latestSql, [runId])
  const latest = last?.latest ?? 0
  const logs: Row[] = []
  const others: Row[] = []
  let progress: Row | undefined
  let othersOmitted = 0
  // Sequence numbers have no gaps: what is no other event is a line of the log.
  let logsOmitted = latest
  for (let end = latest; end > 0; end -= eventsPerTurn) {
    if (end < latest) await turn()
    const begin = Math.max(0, end - eventsPerTurn)
    for (const row of await tx.all<Row>(othersSql, [runId, begin, end])) {
      logsOmitted -= 1
      if (row.type === 'progress') progress ??= row
      else if (others.length < othersMax) others.push(row)
      else othersOmitted += 1
    }
    const wanted = logsMax - logs.length
    if (wanted > 0) logs.push(...(await tx.all<Row>(logsSql, [runId, begin, end, wanted])))
  }
  const told = [...logs, ...others, ...(progress ? [progress] : [])].sort((a, b) => a.sequence - b.sequence)
  const events = told.map((row) => ({ ...row, data: JSON.parse(row.data) }))
  return { events, logsOmitted: logsOmitted - logs.length, othersOmitted }
}
