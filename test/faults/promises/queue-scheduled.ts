/**
 * A service process without surfaces, by `node queue-scheduled.ts STORE LOCATION CLOCK LEDGER`: queues the runs of schedules
 * until it is killed. CLOCK is a file that `readClock` reads. Appends errors to the ledger.
 */
import { hash } from 'node:crypto'
import { appendFileSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { StorageUsage } from '../../../src/domain/accounts/storage-usage.ts'
import { Scheduler } from '../../../src/domain/schedules/scheduler.ts'
import { Workflows } from '../../../src/domain/workflows/workflows.ts'
import { Encryption, FixedKeys } from '../../../src/storage/encryption.ts'
import type { Store } from '../../../src/storage/store.ts'
import { workflow } from '../../support/snapshots.ts'

const [name = '', location = '', clockPath = '', ledgerPath = ''] = process.argv.slice(2)

async function openStore(): Promise<Store> {
  if (name === 'sqlite') return (await import('../../../src/storage/sqlite/sqlite-store.ts')).openSqliteStore(location)
  return (await import('../../../src/storage/postgres/postgres-store.ts')).openPostgresStore(location)
}

/** A clock that runs faster than the machine's, and that the test sets. */
function now(): number {
  const { real, virtual, speed } = JSON.parse(readFileSync(clockPath, 'utf8'))
  return Math.round(virtual + (Date.now() - real) * speed)
}

const store = await openStore()
const encryption = new Encryption(new FixedKeys([hash('sha256', location, 'buffer')]))
const listed = new Workflows([workflow()])
const workflows = { current: () => listed }
const usage = new StorageUsage(store, 0)
const log = pino({ level: 'silent' })
const scheduler = new Scheduler({ store, encryption, workflows, queuedRunsMax: 0, usage, log, now })

process.send?.('ready')
for (;;) {
  await scheduler.once().catch((error: unknown) => appendFileSync(ledgerPath, `${String(error)}\n`))
  await delay(5)
}
