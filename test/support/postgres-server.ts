/** Runs PostgreSQL servers for tests: on loopback and a port that is free, in a directory that is removed at the end. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { fastTemporaryDirectory, memoryDirectory } from './memory-directory.ts'
import { findBinaries, serverUser, type User } from './postgres-binaries.ts'

export interface ServerOptions {
  /** Whether what was committed outlives the server and the machine, as it does by PostgreSQL's own settings. */
  durable?: boolean
  /** What stands in postgresql.conf beyond what tests need: `{ log_statement: 'all' }`. */
  settings?: Record<string, string>
  /** A directory for the data, such as a file system of its own; it is not removed. */
  dataDirectory?: string
  /** One that is free unless it is given. */
  port?: number
  /** Whether to run npm's PostgreSQL, also where there is another. */
  fromNpm?: boolean
  /** What the server is started through: `['strace', '-f', …]`. */
  through?: readonly string[]
}

export interface PostgresServer {
  port: number
  dataDirectory: string
  /** What the server has logged. */
  log(): string
  /** The address of a database; of the one for administration unless another is named. */
  url(database?: string): string
  /** The first process of the server. */
  pid(): number
  /** Ends the server: at once (SIGQUIT), or as if by kill -9 with SIGKILL. Its data stay, and `start` goes on with them. */
  end(signal?: 'SIGINT' | 'SIGQUIT' | 'SIGKILL'): Promise<void>
  /** Starts it again, on the same port. */
  start(): Promise<void>
  /** Ends it, and removes what it has kept. */
  remove(): Promise<void>
}

const notDurable = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }

const forTests = {
  // Each service and worker of each test has connections of its own.
  max_connections: '500',
  max_wal_size: '256MB',
  autovacuum: 'off',
}

const prefix = 'execution-service-postgres-'
/** Tried again while another test, which has found the same, or a process that ends makes or removes something there. */
const removal = { recursive: true, force: true, maxRetries: 10 }

/** Of processes that ended together with their server and its keeper, as when all of a container is killed. */
function removeLeftOver(): void {
  for (const path of globSync(`{${tmpdir()},${memoryDirectory}}/${prefix}*`)) {
    const [, pid] = /-(\d+)-[^-]+$/.exec(path) ?? []
    if (pid && isGone(Number(pid))) rmSync(path, removal)
  }
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    // Not one that belongs to somebody else.
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/** A server that serves; it is gone as soon as this process is, however that ends. */
export async function startPostgres(options: ServerOptions = {}): Promise<PostgresServer> {
  const user = serverUser()
  removeLeftOver()
  const own = `${prefix}${process.pid}-`
  const directory = mkdtempSync(join(tmpdir(), own))
  const ownData = options.dataDirectory ? undefined : mkdtempSync(join(fastTemporaryDirectory(), own))
  const dataDirectory = options.dataDirectory ?? (ownData as string)
  for (const each of [directory, dataDirectory]) {
    if (user.uid && user.gid) chownSync(each, user.uid, user.gid)
  }
  const binaries = findBinaries(user, directory, options.fromNpm)
  if (!existsSync(join(dataDirectory, 'PG_VERSION'))) initialise(binaries, dataDirectory, user)
  const logFile = join(directory, 'log')
  const log = () => readIfThere(logFile)
  const port = options.port ?? (await freePort())
  const durability = options.durable ? {} : notDurable
  const settings = {
    ...forTests,
    ...durability,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    ...options.settings,
  }
  const args = Object.entries({ ...settings, port }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const command = [...(options.through ?? []), join(binaries, 'postgres'), '-D', dataDirectory, ...args]
  const places = { directory, ownData, dataDirectory, logFile }
  let keeper: ChildProcess | undefined
  // Kept, because a disk that has failed does not tell it any more.
  let pid = 0
  const server: PostgresServer = {
    port,
    dataDirectory,
    log,
    url: (database = 'postgres') => `postgres://postgres@127.0.0.1:${port}/${database}`,
    pid: () => pid,
    async end(signal = 'SIGQUIT') {
      if (!keeper) return
      keeper.ref()
      if (keeper.exitCode === null && keeper.signalCode === null) {
        const ended = once(keeper, 'exit')
        kill(pid, signal)
        await ended
      }
      keeper = undefined
    },
    async start() {
      keeper = await untilItServes(command, user, places)
      pid = statusOf(dataDirectory).pid
    },
    async remove() {
      await server.end()
      for (const each of [directory, ownData]) if (each) rmSync(each, removal)
    },
  }
  return server.start().then(
    () => server,
    async (error) => {
      await server.remove()
      throw error
    },
  )
}

/** Sends the signal to a process that may have ended by itself. */
export function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function initialise(binaries: string, dataDirectory: string, user: User): void {
  const options = ['--no-sync', '--locale=C', '--encoding=UTF8', '--auth=trust', '--username=postgres']
  // Not in this process's directory, which the user may not be allowed to enter.
  const { status, stderr } = spawnSync(join(binaries, 'initdb'), ['-D', dataDirectory, ...options], {
    ...user,
    cwd: dataDirectory,
    env: {},
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`initdb failed: ${stderr}`)
}

/**
 * Its standard input is this process's, and ends with it: then the server is ended, as no handler of this process could
 * after kill -9, and the directory removed. The signal goes to the server itself, whose parent may be a tracer.
 */
const keeperScript = `
log=$1 directory=$2 own=$3 data=$4; shift 4
exec 3<&0
"$@" </dev/null >>"$log" 2>&1 3<&- &
server=$!
(
  read -r _ <&3
  : >"$directory/orphaned"
  kill -QUIT "$(head -n 1 "$data/postmaster.pid")" || kill -KILL $server
) 2>/dev/null &
watcher=$!
wait $server
kill $watcher
if [ -e "$directory/orphaned" ]; then rm -rf "$directory" "\${own:-$directory}"; fi
`

/** Tries again where what a killed server has left is still ending; the server itself sees that. */
async function untilItServes(command: readonly string[], user: User, places: Places): Promise<ChildProcess> {
  const before = statusOf(places.dataDirectory).pid
  for (;;) {
    const child = keep(command, user, places)
    while (child.exitCode === null) {
      const { pid, serves } = statusOf(places.dataDirectory)
      if (serves && pid !== before) return child
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    const log = readFileSync(places.logFile, 'utf8')
    if (!/still in use[^\n]*\n[^\n]*$/.test(log.trimEnd())) throw new Error(`PostgreSQL did not start:\n${log}`)
  }
}

interface Places {
  directory: string
  /** Removed with the directory. */
  ownData: string | undefined
  dataDirectory: string
  logFile: string
}

function keep(
  command: readonly string[],
  user: User,
  { directory, ownData = '', dataDirectory, logFile }: Places,
): ChildProcess {
  const child = spawn(
    '/bin/sh',
    ['-c', keeperScript, 'keeper', logFile, directory, ownData, dataDirectory, ...command],
    {
      ...user,
      cwd: directory,
      env: { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' },
      stdio: ['pipe', 'ignore', 'ignore'],
      // In a group of its own, which Ctrl-C does not reach.
      detached: true,
    },
  )
  child.unref()
  return child
}

/** From postmaster.pid: the first line is the process, the eighth says whether it serves. */
function statusOf(dataDirectory: string): { pid: number; serves: boolean } {
  const lines = readIfThere(join(dataDirectory, 'postmaster.pid')).split('\n')
  return { pid: Number(lines[0]), serves: lines[7]?.trim() === 'ready' }
}

/** A server that starts removes what another has left. */
function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
