/** Versions of browser contexts: written atomically, encrypted, and bound to their row. */
import { describe, expect, test, vi } from 'vitest'
import { acquireContextLease } from '../../../src/domain/browser-contexts/context-lease.ts'
import { ContextVersions } from '../../../src/domain/browser-contexts/context-versions.ts'
import { createState, openWithVersions } from '../../support/browser-contexts.ts'
import { findCanaries } from '../../support/canaries.ts'
import { type DomainOptions, newAccount, openDomain, type Test } from '../../support/domain.ts'
import { stores } from '../../support/store-kinds.ts'

const apiKey = { apiKeyId: 'a key' }
const empty = '{"cookies":[],"origins":[]}'

describe.each(stores)('versions of a browser context ($name)', (kind) => {
  const open = (test: Test, options: DomainOptions = {}) => openWithVersions(test, { kind, ...options })

  test('a version is read unchanged, and its metadata without decryption', async (test) => {
    const { read, put, context, versions, accountId, contextId } = await open(test)
    expect(await read()).toBe(empty)
    const state = createState('ü', '.example.com')
    expect(await put(state)).toMatchObject({ number: 1, isCurrent: true, apiKeyId: 'a key', runId: null })
    expect(await read()).toBe(state)
    expect(await read(contextId.toUpperCase())).toBe(state)
    const sizeBytes = Buffer.byteLength(state)
    expect(await context()).toMatchObject({ status: 'ready', version: 1, sizeBytes, cookieDomains: ['.example.com'] })
    expect(await versions.list(accountId, contextId)).toMatchObject([{ number: 1, sizeBytes, restoredFrom: null }])
  })

  test('another account cannot read or write versions', async (test) => {
    const { domain, contextId, versions, read, put } = await open(test)
    const { accountId: other } = await newAccount(domain)
    await put(createState('mine'))
    expect(await versions.read(other, contextId)).toBeUndefined()
    expect(await versions.list(other, contextId)).toBeUndefined()
    expect(await versions.replace(other, contextId, empty, apiKey)).toBeUndefined()
    expect(await versions.restore(other, contextId, 1, apiKey)).toBeUndefined()
    expect(await versions.stage(other, contextId, empty, apiKey)).toBeUndefined()
    expect(await read()).toBe(createState('mine'))
  })

  test('a version of another context of the account cannot be restored', async (test) => {
    const { accountId, contextId, createContext, versions, read, put } = await open(test)
    await put(createState('first'))
    await put(createState('second'))
    expect(await versions.restore(accountId, await createContext(), 2, apiKey)).toBeUndefined()
    await versions.restore(accountId, contextId, 1, apiKey)
    expect(await read()).toBe(createState('first'))
  })

  test('concurrent writes get consecutive numbers', async (test) => {
    const { domain, put, context, read, accountId, contextId, versions } = await open(test, { versionsKept: 100 })
    const other = await openDomain(test, { kind, location: domain.location, versionsKept: 100 })
    const states = Array.from({ length: 12 }, (_, index) => createState(`value ${index}`))
    const replace = (state: string, index: number) =>
      index % 2 ? put(state) : other.contextVersions.replace(accountId, contextId, state, apiKey)
    const written = await Promise.all(states.map(replace))
    const numbers = written.map((each) => (each && 'number' in each ? each.number : 0))
    expect(numbers.toSorted((a, b) => a - b)).toEqual(states.map((_, index) => index + 1))
    expect(await context()).toMatchObject({ version: 12 })
    expect(await read()).toBe(states[numbers.indexOf(12)])
    expect((await versions.list(accountId, contextId))?.filter(({ isCurrent }) => isCurrent)).toMatchObject([
      { number: 12 },
    ])
  })

  test('exactly one of several writers who may replace the same version succeeds', async (test) => {
    const { domain, accountId, contextId, versions, put, rows, read } = await open(test)
    const other = await openDomain(test, { kind, location: domain.location })
    const currentId = async () => (await versions.findCurrent(accountId, contextId))?.id
    for (const round of ['one', 'two']) {
      const expected = await currentId()
      const replace = (index: number) =>
        (index % 2 ? versions : other.contextVersions).replace(
          accountId,
          contextId,
          createState(`${round} ${index}`),
          apiKey,
          { mayReplace: (id) => id === expected },
        )
      const results = await Promise.all(Array.from({ length: 10 }, (_, index) => replace(index)))
      const won = results.findIndex((result) => result && 'number' in result)
      const current = await currentId()
      expect(results.filter((_, index) => index !== won)).toEqual(Array(9).fill({ currentVersionId: current }))
      expect(await read()).toBe(createState(`${round} ${won}`))
      // Nothing of the others is left.
      expect(await rows()).toHaveLength(round === 'one' ? 1 : 3)
      await put(createState('between'))
      expect(await currentId()).not.toBe(current)
    }
  })

  test('the configured number of versions is kept, and each of them can be restored', async (test) => {
    const { put, read, rows, context, versions, accountId, contextId } = await open(test, { versionsKept: 3 })
    for (const value of ['one', 'two', 'three', 'four']) await put(createState(value))
    const numbers = async () => (await versions.list(accountId, contextId))?.map(({ number }) => number)
    expect(await numbers()).toEqual([4, 3, 2])
    const user = { userId: 'a user' }
    const restored = { number: 5, isCurrent: true, restoredFrom: 2, userId: 'a user', apiKeyId: null }
    expect(await versions.restore(accountId, contextId, 2, user)).toMatchObject(restored)
    expect(await read()).toBe(createState('two'))
    expect(await numbers()).toEqual([5, 4, 3])
    expect(await context()).toMatchObject({ version: 5 })
    for (const number of [1, 2, 6, 0])
      expect(await versions.restore(accountId, contextId, number, user)).toBeUndefined()
    expect(await rows()).toHaveLength(3)
  })

  test('a version that is never committed is invisible, and deleted after an hour', async (test) => {
    const { domain, read, put, rows, context, versions, accountId, contextId } = await open(test)
    await put(createState('before'))
    expect(await versions.stage(accountId, contextId, createState('unfinished'), apiKey)).toBeDefined()
    expect(await read()).toBe(createState('before'))
    expect(await context()).toMatchObject({ version: 1 })
    expect(await versions.list(accountId, contextId)).toHaveLength(1)
    const minutes = 60_000
    const runMaintenanceAt = async (at: number) => {
      const later = await openDomain(test, { kind, location: domain.location, now: () => at })
      await later.maintenance.once()
    }
    await runMaintenanceAt(Date.now() + 59 * minutes)
    expect(await rows()).toHaveLength(2)
    await runMaintenanceAt(Date.now() + 61 * minutes)
    expect(await rows()).toMatchObject([{ version: 1 }])
    expect(await read()).toBe(createState('before'))
  })

  test('writes are refused while a run has the lease, even if it is acquired during the write', async (test) => {
    const { domain, queue, put, rows, read, versions, accountId, contextId } = await open(test)
    await put(createState('before'))
    const run = await queue()
    const write = domain.store.write
    let writes = 0
    vi.spyOn(domain.store, 'write').mockImplementation(async (work) => {
      writes += 1
      if (writes === 2) await write((tx) => acquireContextLease(tx, contextId, run.id, 0))
      return write(work)
    })
    const heldBy = { heldByRunId: run.id }
    expect(await put(createState('refused'))).toEqual(heldBy)
    expect(writes).toBe(2)
    expect(await put(createState('refused at once'))).toEqual(heldBy)
    expect(await versions.restore(accountId, contextId, 1, apiKey)).toEqual(heldBy)
    expect(writes).toBe(2)
    expect(await rows()).toHaveLength(1)
    expect(await read()).toBe(createState('before'))
  })

  test('deleting the context during a write or read is reported as not found', async (test) => {
    const { domain, put, createContext, versions, accountId } = await open(test)
    const { store, browserContexts } = domain
    const deletedAfterNextWrite = async () => {
      const id = await createContext()
      const write = store.write
      vi.spyOn(store, 'write').mockImplementationOnce(async (work) => {
        const result = await write(work)
        await browserContexts.delete(accountId, id)
        return result
      })
      return id
    }
    expect(await put(empty, await deletedAfterNextWrite())).toBeUndefined()
    expect(await versions.stage(accountId, await deletedAfterNextWrite(), empty, apiKey)).toBeUndefined()
    // The context is deleted between two reads.
    const id = await createContext()
    await put(empty, id)
    let reads = 0
    const query = store.read.query.withPlugin({
      transformQuery: ({ node }) => node,
      transformResult: async ({ result }) => {
        reads += 1
        if (reads === 2) await browserContexts.delete(accountId, id)
        return result
      },
    })
    const reading = { ...store, read: { ...store.read, query } }
    expect(await new ContextVersions(reading, domain.encryption, 5).restore(accountId, id, 1, apiKey)).toBeUndefined()
    expect(reads).toBe(3)
  })

  describe('at rest', () => {
    test('the store contains no plain text of a version, before and after its deletion', async (test) => {
      const { domain, put, rows, versions, accountId, contextId } = await open(test, { versionsKept: 2 })
      const canaries = ['canary-7f3a-cookie', 'canary-9b1c "other"']
      for (const canary of canaries) await put(createState(canary, 'shown.example.com'))
      await versions.restore(accountId, contextId, 1, apiKey)
      await versions.stage(accountId, contextId, createState(canaries[0] ?? ''), apiKey)
      const contents = async () => [['the store', await kind.contents(domain.location)]] as [string, Buffer][]
      expect(findCanaries(await contents(), canaries)).toEqual([])
      // Proves that the search finds what the store contains.
      expect(findCanaries(await contents(), ['shown.example.com'])).toEqual(['the store'])
      await domain.browserContexts.delete(accountId, contextId)
      expect(await rows()).toEqual([])
      expect(findCanaries(await contents(), canaries)).toEqual([])
    })

    test('no file of the store contains the encrypted versions of a deleted context', async (test) => {
      const { domain, put, rows, accountId, contextId } = await open(test)
      for (const value of ['short', 'x'.repeat(20_000)]) await put(createState(value))
      const encrypted = (await rows()).map(({ state }) => Buffer.from(state.subarray(0, 100)))
      const areStored = async () => {
        const contents = await kind.contents(domain.location)
        return encrypted.map((bytes) => contents.includes(bytes))
      }
      expect(await areStored()).toEqual([true, true])
      await domain.browserContexts.delete(accountId, contextId)
      expect(await areStored()).toEqual([false, false])
    })

    test('a version that was changed, truncated or moved to another row cannot be decrypted', async (test) => {
      const { domain, put, read, rows, createContext, contextId, accountId, versions } = await open(test)
      const { accountId: other } = await newAccount(domain)
      const sibling = await createContext()
      const foreign = await domain.browserContexts.create(other, undefined)
      await put(createState('one'))
      await put(createState('two'))
      await put(createState('sibling'), sibling)
      await versions.replace(other, foreign?.id ?? '', createState('foreign'), apiKey)
      const all = await rows()
      const current = all.find((row) => row.browser_context_id === contextId && row.version === 2)
      const change = (state: Uint8Array) =>
        domain.store.write(({ query }) =>
          query
            .updateTable('browser_context_versions')
            .set({ state })
            .where('id', '=', current?.id ?? '')
            .execute(),
        )
      const own = current?.state ?? new Uint8Array()
      const others = all.filter(({ id }) => id !== current?.id).map(({ state }) => state)
      expect(others).toHaveLength(3)
      const flipped = Uint8Array.from(own, (byte, index) => (index === 40 ? byte ^ 1 : byte))
      for (const state of [...others, flipped, own.slice(0, -1), own.slice(0, 20), new Uint8Array()]) {
        await change(state)
        await expect(read()).rejects.toThrow()
        await expect(versions.restore(accountId, contextId, 2, apiKey)).rejects.toThrow()
      }
      await change(own)
      expect(await read()).toBe(createState('two'))
      // A context cannot be pointed to the version of another one.
      const pointTo = { version_id: all.find((row) => row.browser_context_id === sibling)?.id ?? null }
      await domain.store.write(({ query }) =>
        query.updateTable('browser_contexts').set(pointTo).where('id', '=', contextId).execute(),
      )
      await expect(read()).rejects.toThrow()
    })
  })
})
