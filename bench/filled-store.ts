/**
 * Stores with a number of finished runs. They are cached in the system's temporary directory, since filling one takes a
 * while; rows that a benchmark adds are deleted afterwards.
 */
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { readConfig } from '../src/config/config.ts'
import { openStore } from '../src/domain/installation.ts'
import type { Store } from '../src/storage/store.ts'
import { type PostgresServer, startPostgres } from '../test/support/postgres-server.ts'
import { addFinishedRuns, createAccounts, hexadecimal } from './finished-runs.ts'

export const storeKinds = ['embedded', 'postgres'] as const
export type StoreKind = (typeof storeKinds)[number]

export interface FilledStore {
  kind: StoreKind
  finished: number
  /** Environment of a process that uses the store. */
  env: NodeJS.ProcessEnv
  /** One API key per account. */
  apiKeys: string[]
  /** All API keys of all accounts. */
  allKeys: string[]
  /** Main process of the database server, if the benchmark has started it. */
  databasePid: number | undefined
  open(): Promise<Store>
  /** Deletes runs that were added after filling. */
  restore(): Promise<void>
}

const cache = join(tmpdir(), `execution-service-bench-${process.getuid?.() ?? 0}`)
/** Stores filled with other migrations or other data are filled again. */
const contentsHash = hashSources(new URL('../src/storage/migrations/', import.meta.url))
/** No secrets are stored. */
const key = Buffer.alloc(32, 7).toString('base64')

/** PostgreSQL's defaults for durability, with more memory for the load. */
export const durable = {
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
    // A fast shutdown needs no recovery at the next start.
    await server?.end('SIGINT')
    await server?.remove()
  }

  async #embedded(finished: number): Promise<FilledStore> {
    const directory = join(cache, `embedded-${finished}`)
    // Without a DATABASE_URL, which is that of the other stores.
    const env = { DATA_DIR: directory, ENCRYPTION_KEY: key, DATABASE_URL: undefined }
    const contents = await fill(directory, env, 'embedded', finished)
    return createFilledStore({ kind: 'embedded', finished, env, databasePid: undefined }, contents)
  }

  async #postgres(finished: number): Promise<FilledStore> {
    const givenUrl = process.env.DATABASE_URL
    if (!givenUrl) this.#server ??= this.#start()
    const server = await this.#server
    const administration = givenUrl ?? (server?.url() as string)
    const name = `execution_service_bench_${finished}`
    const url = new URL(administration)
    url.pathname = name
    const directory = join(cache, `${givenUrl ? `postgres-of-${url.host.replace(':', '-')}` : 'postgres'}-${finished}`)
    const env = { DATA_DIR: directory, ENCRYPTION_KEY: key, DATABASE_URL: url.href }
    const contents = await fill(directory, env, 'postgres', finished, () => createDatabase(administration, name))
    return createFilledStore({ kind: 'postgres', finished, env, databasePid: server?.pid() }, contents)
  }

  async #start(): Promise<PostgresServer> {
    const dataDirectory = join(cache, 'postgres')
    mkdirSync(dataDirectory, { recursive: true })
    // The server runs as another user.
    chmodSync(cache, 0o711)
    return startPostgres({ settings: durable, dataDirectory })
  }
}

function hashSources(migrations: URL): string {
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

interface Contents {
  /** Of each account. */
  keys: string[][]
  /** Newer runs were added by a benchmark. */
  newestId: string
}

/** Fills the store unless it is cached. */
async function fill(
  directory: string,
  env: NodeJS.ProcessEnv,
  kind: StoreKind,
  finished: number,
  create: () => Promise<void> = async () => {},
): Promise<Contents> {
  const marker = join(directory, 'filled.json')
  if (existsSync(marker)) {
    const known = JSON.parse(readFileSync(marker, 'utf8'))
    if (known.stamp === contentsHash) return known
  }
  rmSync(directory, { recursive: true, force: true })
  mkdirSync(directory, { recursive: true })
  await create()
  const store = await openStore(readConfig(env))
  const keys = await createAccounts(store)
  await addFinishedRuns(store, finished, hexadecimal[kind])
  const newest = store.read.query.selectFrom('runs').select('id').orderBy('id', 'desc').limit(1)
  const known = { keys, newestId: (await newest.executeTakeFirst())?.id ?? '' }
  await store.close()
  if (env.DATABASE_URL) await vacuum(env.DATABASE_URL)
  writeFileSync(marker, JSON.stringify({ stamp: contentsHash, ...known }))
  return known
}

type StoreLocation = Omit<FilledStore, 'apiKeys' | 'allKeys' | 'open' | 'restore'>

async function createFilledStore(location: StoreLocation, { keys, newestId }: Contents): Promise<FilledStore> {
  const { DATABASE_URL } = location.env
  const open = () => openStore(readConfig(location.env))
  const restore = async () => {
    const store = await open()
    await store.write(async ({ query }) => {
      const added = query.selectFrom('runs').select('id').where('id', '>', newestId)
      for (const table of ['run_events', 'run_steps', 'attempt_reports'] as const) {
        await query.deleteFrom(table).where('run_id', 'in', added).execute()
      }
      await query.deleteFrom('run_terms').where('run_id', '>', newestId).execute()
      await query.deleteFrom('runs').where('id', '>', newestId).execute()
    })
    await store.close()
    if (DATABASE_URL) await vacuum(DATABASE_URL)
  }
  await restore()
  const apiKeys = keys.flatMap(([first = '']) => first)
  return { ...location, apiKeys, allKeys: keys.flat(), open, restore }
}

async function vacuum(url: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query('VACUUM ANALYZE')
  await client.end()
}
