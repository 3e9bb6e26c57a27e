/** The PostgreSQL store replaces unusable connections by itself, and waits for migrations. */
import pg from 'pg'
import { describe, expect, test, vi } from 'vitest'
import type { QueueRequest } from '../../src/domain/queue/queue-request.ts'
import type { SchemaMigration } from '../../src/storage/migrations/migrations.ts'
import { toStoreError } from '../../src/storage/postgres/postgres-errors.ts'
import { migrationLockId } from '../../src/storage/postgres/postgres-schema.ts'
import { openPostgresStore } from '../../src/storage/postgres/postgres-store.ts'
import { StoreUnavailable } from '../../src/storage/store.ts'
import { newAccount, newStoreLocation, openDomain, queueRun, request, type Test } from '../support/domain.ts'
import { postgres } from '../support/postgres.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { asNewerVersion } from '../upgrades/newer-version.ts'

/** Creates a store, and a proxy that an URL of it leads through. */
async function newProxiedLocation(test: Test) {
  const location = await newStoreLocation(test, postgres)
  const proxied = new URL(location)
  const proxy = await startTcpProxy(test, Number(proxied.port))
  proxied.port = String(proxy.port)
  return { location, proxied: proxied.href, proxy }
}

async function connectClient(test: Test, location: string): Promise<pg.Client> {
  const client = new pg.Client(location)
  await client.connect()
  test.onTestFinished(() => client.end())
  return client
}

test('a silently lost connection fails its call within seconds, and all that were opened before are replaced', async (test) => {
  const { proxied, proxy } = await newProxiedLocation(test)
  const store = await openPostgresStore(proxied, { connectionsMax: 4 })
  test.onTestFinished(() => store.close())
  const read = () => store.read.all('SELECT 1 AS one', [])
  const write = () => store.write(({ all }) => all('SELECT 1 AS one', []))
  for (const act of [read, write]) {
    await Promise.all(Array.from({ length: 4 }, act))
    proxy.stallCurrent()
    const startedAt = performance.now()
    await expect(act()).rejects.toThrow(StoreUnavailable)
    expect(performance.now() - startedAt).toBeLessThan(15_000)
    // The other three connections are as old, and are not tried.
    const again = performance.now()
    expect(await Promise.all(Array.from({ length: 4 }, act))).toEqual(Array(4).fill([{ one: 1 }]))
    expect(performance.now() - again).toBeLessThan(3000)
  }
})

test('a statement that takes long on the server keeps its connection', async (test) => {
  const { proxied } = await newProxiedLocation(test)
  const store = await openPostgresStore(proxied, { connectionsMax: 1 })
  test.onTestFinished(() => store.close())
  expect(await store.read.all('SELECT 1 AS one FROM pg_sleep(5)', [])).toEqual([{ one: 1 }])
})

describe('runs whose connection is lost while they are stored', () => {
  async function openBehindProxy(test: Test) {
    const { location, proxied, proxy } = await newProxiedLocation(test)
    const direct = await openDomain(test, { kind: postgres, location })
    const domain = await openDomain(test, { kind: postgres, location: proxied })
    const { principal } = await newAccount(direct)
    // Opens the connection.
    await queueRun(domain, principal)
    const queueAll = (requests: QueueRequest[]) =>
      Promise.allSettled(requests.map((each) => domain.runs.queue(principal, each)))
    const count = async () => (await direct.runs.list(principal.accountId, { limit: 100 }))?.runs.length
    return { proxy, queueAll, count }
  }
  const refused = { status: 'rejected', reason: expect.any(StoreUnavailable) }

  test('are stored once, and refused', async (test) => {
    const { proxy, queueAll, count } = await openBehindProxy(test)
    proxy.loseResponseTo('a value to find')
    const requests = Array.from({ length: 3 }, () => ({ ...request, variables: { text: 'a value to find' } }))
    expect(await queueAll(requests)).toMatchObject([refused, refused, refused])
    expect(await count()).toBe(1 + requests.length)
  })

  test('are found by their idempotency keys', async (test) => {
    const { proxy, queueAll, count } = await openBehindProxy(test)
    proxy.loseResponseTo('COMMIT')
    const requests = ['one', 'two'].map((idempotencyKey) => ({ ...request, idempotencyKey }))
    expect(await queueAll(requests)).toMatchObject([refused, refused])
    const replayed = { status: 'fulfilled', value: { kind: 'queued', replayed: true } }
    expect(await queueAll(requests)).toMatchObject([replayed, replayed])
    expect(await count()).toBe(1 + requests.length)
  })
})

test('statements are prepared again after a newer version has migrated the tables', async (test) => {
  const location = await newStoreLocation(test, postgres)
  const store = await openPostgresStore(location)
  test.onTestFinished(() => store.close())
  const newer = await connectClient(test, location)
  const sql = 'SELECT * FROM workers'
  const read = () => store.read.all(sql, [])
  const acts = [read, () => store.write(({ all }) => all(sql, []))]
  for (const [index, act] of acts.entries()) {
    // Uses every connection of the pool.
    await Promise.all(Array.from({ length: 10 }, read))
    await newer.query(`ALTER TABLE execution_service.workers ADD COLUMN newer_${index} text`)
    expect(await act()).toEqual([])
  }
})

test('a migration is exempt from the query timeout, and other processes wait until it has finished', async (test) => {
  const location = await newStoreLocation(test, postgres)
  const changing = await connectClient(test, location)
  const observing = await connectClient(test, location)
  await changing.query('BEGIN; UPDATE execution_service.runs SET status = status')
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  test.onTestFinished(() => void vi.useRealTimers())
  const index: SchemaMigration = { name: '9001-index', kind: 'expand', indexes: { newer: 'ON runs (reason)' } }
  const open = () => openPostgresStore(location)
  const opened = asNewerVersion(() => Promise.all([open(), open()]), [index])
  opened.catch(() => {})
  const waiting = `SELECT 1 FROM pg_stat_progress_create_index WHERE phase LIKE 'waiting%' AND datname = current_database()`
  while ((await observing.query(waiting)).rows.length === 0);
  vi.advanceTimersByTime(40_000)
  await changing.query('COMMIT')
  for (const store of await opened) await store.close()
})

test('a process that waits for a migration of another says so in the end', async (test) => {
  const location = await newStoreLocation(test, postgres, { empty: true })
  const migrating = await connectClient(test, location)
  const start = performance.now()
  await migrating.query('SELECT pg_advisory_lock($1)', [migrationLockId])
  vi.spyOn(performance, 'now').mockImplementationOnce(() => start - 120_000)
  test.onTestFinished(() => void vi.restoreAllMocks())
  await expect(openPostgresStore(location)).rejects.toThrow(
    /^Another process has been migrating the database at .* for 60 seconds: wait/,
  )
})

test.each(['EPIPE', 'ECONNRESET', '57P01'])('%s makes the store unavailable', (code) => {
  const error = Object.assign(new Error('connection lost'), { code })
  expect(toStoreError(error)).toBeInstanceOf(StoreUnavailable)
})
