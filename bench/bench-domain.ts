/** The domain on each store, opened as the service opens it. */
import { openPostgresStore } from '../src/storage/postgres/postgres-store.ts'
import { openSqliteStore } from '../src/storage/sqlite/sqlite-store.ts'
import { type Domain, openDomain, type Test } from '../test/support/domain.ts'
import { startPostgres } from '../test/support/postgres-server.ts'
import { type StoreKind, sqlite } from '../test/support/store-kinds.ts'
import type { BenchOptions } from './bench-options.ts'
import { durable } from './filled-store.ts'

const embedded: StoreKind = { ...sqlite, open: (location) => openSqliteStore(location) }

async function openPostgres({ onTestFinished }: Test): Promise<StoreKind> {
  const server = await startPostgres({ settings: durable })
  onTestFinished(() => server.remove())
  return { ...sqlite, prepare: async () => server.url(), remove: async () => {}, open: (url) => openPostgresStore(url) }
}

/** Measures with a new store of each kind; `onTestFinished` registers what is called after it. */
export async function onEachStore<Row>(
  stores: BenchOptions['stores'],
  measure: (domain: Domain, test: Test) => Promise<Row[]>,
): Promise<(string | Row)[][]> {
  const rows = []
  for (const name of stores) {
    const cleanups: (() => unknown)[] = []
    const test: Test = { onTestFinished: (cleanup) => void cleanups.push(cleanup as () => unknown) }
    const kind = name === 'embedded' ? embedded : await openPostgres(test)
    rows.push([name, ...(await measure(await openDomain(test, { kind }), test))])
    for (const cleanup of cleanups.reverse()) await cleanup()
  }
  return rows
}
