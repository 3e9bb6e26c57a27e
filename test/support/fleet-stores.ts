/** The stores that fleets run on, each in a place of its own that a test may break. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from './domain.ts'
import { kill, type PostgresServer, startPostgres } from './postgres-server.ts'
import { waitForProcessEnd } from './processes.ts'
import { type Environment, removeDirectory, temporaryDirectory } from './service.ts'

export interface FleetPlace {
  /** Has every file of the store and of the service. */
  directory: string
  dataDirectory: string
  /** What every process of the fleet needs to find the store. */
  settings: Environment
  /** The server that the store is in. */
  server?: PostgresServer
  /** Kills every process of that server at the same moment. */
  halt?(): Promise<void>
  /** Starts the server where it has ended, as whatever looks after it would do. */
  resume?(): Promise<void>
}

export interface FleetStore {
  name: string
  /** The files that a commit is written to first. */
  logFiles: RegExp
  /** How large a file system it needs, in megabytes. */
  megabytesMin: number
  /** The processes whose fsync makes durable what the service's process `pid` writes. */
  syncing(place: FleetPlace, pid: number): number[]
  /** Makes an empty store in the directory, which is a new one unless given; it is gone when the test ends. */
  prepare(test: Test, directory?: string, settings?: Record<string, string>): Promise<FleetPlace>
}

function placeIn(test: Test, given: string | undefined) {
  const directory = given ?? temporaryDirectory()
  if (!given) test.onTestFinished(() => removeDirectory(directory))
  const dataDirectory = join(directory, 'data')
  mkdirSync(dataDirectory)
  return { directory, dataDirectory }
}

export const embeddedFleetStore: FleetStore = {
  name: 'embedded',
  logFiles: /service\.db-wal$/,
  megabytesMin: 16,
  syncing: (_, pid) => [pid],
  prepare: async (test, given) => ({ ...placeIn(test, given), settings: {} }),
}

/** As PostgreSQL is when nobody has changed its settings: the tests' own server waits for no disk. */
const durable = { fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on', autovacuum: 'on' }

export const postgresFleetStore: FleetStore = {
  name: 'PostgreSQL',
  logFiles: /pg_wal\/[0-9A-F]{24}$/,
  megabytesMin: 160,
  syncing: ({ server }) => (server ? processesOf(server) : []),
  async prepare(test, given, settings = {}) {
    const place = placeIn(test, given)
    // The server's user is another, who may pass through.
    chmodSync(place.directory, 0o711)
    const serverDirectory = join(place.directory, 'postgres')
    mkdirSync(serverDirectory)
    const server = await startPostgres({ dataDirectory: serverDirectory, settings: { ...durable, ...settings } })
    test.onTestFinished(() => server.remove())
    // It was made without waiting for the disk.
    execFileSync('sync', ['--file-system', serverDirectory])
    const isRunning = () => processesOf(server).length > 0
    return {
      ...place,
      settings: { DATABASE_URL: server.url() },
      server,
      async halt() {
        const pids = processesOf(server)
        for (const pid of pids) kill(pid, 'SIGKILL')
        await Promise.all(pids.map(waitForProcessEnd))
        await server.end()
      },
      async resume() {
        if (isRunning()) return
        await server.end()
        await server.start()
      },
    }
  },
}

/** The server's first process and all that it has started, as far as they live. */
function processesOf(server: PostgresServer): number[] {
  const first = server.pid()
  const stats = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return stats.map(Number).filter((pid) => {
    const [, state, parent] = /\) (\w) (\d+) /.exec(statOf(pid)) ?? []
    return state !== undefined && state !== 'Z' && (pid === first || Number(parent) === first)
  })
}

function statOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return ''
  }
}

export const fleetStores: readonly FleetStore[] = [embeddedFleetStore, postgresFleetStore]
