/**
 * Writes the files of deployments for executors, in a directory that only the worker and they can read, and that only the
 * worker can change.
 */
import { chmodSync, chownSync, mkdirSync, realpathSync } from 'node:fs'
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createTemporaryDirectory, type TemporaryDirectory } from '../../storage/temporary-directory.ts'
import type { Identity } from '../workflows/executor-identity.ts'
import type { ExecutorUsers } from '../workflows/executor-users.ts'
import { isPackageName, type SnapshotContent, type SnapshotFile } from './snapshot.ts'

/** This worker cannot execute a deployment; another one may. The message is a sentence for callers. */
export class DeploymentUnavailable extends Error {
  override name = 'DeploymentUnavailable'
}

/** What executors may do: read, but neither write nor list the deployments, whose ids they cannot guess. */
const [rootMode, directoryMode, fileMode] = [0o710, 0o750, 0o640]
/** With a group for each deployment. */
const sharedRootMode = 0o711

/** Where processes that execute the files of a directory have their `TMPDIR`, if their user has no place of its own. */
export const temporaryParentOf = (directory: string) => join(dirname(directory), 'tmp')

/** Its own packages, such as Playwright, are also there for workflows. */
export const servicePackage = fileURLToPath(new URL('../../..', import.meta.url))

export class DeploymentFiles {
  readonly #identity: Identity
  readonly #use: 'deployments' | 'build'
  readonly #users: ExecutorUsers | undefined
  #root: TemporaryDirectory | undefined
  #count = 0

  /**
   * @param identity the user that executors run as, if not the worker's.
   * @param users lease a group to each deployment.
   */
  constructor(identity: Identity, use: 'deployments' | 'build' = 'deployments', users?: ExecutorUsers) {
    this.#users = users
    this.#identity = identity
    this.#use = use
  }

  /**
   * Returns the new directory of the files.
   *
   * @param content its hash must have been checked.
   * @param directories where packages with native code may be installed, or their subdirectories.
   * @throws {DeploymentUnavailable}
   */
  async write(id: string, content: SnapshotContent, directories: readonly string[]): Promise<string> {
    let directory: string | undefined
    try {
      this.#count += 1
      // The same deployment may be written again while its earlier files are being removed.
      directory = join(this.#open(), `${id}-${this.#count}`)
      await this.#makeDirectory(directory)
      await this.#writeFile(directory, { path: 'package.json', content: '{"type":"module"}' })
      const made = new Set<string>()
      for (const file of content.files) await this.#writeFile(directory, file, made)
      for (const name of content.externals) await this.#linkPackage(directory, name, directories)
      return directory
    } catch (error) {
      if (directory) await this.remove(directory)
      if (error instanceof DeploymentUnavailable) throw error
      throw new DeploymentUnavailable(`The worker cannot write its files: ${systemReason(error)}.`)
    }
  }

  /** Best effort: `close` removes what is left. */
  async remove(directory: string): Promise<void> {
    await rm(directory, { recursive: true, force: true }).catch(() => {})
    this.#users?.releaseGroup(directory)
  }

  async close(): Promise<void> {
    this.#root?.remove()
  }

  /** For the reaper of the processes: what their user may remove, of these files and of its own. */
  get filesPrefix(): string {
    const root = this.#open()
    return this.#identity ? join(root, 'tmp/') : root
  }

  #open(): string {
    if (!this.#root) {
      this.#root = createTemporaryDirectory(this.#use)
      const { path } = this.#root
      this.#grant(path, this.#users ? sharedRootMode : rootMode)
      const parent = temporaryParentOf(join(path, 'any'))
      mkdirSync(parent, { mode: 0o700 })
      if (this.#identity) chownSync(parent, this.#identity.uid, this.#identity.gid)
    }
    return this.#root.path
  }

  #grant(path: string, mode: number): void {
    if (!this.#identity) return
    // Only root has another user for executors.
    chownSync(path, process.getuid?.() ?? 0, this.#groupOf(path) ?? this.#identity.gid)
    chmodSync(path, mode)
  }

  #groupOf(path: string): number | undefined {
    const root = this.#root?.path ?? ''
    if (!this.#users || path === root) return undefined
    const [name = ''] = path.slice(root.length + 1).split(sep)
    const group = this.#users.group(join(root, name))
    if (group === undefined)
      throw new DeploymentUnavailable("All users of EXECUTOR_UIDS on the worker's machine are in use.")
    return group
  }

  async #makeDirectory(path: string): Promise<void> {
    await mkdir(path, { mode: 0o700 })
    this.#grant(path, directoryMode)
  }

  /** @param made the parents that exist already. */
  async #writeFile(directory: string, file: SnapshotFile, made = new Set<string>()): Promise<void> {
    const target = resolve(directory, file.path)
    if (!target.startsWith(directory + sep)) throw new DeploymentUnavailable('One of its paths leads out of it.')
    const parent = dirname(target)
    if (!made.has(parent)) await this.#makeParents(directory, parent)
    made.add(parent)
    const execute = file.isExecutable ? ([0o100, 0o110] as const) : ([0, 0] as const)
    await writeFile(target, Buffer.from(file.content, file.encoding), { mode: 0o600 | execute[0] })
    this.#grant(target, fileMode | execute[1])
  }

  async #makeParents(directory: string, path: string): Promise<void> {
    const names = path.slice(directory.length + 1).split(sep)
    let parent = directory
    for (const name of names.filter(Boolean)) {
      parent = join(parent, name)
      await this.#makeDirectory(parent).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error
      })
    }
  }

  /** Modules in this directory find the package as if it were installed there. */
  async #linkPackage(directory: string, name: string, directories: readonly string[]): Promise<void> {
    if (!isPackageName(name)) throw new DeploymentUnavailable('One of its packages has an invalid name.')
    const found = directories.map((each) => findPackage(each, name)).find((each) => each !== undefined)
    if (found === undefined) {
      throw new DeploymentUnavailable(
        `The package "${name}", which has native code, is not installed on the worker's machine.`,
      )
    }
    const link = join(directory, 'node_modules', name)
    await this.#makeParents(directory, dirname(link))
    await symlink(found, link)
  }
}

/** Searches the directory and all above it, as Node.js does. */
export function findPackage(directory: string, name: string): string | undefined {
  for (let path = directory; ; path = dirname(path)) {
    try {
      return realpathSync(join(path, 'node_modules', name))
    } catch {
      if (path === dirname(path)) return undefined
    }
  }
}

/** Without the path, which callers must not see: the code and its meaning. */
function systemReason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return code === undefined ? 'an unexpected error' : (message.split(',')[0] ?? code)
}
