/** What browser contexts hold: whole versions or none, of use in their own place alone, and nowhere in plain bytes. */
import { describe, expect, test, vi } from 'vitest'
import type { BrowserHost } from '../../src/browser/browser-host.ts'
import { takeHold } from '../../src/browser-contexts/hold.ts'
import { ContextVersions } from '../../src/browser-contexts/versions.ts'
import type { Claim } from '../../src/runs/queue.ts'
import type { RunStatus } from '../../src/runs/state.ts'
import { type Session, StoreUnavailable } from '../../src/storage/store.ts'
import { AttemptBrowser } from '../../src/worker/attempt-browser.ts'
import { found } from '../support/canaries.ts'
import { claimAll, claimOne, leaseSeconds, noRetry, stoppedClock } from '../support/claims.ts'
import { openWithContext, stateWith } from '../support/contexts.ts'
import { type Domain, newAccount, openDomain } from '../support/store.ts'
import { stores } from '../support/stores.ts'

const apiKey = { apiKeyId: 'a key' }
const succeeded = { kind: 'succeeded', output: null } as const
const empty = '{"cookies":[],"origins":[]}'

/** The browser of an attempt whose workflow has ended and left this state. */
function attemptBrowser({ contextVersions: versions }: Domain, claim: Claim, json: string): AttemptBrowser {
  const browser = new AttemptBrowser({ host: {} as BrowserHost, versions }, claim, {})
  browser.take({ json })
  return browser
}

