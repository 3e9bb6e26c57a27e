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
  readonly #directory: string
  readonly #files: Map<Topic, number>
  readonly #listeners = new EventEmitter<Record<Topic, []>>().setMaxListeners(0)
  readonly #pending = new Set<Topic>()
  /** Of topics that have listeners: every change of a watched file wakes the process. */
  readonly #watchers = new Map<Topic, FSWatcher>()
  readonly #fallback: NodeJS.Timeout

  /** @param fallbackMilliseconds interval of a notification on every topic, for file systems that report no changes. */
  constructor(directory: string, fallbackMilliseconds: number) {
    this.#directory = directory
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    this.#files = new Map(topics.map((topic) => [topic, openSync(join(directory, topic), 'w', 0o600)]))
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
    if (!this.#watchers.has(topic)) this.#watch(topic)
    return () => {
      this.#listeners.off(topic, listener)
      if (this.#listeners.listenerCount(topic) > 0) return
      this.#watchers.get(topic)?.close()
      this.#watchers.delete(topic)
    }
  }

  close(): void {
    this.#flush()
    clearInterval(this.#fallback)
    for (const watcher of this.#watchers.values()) watcher.close()
    for (const file of this.#files.values()) closeSync(file)
    this.#files.clear()
  }

  #watch(topic: Topic): void {
    if (!this.#files.has(topic)) return
    try {
      const watcher = watch(join(this.#directory, topic), { persistent: false }, () => this.#listeners.emit(topic))
      watcher.on('error', () => {})
      this.#watchers.set(topic, watcher)
    } catch {
      // The machine is out of watchers, or the file system has none: the fallback remains.
    }
  }

  #flush(): void {
    for (const topic of this.#pending) {
      const file = this.#files.get(topic)
      if (file !== undefined) writeSync(file, '!', 0)
    }
    this.#pending.clear()
  }
}
