/** Runs PostgreSQL servers for tests, on a free port of the loopback interface and in temporary directories. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { findBinaries, serverUser, type User } from './postgres-binaries.ts'
import { fastTemporaryDirectory } from './temporary-directories.ts'

export interface ServerOptions {
  /** Whether commits are durable, as by PostgreSQL's defaults; default false. */
  durable?: boolean
  /** Additional server settings, such as `{ log_statement: 'all' }`. */
  settings?: Record<string, string>
  /** Directory for the data, such as a mounted file system. It is not removed. */
  dataDirectory?: string
  /** Default: a free port. */
  port?: number
  /** Runs npm's PostgreSQL even if another one is installed. */
  fromNpm?: boolean
  /** A command that runs the server, such as `['strace', '-f', …]`. */
  through?: readonly string[]
}

export interface PostgresServer {
  port: number
  dataDirectory: string
  /** Returns the server's log. */
  log(): string
  /** Returns the URL of a database; default `postgres`. */
  url(database?: string): string
  /** Returns the id of the server's main process. */
  pid(): number
  /** Ends the server, by default with SIGQUIT (immediate shutdown). Its data remain for `start`. */
  end(signal?: 'SIGINT' | 'SIGQUIT' | 'SIGKILL'): Promise<void>
  /** Starts the server again on the same port. */
  start(): Promise<void>
  /** Ends the server, and removes its data. */
  remove(): Promise<void>
}

const notDurable = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }

const forTests = {
  // Each service and worker of each test has a pool.
  max_connections: '500',
  max_wal_size: '256MB',
  autovacuum: 'off',
}

const prefix = 'execution-service-postgres-'
/** Retries while another test or an ending process changes the directory. */
const removal = { recursive: true, force: true, maxRetries: 10 }

/** Removes directories of processes that were killed together with their server and its keeper. */
function removeLeftovers(): void {
  for (const path of globSync(`{${tmpdir()},${fastTemporaryDirectory()}}/${prefix}*`)) {
    const [, pid] = /-(\d+)-[^-]+$/.exec(path) ?? []
    if (pid && isGone(Number(pid))) rmSync(path, removal)
  }
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    // EPERM means that the process belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}

/** Starts a server that accepts connections. It ends with this process, even after SIGKILL. */
export async function startPostgres(options: ServerOptions = {}): Promise<PostgresServer> {
  const user = serverUser()
  removeLeftovers()
  const directoryPrefix = `${prefix}${process.pid}-`
  const directory = mkdtempSync(join(tmpdir(), directoryPrefix))
  const ownData = options.dataDirectory ? undefined : mkdtempSync(join(fastTemporaryDirectory(), directoryPrefix))
  const dataDirectory = options.dataDirectory ?? (ownData as string)
  for (const each of [directory, dataDirectory]) {
    if (user.uid && user.gid) chownSync(each, user.uid, user.gid)
  }
  const binaries = findBinaries(user, directory, options.fromNpm)
  if (!existsSync(join(dataDirectory, 'PG_VERSION'))) initialize(binaries, dataDirectory, user)
  const logFile = join(directory, 'log')
  const log = () => readIfExists(logFile)
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
  const paths = { directory, ownData, dataDirectory, logFile }
  let keeper: ChildProcess | undefined
  // Cached, because it cannot be read from a failed disk.
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
      keeper = await startServer(command, user, paths)
      pid = readStatus(dataDirectory).pid
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

/** Sends a signal to a process, which may have ended. */
export function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function initialize(binaries: string, dataDirectory: string, user: User): void {
  const options = ['--no-sync', '--locale=C', '--encoding=UTF8', '--auth=trust', '--username=postgres']
  // `user` may not be allowed to enter this process's directory.
  const { status, stderr } = spawnSync(join(binaries, 'initdb'), ['-D', dataDirectory, ...options], {
    ...user,
    cwd: dataDirectory,
    env: {},
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`initdb failed: ${stderr}`)
}

/**
 * Ends the server when this process ends, even after SIGKILL: standard input is a pipe from this process, and closes with
 * it. The signal goes to the pid file's process, since the direct child may be a tracer.
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

/** Starts the server, and retries while processes of a killed server still use its data. */
async function startServer(command: readonly string[], user: User, paths: Paths): Promise<ChildProcess> {
  const before = readStatus(paths.dataDirectory).pid
  for (;;) {
    const child = keep(command, user, paths)
    while (child.exitCode === null) {
      const { pid, isReady } = readStatus(paths.dataDirectory)
      if (isReady && pid !== before) return child
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    const log = readFileSync(paths.logFile, 'utf8')
    if (!/still in use[^\n]*\n[^\n]*$/.test(log.trimEnd())) throw new Error(`PostgreSQL did not start:\n${log}`)
  }
}

interface Paths {
  directory: string
  /** Removed together with `directory`. */
  ownData: string | undefined
  dataDirectory: string
  logFile: string
}

function keep(
  command: readonly string[],
  user: User,
  { directory, ownData = '', dataDirectory, logFile }: Paths,
): ChildProcess {
  const child = spawn(
    '/bin/sh',
    ['-c', keeperScript, 'keeper', logFile, directory, ownData, dataDirectory, ...command],
    {
      ...user,
      cwd: directory,
      env: { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' },
      stdio: ['pipe', 'ignore', 'ignore'],
      // In a process group that Ctrl-C does not reach.
      detached: true,
    },
  )
  child.unref()
  return child
}

/** Reads postmaster.pid: the process id is in line 1, the status in line 8. */
function readStatus(dataDirectory: string): { pid: number; isReady: boolean } {
  const lines = readIfExists(join(dataDirectory, 'postmaster.pid')).split('\n')
  return { pid: Number(lines[0]), isReady: lines[7]?.trim() === 'ready' }
}

/** Returns an empty text if the file is missing. A starting server removes old files. */
function readIfExists(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
