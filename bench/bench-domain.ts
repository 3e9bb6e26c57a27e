/** The domain on each store, opened as the service opens it. */
import { openPostgresStore } from '../src/storage/postgres/postgres-store.ts'
import { openSqliteStore } from '../src/storage/sqlite/sqlite-store.ts'
import { type Domain, openDomain, type Test } from '../test/support/domain.ts'
import { startPostgres } from '../test/support/postgres-server.ts'
import { type StoreKind, sqlite } from '../test/support/store-kinds.ts'
import type { BenchOptions } from './bench-options.ts'
import { durable } from './filled-store.ts'

const embedded: StoreKind = { ...sqlite, open: (location) => openSqliteStore(location) }

async function openPostgres({ onTestFinished }: Test): Promise<{ kind: StoreKind; databasePid: number }> {
  const server = await startPostgres({ settings: durable })
  onTestFinished(() => server.remove())
  const open = (url: string) => openPostgresStore(url)
  const kind = { ...sqlite, prepare: async () => server.url(), remove: async () => {}, open }
  return { kind, databasePid: server.pid() }
}

/** Measures with a new store of each kind; `onTestFinished` registers what is called after it. */
export async function onEachStore<Row>(
  stores: BenchOptions['stores'],
  measure: (domain: Domain, test: Test, databasePid?: number) => Promise<Row[]>,
): Promise<(string | Row)[][]> {
  const rows = []
  for (const name of stores) {
    const cleanups: (() => unknown)[] = []
    const test: Test = { onTestFinished: (cleanup) => void cleanups.push(cleanup as () => unknown) }
    const { kind, databasePid } = name === 'embedded' ? { kind: embedded } : await openPostgres(test)
    rows.push([name, ...(await measure(await openDomain(test, { kind }), test, databasePid))])
    for (const cleanup of cleanups.reverse()) await cleanup()
  }
  return rows
}
