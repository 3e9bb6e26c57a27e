/**
 * Temporary directories of a test run, on disk and in memory. If its tests or the service leave anything there, the quick
 * set fails, and the others print it. What remains of processes that were killed, the service itself must remove.
 */
import { chmodSync, existsSync, globSync, mkdirSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { removeLeftDirectories } from '../../src/storage/temporary-directory.ts'

const memoryDirectory = '/dev/shm'

/**
 * Returns a directory in memory if there is enough of it, otherwise the usual temporary directory. A database has about
 * 300 small files, and each commit waits for an fsync.
 */
export function fastTemporaryDirectory(): string {
  const bytesMin = 4 * 2 ** 30
  const inMemory = process.env[memoryVariable] ?? memoryDirectory
  if (!existsSync(memoryDirectory) || process.availableMemory() < bytesMin) return tmpdir()
  const { bavail, bsize } = statfsSync(memoryDirectory)
  return bavail * bsize < bytesMin ? tmpdir() : inMemory
}

/** The run's directory in memory. */
const memoryVariable = 'TEST_MEMORY_DIRECTORY'
const namePrefix = 't-'

/** Called by the configuration, before there are processes of tests. */
export function chooseDirectories(): void {
  if (process.env[memoryVariable] !== undefined) return
  // Short, so that sockets of browsers fit there.
  const name = namePrefix + process.pid
  process.env[memoryVariable] = join(memoryDirectory, name)
  process.env.TMPDIR = join(tmpdir(), name)
  // What the user has installed for other projects, such as a browser, must not decide what the tests find.
  process.env.XDG_CACHE_HOME = join(import.meta.dirname, '../../node_modules/.cache/tests')
}

/** A global setup of Vitest. */
export default function setUp(): void {
  const directories = [process.env.TMPDIR, process.env[memoryVariable]].filter((each) => each !== undefined)
  // Projects run this each.
  if (existsSync(directories[0] ?? '')) return
  for (const directory of directories) {
    removeOfKilledRuns(join(directory, '..'))
    if (!existsSync(join(directory, '..'))) continue
    mkdirSync(directory)
    // Other users have files there too, as in any temporary directory.
    chmodSync(directory, 0o1777)
  }
  // Not in a teardown, which Vitest awaits before it ends the processes of tests.
  process.once('exit', () => {
    const left = directories.flatMap(waitForRemoval)
    for (const directory of directories) rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
    if (left.length === 0) return
    process.stderr.write(`\nThese files were left in temporary directories:\n${left.join('\n')}\n`)
    if ((process.env.TEST_SET ?? 'quick') === 'quick') process.exitCode = 1
  })
}

function removeOfKilledRuns(root: string): void {
  for (const path of globSync(join(root, `${namePrefix}*`))) {
    const pid = Number(basename(path).slice(namePrefix.length))
    if (Number.isInteger(pid) && !existsSync(`/proc/${pid}`)) rmSync(path, { recursive: true, force: true })
  }
}

/**
 * Node's compile cache, of processes without NODE_COMPILE_CACHE, and files of SQLite and Chromium, which delete them unless
 * they are killed before.
 */
const ignored = /^(node-compile-cache|etilqs_.*|\.org\.chromium\.Chromium\..*)$/
const removalMillisecondsMax = 15_000
const pollMilliseconds = 50

/** Blocks the thread while processes that were killed with the last tests are removed. Returns the paths that are left. */
function waitForRemoval(directory: string): string[] {
  const clock = new Int32Array(new SharedArrayBuffer(4))
  for (let waited = 0; ; waited += pollMilliseconds) {
    if (!existsSync(directory)) return []
    removeLeftDirectories(directory, 0)
    const left = readdirSync(directory).filter((name) => !ignored.test(name))
    if (left.length === 0 || waited >= removalMillisecondsMax)
      return left.map((name) => describe(join(directory, name)))
    Atomics.wait(clock, 0, 0, pollMilliseconds)
  }
}

function describe(path: string): string {
  return [
    path,
    ...globSync(`${path}/*`)
      .slice(0, 5)
      .map((each) => basename(each)),
  ].join(' ')
}
