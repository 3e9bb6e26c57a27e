/**
 * One PostgreSQL for all tests of a run, and the databases that they ask it for; it starts when the first one asks. The
 * server is DATABASE_URL's, if that is set, or one of the run's own that is gone with it.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import pg from 'pg'
import { v7 as uuid } from 'uuid'
import { openPostgresStore } from '../../src/storage/postgres/postgres-store.ts'
import { startPostgres } from './postgres-server.ts'

/** Where the processes of the run ask for databases. */
const asked = 'TEST_POSTGRES_URL'

/** Starts what answers them, in vitest's own process; returns what ends it. */
export default async function setUp(): Promise<(() => Promise<void>) | undefined> {
  // Each project of a run that needs databases sets up; one is enough.
  if (process.env[asked]) return undefined
  const given = process.env.DATABASE_URL
  // For the services that tests start, it is what each test says.
  delete process.env.DATABASE_URL
  let databases: Promise<Databases> | undefined
  const answer = async (request: IncomingMessage) => {
    databases ??= openDatabases(given)
    const { make, drop } = await databases
    if (request.method === 'POST') return make(request.url === '/empty')
    await drop(await text(request))
    return ''
  }
  const server = createServer(async (request, response) => {
    try {
      response.end(await answer(request))
    } catch (error) {
      response.writeHead(500).end(String(error))
    }
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as { port: number }
  process.env[asked] = `http://127.0.0.1:${port}`
  return async () => {
    server.close()
    await (await databases)?.close()
  }
}

/** A database of its own; without the tables, when it is to be empty. Returns its URL. */
export async function makeDatabase({ empty = false } = {}): Promise<string> {
  return ask('POST', empty ? '/empty' : '/')
}

/** Removes it, with the connections that are still open to it. */
export async function dropDatabase(url: string): Promise<void> {
  await ask('DELETE', '/', url)
}

async function ask(method: string, path: string, body: string | null = null): Promise<string> {
  const address = process.env[asked]
  if (!address) throw new Error('No databases for tests: its project in vitest.config.ts has no globalSetup for them.')
  const response = await fetch(new URL(path, address), { method, body })
  if (!response.ok) throw new Error(await response.text())
  return response.text()
}

interface Databases {
  make(empty: boolean): Promise<string>
  drop(url: string): Promise<void>
  close(): Promise<void>
}

/** So many are ready before they are asked for: making one takes 20 ms on an idle machine. */
const readyCount = 4

async function openDatabases(given: string | undefined): Promise<Databases> {
  const server = given ? undefined : await startPostgres()
  const administration = given ?? (server?.url() as string)
  const pool = new pg.Pool({ connectionString: administration, max: 2 })
  const prefix = `execution_service_test_${uuid().replaceAll('-', '')}`
  const template = `${prefix}_0`
  const urlOf = (name: string) => {
    const url = new URL(administration)
    url.pathname = name
    return url.href
  }
  let count = 0
  const dropping = new Set<Promise<unknown>>()
  // The strategy that is quicker for a small database; both copy it whole.
  const create = async (from: string) => {
    count += 1
    const name = `${prefix}_${count}`
    await pool.query(`CREATE DATABASE ${name} TEMPLATE ${from} STRATEGY file_copy`)
    return urlOf(name)
  }
  await pool.query(`CREATE DATABASE ${template} TEMPLATE template0`)
  await (await openPostgresStore(urlOf(template), { connectionsMax: 1 })).close()
  const ready: Promise<string>[] = []
  const prepare = () => {
    while (ready.length < readyCount) {
      const database = create(template)
      // Whoever takes it is told.
      database.catch(() => {})
      ready.push(database)
    }
  }
  return {
    make(empty) {
      if (empty) return create('template0')
      prepare()
      const database = ready.shift() as Promise<string>
      prepare()
      return database
    },
    async drop(url) {
      const { pathname } = new URL(url)
      // Nobody waits for it.
      const dropped = pool.query(`DROP DATABASE IF EXISTS ${pathname.slice(1)} WITH (FORCE)`).catch(() => {})
      dropping.add(dropped)
      void dropped.then(() => dropping.delete(dropped))
    },
    async close() {
      await Promise.all(dropping)
      const left = (await Promise.allSettled(ready)).flatMap((each) =>
        each.status === 'fulfilled' ? [each.value] : [],
      )
      if (given) {
        for (const url of [...left, urlOf(template)])
          await pool.query(`DROP DATABASE ${new URL(url).pathname.slice(1)}`)
      }
      await pool.end()
      await server?.remove()
    },
  }
}
