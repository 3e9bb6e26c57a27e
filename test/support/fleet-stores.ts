/** Stores for fleets of processes, in directories and servers that tests may break. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from './domain.ts'
import { kill, type PostgresServer, startPostgres } from './postgres-server.ts'
import { waitForProcessEnd } from './processes.ts'
import { type Environment, removeDirectory, temporaryDirectory } from './service.ts'

export interface FleetStorage {
  /** Contains all files of the store and the service. */
  directory: string
  dataDirectory: string
  /** Environment that selects the store. */
  settings: Environment
  /** The database server. */
  server?: PostgresServer
  /** Kills all processes of the server at once. */
  halt?(): Promise<void>
  /** Starts the server if it has ended, as a supervisor would. */
  resume?(): Promise<void>
}

export interface FleetStore {
  name: string
  /** Matches the files of the write-ahead log. */
  logFiles: RegExp
  /** Minimum size of the file system, in megabytes. */
  megabytesMin: number
  /** Returns the processes that call fsync for writes of the service's process `pid`. */
  syncing(storage: FleetStorage, pid: number): number[]
  /** Creates an empty store in the directory, by default a new one. It is removed with the test. */
  prepare(test: Test, directory?: string, settings?: Record<string, string>): Promise<FleetStorage>
}

function createDirectories(test: Test, givenDirectory: string | undefined) {
  const directory = givenDirectory ?? temporaryDirectory()
  if (!givenDirectory) test.onTestFinished(() => removeDirectory(directory))
  const dataDirectory = join(directory, 'data')
  mkdirSync(dataDirectory)
  return { directory, dataDirectory }
}

export const embeddedFleetStore: FleetStore = {
  name: 'embedded',
  logFiles: /service\.db-wal$/,
  megabytesMin: 16,
  syncing: (_, pid) => [pid],
  prepare: async (test, givenDirectory) => ({ ...createDirectories(test, givenDirectory), settings: {} }),
}

/** PostgreSQL's defaults, which the other tests' server turns off for speed. */
const durable = { fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on', autovacuum: 'on' }

export const postgresFleetStore: FleetStore = {
  name: 'PostgreSQL',
  logFiles: /pg_wal\/[0-9A-F]{24}$/,
  megabytesMin: 160,
  syncing: ({ server }) => (server ? findServerProcesses(server) : []),
  async prepare(test, givenDirectory, settings = {}) {
    const storage = createDirectories(test, givenDirectory)
    // The server runs as another user, who must be able to enter the directory.
    chmodSync(storage.directory, 0o711)
    const serverDirectory = join(storage.directory, 'postgres')
    mkdirSync(serverDirectory)
    const server = await startPostgres({ dataDirectory: serverDirectory, settings: { ...durable, ...settings } })
    test.onTestFinished(() => server.remove())
    // initdb ran without fsync.
    execFileSync('sync', ['--file-system', serverDirectory])
    const isRunning = () => findServerProcesses(server).length > 0
    return {
      ...storage,
      settings: { DATABASE_URL: server.url() },
      server,
      async halt() {
        const pids = findServerProcesses(server)
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

/** Returns the running processes of the server. */
function findServerProcesses(server: PostgresServer): number[] {
  const postmaster = server.pid()
  const stats = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return stats.map(Number).filter((pid) => {
    const [, state, parent] = /\) (\w) (\d+) /.exec(readStat(pid)) ?? []
    return state !== undefined && state !== 'Z' && (pid === postmaster || Number(parent) === postmaster)
  })
}

function readStat(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return ''
  }
}

export const fleetStores: readonly FleetStore[] = [embeddedFleetStore, postgresFleetStore]
