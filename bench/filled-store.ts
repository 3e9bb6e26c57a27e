/**
 * Stores with a number of finished runs in them. Filling one takes a while, so that it is kept for the next time in the
 * system's temporary directory; what a measurement adds is taken out again.
 */
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import pg from 'pg'
import { readConfig } from '../src/config.ts'
import { openStore } from '../src/domain/installation.ts'
import type { Store } from '../src/storage/store.ts'
import { type PostgresServer, startPostgres } from '../test/support/postgres-server.ts'
import { addFinishedRuns, hexadecimal, makeAccounts } from './finished-runs.ts'

export const storeKinds = ['embedded', 'postgres'] as const
export type StoreKind = (typeof storeKinds)[number]

export interface FilledStore {
  kind: StoreKind
  finished: number
  /** What a process is started with to use it. */
  env: NodeJS.ProcessEnv
  /** Of as many accounts. */
  apiKeys: string[]
  /** The first process of the database, when it is the benchmark's own. */
  databasePid: number | undefined
  open(): Promise<Store>
  /** Takes out what was added since it was opened first. */
  restore(): Promise<void>
}

const cache = join(tmpdir(), `execution-service-bench-${process.getuid?.() ?? 0}`)
/** One that was filled under other migrations, or in another way, is filled again. */
const stamp = stampOf(new URL('../src/storage/migrations/', import.meta.url))
/** All of them are the benchmark's own, and hold nothing. */
const key = Buffer.alloc(32, 7).toString('base64')

/** What a server for others has, but for a log that is large enough for the load: it waits for the disk. */
const durable = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  autovacuum: 'on',
  shared_buffers: '512MB',
}

export class FilledStores {
  #server: Promise<PostgresServer> | undefined
  readonly #known = new Map<string, FilledStore>()

  async get(kind: StoreKind, finished: number): Promise<FilledStore> {
    const name = `${kind}-${finished}`
    const known =
      this.#known.get(name) ?? (await (kind === 'embedded' ? this.#embedded : this.#postgres).call(this, finished))
    this.#known.set(name, known)
    return known
  }

  async close(): Promise<void> {
    const server = await this.#server
    // Orderly, so that it need not recover the next time.
    await server?.end('SIGINT')
    await server?.remove()
  }

  async #embedded(finished: number): Promise<FilledStore> {
    const directory = join(cache, `embedded-${finished}`)
    const env = { DATA_DIR: directory, ENCRYPTION_KEY: key }
    const known = await filled(directory, env, 'embedded', finished)
    return filledStore({ kind: 'embedded', finished, env, databasePid: undefined }, known)
  }

  async #postgres(finished: number): Promise<FilledStore> {
    const given = process.env.DATABASE_URL
    if (!given) this.#server ??= this.#start()
    const server = await this.#server
    const administration = given ?? (server?.url() as string)
    const name = `execution_service_bench_${finished}`
    const url = new URL(administration)
    url.pathname = name
    const directory = join(cache, `${given ? `postgres-of-${url.host.replace(':', '-')}` : 'postgres'}-${finished}`)
    const env = { DATA_DIR: directory, ENCRYPTION_KEY: key, DATABASE_URL: url.href }
    const known = await filled(directory, env, 'postgres', finished, () => createDatabase(administration, name))
    return filledStore({ kind: 'postgres', finished, env, databasePid: server?.pid() }, known)
  }

  async #start(): Promise<PostgresServer> {
    const dataDirectory = join(cache, 'postgres')
    mkdirSync(dataDirectory, { recursive: true })
    // For the user who runs the server.
    chmodSync(cache, 0o711)
    return startPostgres({ settings: durable, dataDirectory })
  }
}

function stampOf(migrations: URL): string {
  const hash = createHash('sha256').update(readFileSync(new URL('./finished-runs.ts', import.meta.url)))
  for (const name of readdirSync(migrations).sort()) hash.update(readFileSync(new URL(name, migrations)))
  return hash.digest('hex')
}

async function createDatabase(administration: string, name: string): Promise<void> {
  const client = new pg.Client(administration)
  await client.connect()
  await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
  await client.query(`CREATE DATABASE ${name} TEMPLATE template0`)
  await client.end()
}

/** What is known of a store that was filled. */
interface Filled {
  apiKeys: string[]
  /** What is newer was added by a measurement; an interrupted one has not taken it out again. */
  newestId: string
}

async function filled(
  directory: string,
  env: NodeJS.ProcessEnv,
  kind: StoreKind,
  finished: number,
  create: () => Promise<void> = async () => {},
): Promise<Filled> {
  const note = join(directory, 'filled.json')
  if (existsSync(note)) {
    const known = JSON.parse(readFileSync(note, 'utf8'))
    if (known.stamp === stamp) return known
  }
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  await create()
  const store = await openStore(readConfig(env))
  const apiKeys = await makeAccounts(store)
  await addFinishedRuns(store, finished, hexadecimal[kind])
  const newest = store.read.query.selectFrom('runs').select('id').orderBy('id', 'desc').limit(1)
  const known = { apiKeys, newestId: (await newest.executeTakeFirst())?.id ?? '' }
  await store.close()
  if (env.DATABASE_URL) await vacuum(env.DATABASE_URL)
  writeFileSync(note, JSON.stringify({ stamp, ...known }))
  return known
}

type Parts = Omit<FilledStore, 'apiKeys' | 'open' | 'restore'>

async function filledStore(parts: Parts, { apiKeys, newestId }: Filled): Promise<FilledStore> {
  const { DATABASE_URL } = parts.env
  const open = () => openStore(readConfig(parts.env))
  const restore = async () => {
    const store = await open()
    await store.write(async ({ query }) => {
      const added = query.selectFrom('runs').select('id').where('id', '>', newestId)
      for (const table of ['run_events', 'run_steps'] as const) {
        await query.deleteFrom(table).where('run_id', 'in', added).execute()
      }
      await query.deleteFrom('runs').where('id', '>', newestId).execute()
    })
    if (DATABASE_URL) await sql`DELETE FROM execution_service_jobs.job`.execute(store.read.query)
    await store.close()
    if (DATABASE_URL) await vacuum(DATABASE_URL)
  }
  await restore()
  return { ...parts, apiKeys, open, restore }
}

async function vacuum(url: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query('VACUUM ANALYZE')
  await client.end()
}
