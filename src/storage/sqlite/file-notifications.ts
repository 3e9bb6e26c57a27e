/**
 * Notifications between processes on one machine: a watched file for each topic, written to on notify. Delivery took
 * less than a millisecond, and an idle service costs nothing, unlike with polling.
 */
import { EventEmitter } from 'node:events'
import { closeSync, type FSWatcher, mkdirSync, openSync, watch, writeSync } from 'node:fs'
import { join } from 'node:path'
import { type Topic, topics } from '../store.ts'

/** How long a change of a run waits for others before listeners are notified. */
const runsMilliseconds = 5

export class FileNotifications {
  readonly #files: Map<Topic, number>
  readonly #listeners = new EventEmitter<Record<Topic, []>>().setMaxListeners(0)
  readonly #pending = new Set<Topic>()
  readonly #watcher: FSWatcher | undefined
  readonly #fallback: NodeJS.Timeout

  /** @param fallbackMilliseconds interval of a notification on every topic, for file systems that report no changes. */
  constructor(directory: string, fallbackMilliseconds: number) {
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    this.#files = new Map(topics.map((topic) => [topic, openSync(join(directory, topic), 'w', 0o600)]))
    try {
      this.#watcher = watch(directory, { persistent: false }, (_, file) => this.#listeners.emit(file as Topic))
      this.#watcher.on('error', () => {})
    } catch {
      // The machine is out of watchers, or the file system has none: the fallback remains.
    }
    const notifyAll = () => topics.forEach((topic) => void this.#listeners.emit(topic))
    this.#fallback = setInterval(notifyAll, fallbackMilliseconds).unref()
  }

  /**
   * Coalesces all calls in one iteration of the event loop. Followers of runs wait a little longer, so that most runs
   * notify them once.
   */
  notify(topic: Topic): void {
    if (this.#pending.has(topic)) return
    this.#pending.add(topic)
    if (topic === 'runs') setTimeout(() => this.#flush(), runsMilliseconds)
    else setImmediate(() => this.#flush())
  }

  listen(topic: Topic, listener: () => void): () => void {
    this.#listeners.on(topic, listener)
    return () => void this.#listeners.off(topic, listener)
  }

  close(): void {
    this.#flush()
    clearInterval(this.#fallback)
    this.#watcher?.close()
    for (const file of this.#files.values()) closeSync(file)
    this.#files.clear()
  }

  #flush(): void {
    for (const topic of this.#pending) {
      const file = this.#files.get(topic)
      if (file !== undefined) writeSync(file, '!', 0)
    }
    this.#pending.clear()
  }
}
