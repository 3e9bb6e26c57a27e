/**
 * Bells between processes on one machine: a file for each bell, written to when it rings, watched by all. Measured
 * under a millisecond from ring to listener; the alternative, polling the database, costs more the less happens.
 */
import { closeSync, type FSWatcher, mkdirSync, openSync, watch, writeSync } from 'node:fs'
import { join } from 'node:path'
import { type Topic, topics } from '../store.ts'

export class FileNotifications {
  readonly #files: Map<Topic, number>
  readonly #listeners = new Map<Topic, Set<() => void>>(topics.map((bell) => [bell, new Set()]))
  readonly #rung = new Set<Topic>()
  readonly #watcher: FSWatcher | undefined
  readonly #fallback: NodeJS.Timeout

  /** @param fallbackMilliseconds rings this often without being rung, in case changes of files are not reported. */
  constructor(directory: string, fallbackMilliseconds: number) {
    mkdirSync(directory, { recursive: true })
    this.#files = new Map(topics.map((bell) => [bell, openSync(join(directory, bell), 'w')]))
    try {
      this.#watcher = watch(directory, { persistent: false }, (_, file) => this.#tell(file as Topic))
      this.#watcher.on('error', () => {})
    } catch {
      // The machine has no watcher left, or its file system none at all; the fallback rings then.
    }
    this.#fallback = setInterval(() => {
      for (const bell of topics) this.#tell(bell)
    }, fallbackMilliseconds).unref()
  }

  /** Rings once for all calls of this turn of the event loop. */
  notify(bell: Topic): void {
    if (this.#rung.size === 0) setImmediate(() => this.#flush())
    this.#rung.add(bell)
  }

  listen(bell: Topic, listener: () => void): () => void {
    const listeners = this.#listeners.get(bell)
    listeners?.add(listener)
    return () => listeners?.delete(listener)
  }

  close(): void {
    this.#flush()
    clearInterval(this.#fallback)
    this.#watcher?.close()
    for (const file of this.#files.values()) closeSync(file)
    this.#files.clear()
  }

  #flush(): void {
    for (const bell of this.#rung) {
      const file = this.#files.get(bell)
      if (file !== undefined) writeSync(file, '!', 0)
    }
    this.#rung.clear()
  }

  #tell(bell: Topic): void {
    for (const listener of this.#listeners.get(bell) ?? []) listener()
  }
}
