/** Tells which files of some folders have changed: their content, not merely their time. */
import { createHash } from 'node:crypto'
import { type FSWatcher, readdirSync, readFileSync, statSync, watch } from 'node:fs'
import { join, relative } from 'node:path'

/** An editor writes a file in several steps, and a checkout writes many. */
const settledMilliseconds = 20

export interface Changes {
  /** Relative to the working directory, sorted; those that are gone are among them. */
  files: string[]
  /** When the first of them was noticed, by `performance.now()`. */
  at: number
}

/** A file as it was seen. */
interface Seen {
  /** Another one whenever the file has been written or replaced, whatever it holds. */
  stamp: string
  /** Of its content; empty when nobody knows what was read of it. */
  digest: string
}

/**
 * Each folder has a watcher of its own: Node's recursive one follows files and not their names, and misses every change
 * of a file after an editor has put another in its place.
 */
export class WatchedFiles {
  readonly #roots: readonly string[]
  #watchers: FSWatcher[] = []
  #known: Map<string, Seen>
  #noticedAt: number | undefined
  #notice = () => {}

  constructor(roots: readonly string[]) {
    this.#roots = roots
    this.#known = this.#look()
  }

  /**
   * Waits for files that differ from what they were when it resolved last, or when watching began, and for those that
   * were saved before `loaded` was called, also when they are again what they were.
   */
  async changed(): Promise<Changes> {
    for (;;) {
      if (this.#noticedAt === undefined) await this.#noticed()
      const at = this.#noticedAt ?? performance.now()
      while (await this.#noticed(settledMilliseconds));
      this.#noticedAt = undefined
      const before = this.#known
      this.#known = this.#look()
      const files = [...new Set([...before.keys(), ...this.#known.keys()])]
        .filter((file) => before.get(file)?.digest !== this.#known.get(file)?.digest)
        .map((file) => relative('', file))
      if (files.length > 0) return { files: files.sort(), at }
    }
  }

  /**
   * Tells that all files have been loaded since `changed` resolved, or since watching began. Of those that were saved
   * meanwhile nobody knows what was loaded: one that is undone by the next look would look unchanged.
   */
  loaded(): void {
    const stamps = new Map<string, string>()
    for (const root of this.#roots) visit(root, { file: (path) => stamps.set(path, stampOf(path)) })
    for (const path of new Set([...this.#known.keys(), ...stamps.keys()])) {
      const stamp = stamps.get(path) ?? ''
      if (this.#known.get(path)?.stamp !== stamp) this.#known.set(path, { stamp, digest: '' })
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
   * Each file as it is. Watches the folders that it meets anew: one that was removed and made again has the same
   * name, and often the same inode, but the watcher of the one before tells nothing of it.
   */
  #look(): Map<string, Seen> {
    const seen = new Map<string, Seen>()
    const before = this.#watchers
    this.#watchers = []
    const file = (path: string) => {
      // Before it is read: what is written from here on gives it another stamp.
      const stamp = stampOf(path)
      const digest = createHash('sha1').update(readFileSync(path)).digest('base64')
      seen.set(path, { stamp, digest })
    }
    for (const root of this.#roots) visit(root, { folder: (path) => this.#watch(path), file })
    for (const watcher of before) watcher.close()
    return seen
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

interface Visitor {
  folder?(path: string): unknown
  file(path: string): unknown
}

/** All folders, and the files in them, except for what is gone by then. */
function visit(path: string, { folder = () => true, file }: Visitor): void {
  if (!ifThere(() => folder(path))) return
  for (const entry of ifThere(() => readdirSync(path, { withFileTypes: true })) ?? []) {
    const below = join(path, entry.name)
    if (entry.isDirectory() && entry.name !== 'node_modules') visit(below, { folder, file })
    if (entry.isFile()) ifThere(() => file(below))
  }
}

function stampOf(path: string): string {
  const { ino, ctimeNs, size } = statSync(path, { bigint: true })
  return [ino, ctimeNs, size].join()
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
