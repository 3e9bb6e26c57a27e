/** Lets another process act between a read and the write that follows, or before a write is committed. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Store, Topic, Transaction, WriteOptions } from '../../src/storage/store.ts'

type Write = <Result>(work: (tx: Transaction) => Promise<Result>, options?: WriteOptions) => Promise<Result>

/** Replaces the store's next write. */
function replaceNextWrite(store: Store, replacement: (write: Write) => Write): void {
  const { write } = store
  store.write = (work, options) => {
    store.write = write
    return replacement(write.bind(store))(work, options)
  }
}

/** Before the next write begins, so that what its caller has read is stale. */
export function beforeNextWrite(store: Store, act: () => Promise<unknown>): void {
  replaceNextWrite(store, (write) => async (work, options) => {
    await act()
    return write(work, options)
  })
}

/**
 * After the statements of the next write, and before its commit. On PostgreSQL the commit waits until `act` has ended or
 * waits for a lock; SQLite has one writer at a time, so `act` waits for the commit.
 *
 * @returns resolves when `act` has ended.
 */
export function beforeNextCommit(store: Store, act: () => Promise<unknown>): Promise<unknown> {
  const ended = Promise.withResolvers<unknown>()
  replaceNextWrite(store, (write) => (work, options = {}) => {
    // A single statement would be committed when it ends.
    const { oneStatement: _, durableLater: __, ...rest } = options
    return write(async (tx) => {
      const result = await work(tx)
      act().then(ended.resolve, ended.reject)
      let hasEnded = false
      const setEnded = () => {
        hasEnded = true
      }
      ended.promise.then(setEnded, setEnded)
      while (store.isRemote && !hasEnded && !(await hasWaiter(store))) await delay(1)
      return result
    }, rest)
  })
  return ended.promise
}

/** Whether a connection to the database waits for a lock. */
async function hasWaiter({ read }: Store): Promise<boolean> {
  const waiting = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  return (await read.all(waiting, [])).length > 0
}

/** Records what a listener would read at the first notification of each topic. */
export function recordNotifications<Found>(store: Store, read: () => Promise<Found>) {
  const first = new Map<Topic, Promise<Found>>()
  const { notify } = store
  store.notify = (topic) => {
    if (!first.has(topic)) first.set(topic, read())
    notify.call(store, topic)
  }
  /** Ends the recording. */
  return async (): Promise<Partial<Record<Topic, Found>>> => {
    store.notify = notify
    const pairs = [...first].map(async ([topic, found]) => [topic, await found] as const)
    return Object.fromEntries(await Promise.all(pairs))
  }
}
