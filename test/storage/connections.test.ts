/** Connections to PostgreSQL that have become useless, and waiting for whoever migrates: none of it needs help. */
import pg from 'pg'
import { expect, test, vi } from 'vitest'
import { migrationLockId } from '../../src/storage/postgres/postgres-schema.ts'
import { openPostgresStore } from '../../src/storage/postgres/postgres-store.ts'
import { StoreUnavailable } from '../../src/storage/store.ts'
import { postgres } from '../support/postgres.ts'
import { newPlace, type Test } from '../support/store.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'

async function clientOf(test: Test, place: string): Promise<pg.Client> {
  const client = new pg.Client(place)
  await client.connect()
  test.onTestFinished(() => client.end())
  return client
}

test('a connection that was lost without a word is used once more, and not again', async (test) => {
  const place = new URL(await newPlace(test, postgres))
  const proxy = await startTcpProxy(test, Number(place.port))
  place.port = String(proxy.port)
  const store = await openPostgresStore(place.href, { connectionsMax: 1 })
  test.onTestFinished(() => store.close())
  test.onTestFinished(() => void vi.useRealTimers())
  const read = () => store.read.all('SELECT 1 AS one', [])
  const write = () => store.write(({ all }) => all('SELECT 1 AS one', []))
  for (const act of [read, write]) {
    await act()
    proxy.lose()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const refused = expect(act()).rejects.toThrow(StoreUnavailable)
    await vi.advanceTimersByTimeAsync(30_000)
    await refused
    vi.useRealTimers()
    expect(await act()).toEqual([{ one: 1 }])
  }
})

test('statements that were prepared before a newer version has changed the tables are prepared anew', async (test) => {
  const place = await newPlace(test, postgres)
  const store = await openPostgresStore(place)
  test.onTestFinished(() => store.close())
  const newer = await clientOf(test, place)
  const sql = 'SELECT * FROM workers'
  const read = () => store.read.all(sql, [])
  const acts = [read, () => store.write(({ all }) => all(sql, []))]
  for (const [index, act] of acts.entries()) {
    // Each on a connection of its own.
    await Promise.all(Array.from({ length: 10 }, read))
    await newer.query(`ALTER TABLE execution_service.workers ADD COLUMN newer_${index} text`)
    expect(await act()).toEqual([])
  }
})

test('a process waits longer for another to migrate than it does for any other answer', async (test) => {
  const place = await newPlace(test, postgres)
  const migrating = await clientOf(test, place)
  const looking = await clientOf(test, place)
  await migrating.query('SELECT pg_advisory_lock($1)', [migrationLockId])
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  test.onTestFinished(() => void vi.useRealTimers())
  const opened = openPostgresStore(place)
  opened.catch(() => {})
  const waiting = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
  while ((await looking.query(waiting)).rows.length === 0);
  vi.advanceTimersByTime(40_000)
  await migrating.query('SELECT pg_advisory_unlock($1)', [migrationLockId])
  await (await opened).close()
})
