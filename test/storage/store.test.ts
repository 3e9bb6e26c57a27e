/** Conformance tests for stores (src/storage/store.ts): durability, isolation, and notifications between processes. */
import { once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { Accounts } from '../../src/domain/accounts/accounts.ts'
import { type Store, StoreUnavailable, type Transaction } from '../../src/storage/store.ts'
import { newStoreLocation, openStore } from '../support/domain.ts'
import { startStoreProcess } from '../support/processes.ts'
import { stores } from '../support/store-kinds.ts'
import { waitLimits } from '../support/timeouts.ts'

const insertSql = 'INSERT INTO accounts (id, name, scopes_enabled, created_at) VALUES (?, ?, 0, 0)'

async function insert(tx: Transaction, id: string): Promise<string> {
  await tx.all(insertSql, [id, id])
  return id
}

async function ids(tx: Transaction): Promise<string[]> {
  const rows = await tx.query.selectFrom('accounts').select('id').orderBy('id').execute()
  return rows.map((row) => row.id)
}

describe.each(stores)('a store ($name)', (kind) => {
  test('makes a write visible to other processes once it resolves', async (test) => {
    const location = await newStoreLocation(test, kind)
    const first = await openStore(test, location, kind)
    expect(await first.write((tx) => insert(tx, 'a'))).toBe('a')
    const second = await openStore(test, location, kind)
    expect(await ids(first.read)).toEqual(['a'])
    expect(await ids(second.read)).toEqual(['a'])
    await second.write((tx) => insert(tx, 'b'))
    expect(await ids(first.read)).toEqual(['a', 'b'])
  })

  test('keeps a write when the process is killed right after it resolves', async (test) => {
    const location = await newStoreLocation(test, kind)
    const child = await startStoreProcess(test, { kind, command: 'writeAndDie', locations: [location] })
    child.send('go')
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
    const accounts = await new Accounts(await openStore(test, location, kind)).list()
    expect(accounts.map(({ name }) => name)).toEqual(['Written last'])
  })

  test('returns every type of value unchanged', async (test) => {
    const store = await openStore(test, await newStoreLocation(test, kind), kind)
    await store.write((tx) => insert(tx, 'a'))
    const { query } = store.read
    const text = `quotes ' " and ünïcode 🌍 and 漢字`
    const moment = 253402300799999
    await store.write((tx) =>
      tx.query.updateTable('accounts').set({ name: text, created_at: moment }).where('id', '=', 'a').execute(),
    )
    expect(await query.selectFrom('accounts').selectAll().execute()).toEqual([
      {
        id: 'a',
        name: text,
        scopes_enabled: 0,
        created_at: moment,
        second_factor_required: 0,
        parent_id: null,
        environment: null,
        values_version: 0,
      },
    ])
    expect(await store.read.all('SELECT created_at, name FROM accounts WHERE id = ?', ['a'])).toEqual([
      { name: text, created_at: moment },
    ])
  })

  test('returns the rows of a RETURNING clause', async (test) => {
    const store = await openStore(test, await newStoreLocation(test, kind), kind)
    const rows = await store.write(async (tx) => {
      await insert(tx, 'a')
      return tx.all("UPDATE accounts SET name = ? WHERE id = 'a' RETURNING id, name", ['renamed'])
    })
    expect(rows).toEqual([{ id: 'a', name: 'renamed' }])
  })

  test('hides uncommitted writes from reads, even in the same process', async (test) => {
    const location = await newStoreLocation(test, kind)
    const [store, other] = [await openStore(test, location, kind), await openStore(test, location, kind)]
    const seen = await store.write(async (tx) => {
      await insert(tx, 'a')
      return { transaction: await ids(tx), process: await ids(store.read), otherProcess: await ids(other.read) }
    })
    expect(seen).toEqual({ transaction: ['a'], process: [], otherProcess: [] })
    expect(await ids(other.read)).toEqual(['a'])
  })

  test('rolls back a write that throws, and no other that arrives with it', async (test) => {
    const store = await openStore(test, await newStoreLocation(test, kind), kind)
    const failing = async (tx: Transaction) => {
      await insert(tx, 'b')
      throw new Error('rolled back')
    }
    await store.write((tx) => insert(tx, 'a'))
    const results = await Promise.allSettled([
      store.write((tx) => insert(tx, 'c')),
      store.write(failing),
      store.write((tx) => insert(tx, 'a')), // Violates the primary key.
      store.write((tx) => insert(tx, 'd')),
    ])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
    expect(results[1]).toHaveProperty('reason.message', 'rolled back')
    expect(results[2]).not.toHaveProperty('reason', expect.any(StoreUnavailable))
    expect(await ids(store.read)).toEqual(['a', 'c', 'd'])
  })

  test('rolls back a single write that throws, and accepts the next one', async (test) => {
    const store = await openStore(test, await newStoreLocation(test, kind), kind)
    const failing = store.write(async (tx) => {
      await insert(tx, 'a')
      throw new Error('rolled back')
    })
    await expect(failing).rejects.toThrow('rolled back')
    await store.write((tx) => insert(tx, 'b'))
    expect(await ids(store.read)).toEqual(['b'])
  })

  test('rejects every write of a transaction whose commit fails, and stores none of them', async (test) => {
    const store = await openStore(test, await newStoreLocation(test, kind), kind)
    const failing = () => store.write((tx) => kind.failOnCommit(tx))
    await expect(failing()).rejects.toThrow(/constraint/)
    const together = await Promise.allSettled([store.write((tx) => insert(tx, 'a')), failing()])
    // A store that gives each write a transaction commits the first.
    const stored = together[0].status === 'fulfilled' ? ['a'] : []
    expect(together[1].status).toBe('rejected')
    expect(await ids(store.read)).toEqual(stored)
    await store.write((tx) => insert(tx, 'b'))
    expect(await ids(store.read)).toEqual([...stored, 'b'])
  })

  test('runs one write at a time across processes', async (test) => {
    const location = await newStoreLocation(test, kind)
    const both = [await openStore(test, location, kind), await openStore(test, location, kind)] as const
    await both[0].write((tx) => insert(tx, 'counter'))
    await both[0].write((tx) => tx.all("UPDATE accounts SET name = '0'", []))
    const increment = (store: Store) =>
      store.write(async ({ query }) => {
        const { name } = await query.selectFrom('accounts').select('name').executeTakeFirstOrThrow()
        await query
          .updateTable('accounts')
          .set({ name: String(Number(name) + 1) })
          .execute()
      })
    await Promise.all(Array.from({ length: 40 }, (_, index) => increment(both[index % 2 ? 0 : 1])))
    expect(await both[0].read.all('SELECT name FROM accounts', [])).toEqual([{ name: '40' }])
  })

  test('finishes pending writes on close, and is unavailable afterwards', async (test) => {
    const location = await newStoreLocation(test, kind)
    const store = await kind.open(location)
    await store.check()
    const select = 'SELECT id FROM accounts'
    await store.read.all(select, [])
    const writing = store.write((tx) => insert(tx, 'a'))
    await store.close()
    await expect(writing).resolves.toBe('a')
    await expect(store.check()).rejects.toThrow(StoreUnavailable)
    await expect(store.read.all(select, [])).rejects.toThrow(StoreUnavailable)
    await expect(ids(store.read)).rejects.toThrow(StoreUnavailable)
    await expect(store.write((tx) => insert(tx, 'b'))).rejects.toThrow(StoreUnavailable)
    store.notify('queue')
    expect(await ids((await openStore(test, location, kind)).read)).toEqual(['a'])
  })

  test('enforces foreign keys', async (test) => {
    const store = await openStore(test, await newStoreLocation(test, kind), kind)
    const orphan = { id: 'u', account_id: 'missing', name: 'Orphan', created_at: 0 }
    const write = store.write(({ query }) => query.insertInto('users').values(orphan).execute())
    await expect(write).rejects.not.toThrow(StoreUnavailable)
  })

  describe('notifications', () => {
    test("call the topic's listeners in all processes, and no others", async (test) => {
      const location = await newStoreLocation(test, kind)
      const [store, other] = [await openStore(test, location, kind), await openStore(test, location, kind)]
      /** Notifications of a process arrive in order, so all earlier ones have been delivered. */
      const drain = async () => {
        const listeners = [vi.fn(), vi.fn()] as const
        const remove = [store.listen('runs', listeners[0]), other.listen('runs', listeners[1])]
        store.notify('runs')
        await vi.waitFor(() => {
          for (const listener of listeners) expect(listener).toHaveBeenCalled()
        }, waitLimits)
        for (const each of remove) each()
      }
      // Opening a store creates its files, which may notify in the next iterations of the event loop.
      for (let tick = 0; tick < 3; tick += 1) await setImmediate()
      const [here, there, otherTopic, removed] = [vi.fn(), vi.fn(), vi.fn(), vi.fn()]
      store.listen('queue', here)
      other.listen('queue', there)
      other.listen('cancellations', otherTopic)
      other.listen('queue', removed)()
      store.notify('queue')
      await vi.waitFor(() => {
        expect(here).toHaveBeenCalled()
        expect(there).toHaveBeenCalled()
      }, waitLimits)
      await drain()
      expect(otherTopic).not.toHaveBeenCalled()
      expect(removed).not.toHaveBeenCalled()
    })

    test('travel between two processes in both directions', async (test) => {
      const location = await newStoreLocation(test, kind)
      const store = await openStore(test, location, kind)
      const child = await startStoreProcess(test, { kind, command: 'replyToNotification', locations: [location] })
      child.send('go')
      await once(child, 'message')
      const listener = vi.fn()
      store.listen('runs', listener)
      store.notify('queue')
      await vi.waitFor(() => expect(listener).toHaveBeenCalled(), waitLimits)
    })
  })
})
