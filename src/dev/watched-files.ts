/** Tells which files of some folders have changed: their content, not merely their time. */
import { createHash } from 'node:crypto'
import { type FSWatcher, readdirSync, readFileSync, watch } from 'node:fs'
import { join, relative } from 'node:path'

/** An editor writes a file in several steps, and a checkout writes many. */
const settledMilliseconds = 20

export interface Changes {
  /** Relative to the working directory, sorted; those that are gone are among them. */
  files: string[]
  /** When the first of them was noticed, by `performance.now()`. */
  at: number
}

/**
 * Each folder has a watcher of its own: Node's recursive one follows files and not their names, and misses every change
 * of a file after an editor has put another in its place.
 */
export class WatchedFiles {
  readonly #roots: readonly string[]
  #watchers: FSWatcher[] = []
  #known: Map<string, string>
  #noticedAt: number | undefined
  #notice = () => {}

  constructor(roots: readonly string[]) {
    this.#roots = roots
    this.#known = this.#look()
  }

  /** Waits for files that differ from what they were when it resolved last, or when watching began. */
  async changed(): Promise<Changes> {
    for (;;) {
      if (this.#noticedAt === undefined) await this.#noticed()
      const at = this.#noticedAt ?? performance.now()
      while (await this.#noticed(settledMilliseconds));
      this.#noticedAt = undefined
      const before = this.#known
      this.#known = this.#look()
      const files = [...new Set([...before.keys(), ...this.#known.keys()])]
        .filter((file) => before.get(file) !== this.#known.get(file))
        .map((file) => relative('', file))
      if (files.length > 0) return { files: files.sort(), at }
    }
  }

  close(): void {
    for (const watcher of this.#watchers) watcher.close()
  }

  /** Whether anything happens, within the time if one is given. */
  #noticed(milliseconds?: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = milliseconds === undefined ? undefined : setTimeout(resolve, milliseconds, false)
      this.#notice = () => {
        clearTimeout(timer)
        resolve(true)
      }
    })
  }

  /**
   * The digest of each file. Watches the folders that it meets anew: one that was removed and made again has the same
   * name, and often the same inode, but the watcher of the one before tells nothing of it.
   */
  #look(): Map<string, string> {
    const digests = new Map<string, string>()
    const before = this.#watchers
    this.#watchers = []
    const visit = (folder: string) => {
      if (!ifThere(() => this.#watch(folder))) return
      for (const entry of ifThere(() => readdirSync(folder, { withFileTypes: true })) ?? []) {
        const path = join(folder, entry.name)
        if (entry.isDirectory() && entry.name !== 'node_modules') visit(path)
        const content = entry.isFile() && ifThere(() => readFileSync(path))
        if (content) digests.set(path, createHash('sha1').update(content).digest('base64'))
      }
    }
    for (const root of this.#roots) visit(root)
    for (const watcher of before) watcher.close()
    return digests
  }

  #watch(folder: string): FSWatcher {
    const watcher = watch(folder, () => {
      this.#noticedAt ??= performance.now()
      this.#notice()
    })
    watcher.on('error', () => watcher.close())
    this.#watchers.push(watcher)
    return watcher
  }
}

/** Gone before it was read, another kind of thing by now, or not ours to read. */
const absences = ['ENOENT', 'ENOTDIR', 'EISDIR', 'EACCES', 'EPERM']

/** What is gone before it is read: its going is news as well. */
function ifThere<Result>(read: () => Result): Result | undefined {
  try {
    return read()
  } catch (error) {
    if (absences.includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}
