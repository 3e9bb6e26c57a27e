/**
 * Creates databases for tests on one PostgreSQL server per test run. The server is that of DATABASE_URL, or else one that
 * starts with the first request and is removed after the run.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import pg from 'pg'
import { v7 as uuid } from 'uuid'
import { openPostgresStore } from '../../src/storage/postgres/postgres-store.ts'
import { startPostgres } from './postgres-server.ts'

/** The address at which processes of the run request databases. */
const addressVariable = 'TEST_POSTGRES_URL'

/** Serves these requests in Vitest's main process. Returns the teardown. */
export default async function setUp(): Promise<(() => Promise<void>) | undefined> {
  // Projects run this each; one server is enough.
  if (process.env[addressVariable]) return undefined
  const givenUrl = process.env.DATABASE_URL
  // Services that tests start must not inherit it.
  delete process.env.DATABASE_URL
  let databases: Promise<Databases> | undefined
  const handle = async (request: IncomingMessage) => {
    databases ??= openDatabases(givenUrl)
    const { create, drop } = await databases
    if (request.method === 'POST') return create(request.url === '/empty')
    await drop(await text(request))
    return ''
  }
  const server = createServer(async (request, response) => {
    try {
      response.end(await handle(request))
    } catch (error) {
      response.writeHead(500).end(String(error))
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as { port: number }
  process.env[addressVariable] = `http://127.0.0.1:${port}`
  return async () => {
    server.close()
    await (await databases)?.close()
  }
}

/** Creates a database with the service's tables, or without them if `empty`. Returns its URL. */
export async function makeDatabase({ empty = false } = {}): Promise<string> {
  return send('POST', empty ? '/empty' : '/')
}

/** Drops a database and closes its connections. */
export async function dropDatabase(url: string): Promise<void> {
  await send('DELETE', '/', url)
}

async function send(method: string, path: string, body: string | null = null): Promise<string> {
  const address = process.env[addressVariable]
  if (!address) throw new Error('Databases for tests are not set up: vitest.config.ts needs them as globalSetup.')
  const response = await fetch(new URL(path, address), { method, body })
  if (!response.ok) throw new Error(await response.text())
  return response.text()
}

interface Databases {
  create(empty: boolean): Promise<string>
  drop(url: string): Promise<void>
  close(): Promise<void>
}

/** Number of databases created in advance. Creating one takes 20 ms on an idle machine. */
const readyCount = 4

async function openDatabases(given: string | undefined): Promise<Databases> {
  const server = given ? undefined : await startPostgres()
  const administration = given ?? (server?.url() as string)
  const pool = new pg.Pool({ connectionString: administration, max: 2 })
  const prefix = `execution_service_test_${uuid().replaceAll('-', '')}`
  const template = `${prefix}_0`
  const toUrl = (name: string) => {
    const url = new URL(administration)
    url.pathname = name
    return url.href
  }
  let count = 0
  const dropping = new Set<Promise<unknown>>()
  // The faster strategy for a small database.
  const createFrom = async (from: string) => {
    count += 1
    const name = `${prefix}_${count}`
    await pool.query(`CREATE DATABASE ${name} TEMPLATE ${from} STRATEGY file_copy`)
    return toUrl(name)
  }
  await pool.query(`CREATE DATABASE ${template} TEMPLATE template0`)
  await (await openPostgresStore(toUrl(template), { connectionsMax: 1 })).close()
  const ready: Promise<string>[] = []
  const prepare = () => {
    while (ready.length < readyCount) {
      const database = createFrom(template)
      // The error reaches the test that gets this database.
      database.catch(() => {})
      ready.push(database)
    }
  }
  return {
    create(empty) {
      if (empty) return createFrom('template0')
      prepare()
      const database = ready.shift() as Promise<string>
      prepare()
      return database
    },
    async drop(url) {
      const { pathname } = new URL(url)
      // Not awaited by tests.
      const dropped = pool.query(`DROP DATABASE IF EXISTS ${pathname.slice(1)} WITH (FORCE)`).catch(() => {})
      dropping.add(dropped)
      void dropped.then(() => dropping.delete(dropped))
    },
    async close() {
      await Promise.all(dropping)
      const unused = (await Promise.allSettled(ready)).flatMap((each) =>
        each.status === 'fulfilled' ? [each.value] : [],
      )
      if (given) {
        for (const url of [...unused, toUrl(template)])
          await pool.query(`DROP DATABASE ${new URL(url).pathname.slice(1)}`)
      }
      await pool.end()
      await server?.remove()
    },
  }
}