describe.each(stores)('versions of a browser context ($name)', (kind) => {
  async function open(
    test: Parameters<typeof openWithContext>[0],
    options: { versionsKept?: number; now?: () => number } = {},
  ) {
    const opened = await openWithContext(test, { kind, ...options })
    const { domain, accountId, contextId } = opened
    const { contextVersions: versions } = domain
    const rows = () => domain.store.read.query.selectFrom('browser_context_versions').selectAll().execute()
    return {
      ...opened,
      versions,
      rows,
      read: (id = contextId) => versions.read(accountId, id),
      put: (state: string, id = contextId) => versions.replace(accountId, id, state, apiKey),
    }
  }

  test('are read as they were written, and told of without being opened', async (test) => {
    const { read, put, context, versions, accountId, contextId } = await open(test)
    expect(await read()).toBe(empty)
    const state = stateWith('ü', '.example.com')
    expect(await put(state)).toMatchObject({ number: 1, isCurrent: true, apiKeyId: 'a key', runId: null })
    expect(await read()).toBe(state)
    expect(await read(contextId.toUpperCase())).toBe(state)
    const sizeBytes = Buffer.byteLength(state)
    expect(await context()).toMatchObject({ status: 'ready', version: 1, sizeBytes, cookieDomains: ['.example.com'] })
    expect(await versions.list(accountId, contextId)).toMatchObject([{ number: 1, sizeBytes, restoredFrom: null }])
  })

  test('belong to their account alone', async (test) => {
    const { domain, contextId, versions, read, put } = await open(test)
    const { accountId: other } = await newAccount(domain)
    await put(stateWith('mine'))
    expect(await versions.read(other, contextId)).toBeUndefined()
    expect(await versions.list(other, contextId)).toBeUndefined()
    expect(await versions.replace(other, contextId, empty, apiKey)).toBeUndefined()
    expect(await versions.restore(other, contextId, 1, apiKey)).toBeUndefined()
    expect(await versions.stage(other, contextId, empty, apiKey)).toBeUndefined()
    expect(await read()).toBe(stateWith('mine'))
  })

  test('get each a number of its own, however many are written at the same time', async (test) => {
    const { domain, put, context, read, accountId, contextId, versions } = await open(test, { versionsKept: 100 })
    const other = await openDomain(test, { kind, place: domain.place, versionsKept: 100 })
    const states = Array.from({ length: 12 }, (_, index) => stateWith(`value ${index}`))
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

  test('are kept up to the configured number, and one of them can be made the newest', async (test) => {
    const { put, read, rows, context, versions, accountId, contextId } = await open(test, { versionsKept: 3 })
    for (const value of ['one', 'two', 'three', 'four']) await put(stateWith(value))
    const numbers = async () => (await versions.list(accountId, contextId))?.map(({ number }) => number)
    expect(await numbers()).toEqual([4, 3, 2])
    const user = { userId: 'a user' }
    const restored = { number: 5, isCurrent: true, restoredFrom: 2, userId: 'a user', apiKeyId: null }
    expect(await versions.restore(accountId, contextId, 2, user)).toMatchObject(restored)
    expect(await read()).toBe(stateWith('two'))
    expect(await numbers()).toEqual([5, 4, 3])
    expect(await context()).toMatchObject({ version: 5 })
    for (const number of [1, 2, 6, 0])
      expect(await versions.restore(accountId, contextId, number, user)).toBeUndefined()
    expect(await rows()).toHaveLength(3)
  })

  test('that never counted are seen nowhere, and forgotten after an hour', async (test) => {
    const { domain, read, put, rows, context, versions, accountId, contextId } = await open(test)
    await put(stateWith('before'))
    expect(await versions.stage(accountId, contextId, stateWith('unfinished'), apiKey)).toBeDefined()
    expect(await read()).toBe(stateWith('before'))
    expect(await context()).toMatchObject({ version: 1 })
    expect(await versions.list(accountId, contextId)).toHaveLength(1)
    const minutes = 60_000
    const upkeepAt = async (at: number) => {
      const later = await openDomain(test, { kind, place: domain.place, now: () => at })
      await later.upkeep.once()
    }
    await upkeepAt(Date.now() + 59 * minutes)
    expect(await rows()).toHaveLength(2)
    await upkeepAt(Date.now() + 61 * minutes)
    expect(await rows()).toMatchObject([{ version: 1 }])
    expect(await read()).toBe(stateWith('before'))
  })

  test('are refused while a run holds the context, also one that takes hold of it on their way', async (test) => {
    const { domain, queue, put, rows, read, versions, accountId, contextId } = await open(test)
    await put(stateWith('before'))
    const run = await queue()
    const write = domain.store.write
    let writes = 0
    vi.spyOn(domain.store, 'write').mockImplementation(async (work) => {
      writes += 1
      if (writes === 2) await write((session) => takeHold(session, contextId, run.id, 0))
      return write(work)
    })
    const heldBy = { heldByRunId: run.id }
    expect(await put(stateWith('refused'))).toEqual(heldBy)
    expect(writes).toBe(2)
    expect(await put(stateWith('refused at once'))).toEqual(heldBy)
    expect(await versions.restore(accountId, contextId, 1, apiKey)).toEqual(heldBy)
    expect(writes).toBe(2)
    expect(await rows()).toHaveLength(1)
    expect(await read()).toBe(stateWith('before'))
  })

  test('are not found when they go while they are written or read, and nothing fails', async (test) => {
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
    // A store whose version is removed between two reads of it.
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

  test('are erased a few megabytes at a time, while their context is gone at once, also when that is cut off', async (test) => {
    const { domain, put, queue, rows, read, context, versions, accountId, contextId } = await open(test)
    const { store, browserContexts } = domain
    const name = (await context())?.name ?? ''
    for (let index = 0; index < 3; index += 1) await put(stateWith('x'.repeat(1.5 * 1024 * 1024)))
    const run = await queue()
    const write = store.write
    const writes = vi.spyOn(store, 'write').mockImplementation((work) => {
      if (writes.mock.calls.length > 1) throw new StoreUnavailable('The process dies.')
      return write(work)
    })
    expect(await browserContexts.delete(accountId, contextId)).toBe(true)
    writes.mockRestore()
    expect(await rows()).toMatchObject([{ version: 1 }, { version: 2 }])
    expect([await context(), await read(), await put(empty), await versions.list(accountId, contextId)]).toEqual(
      Array(4).fill(undefined),
    )
    expect(await browserContexts.list(accountId, { limit: 10 })).toMatchObject({ contexts: [] })
    expect(await browserContexts.delete(accountId, contextId)).toBe(false)
    expect(await browserContexts.create(accountId, name)).toBeDefined()
    expect(await claimAll(domain.queue, domain)).toMatchObject([{ runId: run.id, hold: null }])
    const later = await openDomain(test, { kind, place: domain.place, now: () => Date.now() + 61_000 })
    await domain.upkeep.once()
    expect(await rows()).toHaveLength(2)
    expect(await later.upkeep.once()).toBe(100)
    expect(await rows()).toHaveLength(1)
    await later.upkeep.once()
    expect(await rows()).toEqual([])
    expect(await store.read.all('SELECT name FROM browser_contexts', [])).toEqual([{ name }])
  })

  describe('that a run writes', () => {
    /** A run that has written a version, and what makes it count at the run's end. */
    async function openWriting(test: Parameters<typeof open>[0], options: Parameters<typeof open>[1] = {}) {
      const opened = await open(test, options)
      const { domain, versions, accountId, contextId } = opened
      await opened.put(stateWith('before'))
      const run = await opened.queue()
      const writeAs = async (claim: Awaited<ReturnType<typeof claimOne>>, value: string) => {
        const staged = await versions.stage(accountId, contextId, stateWith(value), { runId: claim.runId })
        if (!staged || !claim.hold) throw new Error('The run has no hold.')
        const { hold } = claim
        const counted: boolean[] = []
        const alongside = async (session: Session, _: RunStatus) => {
          counted.push(await versions.countFor(session, staged, hold))
          return []
        }
        const settle = () => domain.queue.settle(claim, succeeded, noRetry, [], alongside)
        return { staged, hold, counted, settle }
      }
      return { ...opened, run, writeAs }
    }

    test('count with the end of the run, and not before', async (test) => {
      const { domain, run, writeAs, read, versions, accountId, contextId } = await openWriting(test)
      const { settle, counted } = await writeAs(await claimOne(domain), 'after')
      expect(await read()).toBe(stateWith('before'))
      expect(await settle()).toBe(true)
      expect(counted).toEqual([true])
      expect(await read()).toBe(stateWith('after'))
      const listed = [
        { number: 2, runId: run.id, isCurrent: true },
        { number: 1, runId: null },
      ]
      expect(await versions.list(accountId, contextId)).toMatchObject(listed)
    })

    test('count never when the run was lost meanwhile, also when the same run has another attempt', async (test) => {
      const clock = stoppedClock()
      const { domain, writeAs, read, context, rows, run } = await openWriting(test, { now: clock.now })
      const paused = await writeAs(await claimOne(domain, 'paused'), 'of the paused one')
      clock.advance(leaseSeconds + 1)
      await domain.upkeep.once()
      const taker = await writeAs(await claimOne(domain, 'taker'), 'of the other')
      expect([paused.hold, taker.hold]).toMatchObject([
        { runId: run.id, fence: 1 },
        { runId: run.id, fence: 2 },
      ])
      expect(await paused.settle()).toBe(false)
      expect(paused.counted).toEqual([])
      // The token alone fences it off, should its attempt be taken for the one that goes on.
      const { contextVersions } = domain
      const late = domain.store.write((session) => contextVersions.countFor(session, paused.staged, paused.hold))
      expect(await late).toBe(false)
      expect(await read()).toBe(stateWith('before'))
      expect(await context()).toMatchObject({ version: 1, heldByRunId: run.id })
      expect(await taker.settle()).toBe(true)
      expect(await read()).toBe(stateWith('of the other'))
      expect(await rows()).toHaveLength(2)
    })

    test('are gone with a context that was deleted meanwhile, and the run ends as it would', async (test) => {
      const { domain, writeAs, rows, run, accountId, contextId } = await openWriting(test)
      const { settle, counted } = await writeAs(await claimOne(domain), 'after')
      expect(await domain.browserContexts.delete(accountId, contextId)).toBe(true)
      expect(await settle()).toBe(true)
      expect(counted).toEqual([false])
      expect(await rows()).toEqual([])
      expect(await domain.runs.get(accountId, run.id)).toMatchObject({
        status: 'succeeded',
        browserContextId: contextId,
      })
    })

    test('are told to be missing by a run whose context is deleted as it saves, which succeeds all the same', async (test) => {
      const { domain, run, accountId, contextId } = await openWriting(test)
      const { store, browserContexts } = domain
      const browser = attemptBrowser(domain, await claimOne(domain), stateWith('after'))
      const write = store.write
      vi.spyOn(store, 'write').mockImplementationOnce(async (work) => {
        const result = await write(work)
        await browserContexts.delete(accountId, contextId)
        return result
      })
      const message = 'The browser context was deleted while the run used it: nothing was saved.'
      const saved = await browser.save(succeeded)
      expect(saved).toMatchObject({ outcome: succeeded, reports: [{ data: { level: 'warn', message } }] })
      expect(await saved.alongside({} as Session, 'succeeded')).toEqual([])
      expect(run.browserContextId).toBe(contextId)
    })

    test('have domains as long as the document lets them be, or are not saved', async (test) => {
      const { domain, rows } = await openWriting(test)
      const claim = await claimOne(domain)
      const longest = await attemptBrowser(domain, claim, stateWith('', 'x'.repeat(253))).save(succeeded)
      expect(longest.outcome).toEqual(succeeded)
      const message =
        'What the browser held could not be read: the domain of a cookie has 254 characters; it may have 253.'
      const refused = await attemptBrowser(domain, claim, stateWith('', 'x'.repeat(254))).save(succeeded)
      expect(refused.outcome).toMatchObject({ kind: 'failed', reason: 'contextNotSaved', error: { message } })
      expect(await rows()).toHaveLength(2)
    })

    test('count once, and leave the context to the next run', async (test) => {
      const { domain, writeAs, queue, context } = await openWriting(test)
      const { settle } = await writeAs(await claimOne(domain), 'after')
      const next = await queue()
      expect([await settle(), await settle()]).toEqual([true, false])
      expect(await context()).toMatchObject({ version: 2, heldByRunId: null })
      expect(await claimAll(domain.queue, domain)).toMatchObject([{ runId: next.id, hold: { fence: 2 } }])
    })
  })

  describe('at rest', () => {
    test('are nowhere in plain bytes, while they are kept and when they are erased', async (test) => {
      const { domain, put, rows, versions, accountId, contextId } = await open(test, { versionsKept: 2 })
      const canaries = ['canary-7f3a-cookie', 'canary-9b1c "other"']
      for (const canary of canaries) await put(stateWith(canary, 'told.example.com'))
      await versions.restore(accountId, contextId, 1, apiKey)
      await versions.stage(accountId, contextId, stateWith(canaries[0] ?? ''), apiKey)
      const contents = async () => [['the store', await kind.contents(domain.place)]] as [string, Buffer][]
      expect(found(await contents(), canaries)).toEqual([])
      // What is told of a version is found, so that the search does find what is there.
      expect(found(await contents(), ['told.example.com'])).toEqual(['the store'])
      await domain.browserContexts.delete(accountId, contextId)
      expect(await rows()).toEqual([])
      expect(found(await contents(), canaries)).toEqual([])
    })

    test('are in no file of the store when their context was deleted, not even encrypted', async (test) => {
      const { domain, put, rows, accountId, contextId } = await open(test)
      for (const value of ['short', 'x'.repeat(20_000)]) await put(stateWith(value))
      const sealed = (await rows()).map(({ state }) => Buffer.from(state.subarray(0, 100)))
      const left = async () => {
        const contents = await kind.contents(domain.place)
        return sealed.map((bytes) => contents.includes(bytes))
      }
      expect(await left()).toEqual([true, true])
      await domain.browserContexts.delete(accountId, contextId)
      expect(await left()).toEqual([false, false])
    })

    test('do not open when they were changed, cut short, or moved to another version, context or account', async (test) => {
      const { domain, put, read, rows, createContext, contextId, accountId, versions } = await open(test)
      const { accountId: other } = await newAccount(domain)
      const beside = await createContext()
      const foreign = await domain.browserContexts.create(other, undefined)
      await put(stateWith('one'))
      await put(stateWith('two'))
      await put(stateWith('beside'), beside)
      await versions.replace(other, foreign?.id ?? '', stateWith('foreign'), apiKey)
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
      expect(await read()).toBe(stateWith('two'))
      // Nor does a context show what it is made to point to.
      const pointTo = { version_id: all.find((row) => row.browser_context_id === beside)?.id ?? null }
      await domain.store.write(({ query }) =>
        query.updateTable('browser_contexts').set(pointTo).where('id', '=', contextId).execute(),
      )
      await expect(read()).rejects.toThrow()
    })
  })
})
