/** Browser contexts: unique names, pages, isolation between accounts, and deletion. */
import { describe, expect, test, vi } from 'vitest'
import { StoreUnavailable } from '../../../src/storage/store.ts'
import { createState, openWithVersions } from '../../support/browser-contexts.ts'
import { claimAll } from '../../support/claims.ts'
import { newAccount, openDomain } from '../../support/domain.ts'
import { stores } from '../../support/store-kinds.ts'

describe.each(stores)('browser contexts ($name)', (kind) => {
  test('of 30 concurrent requests to create a name, one succeeds', async (test) => {
    const domain = await openDomain(test, { kind })
    const other = await openDomain(test, { kind, location: domain.location })
    const { accountId } = await newAccount(domain)
    const create = (index: number) => (index % 2 ? domain : other).browserContexts.create(accountId, 'shop')
    const created = await Promise.all(Array.from({ length: 30 }, (_, index) => create(index)))
    const [context, ...more] = created.filter((each) => each !== undefined)
    expect(more).toEqual([])
    expect(await other.browserContexts.get(accountId, context?.id ?? '')).toEqual(context)
    expect(await domain.browserContexts.get(accountId, context?.id.toUpperCase() ?? '')).toEqual(context)
  })

  test('a page of contexts ends before their cookie domains exceed 1 MiB', async (test) => {
    const { domain, accountId, versions, put, contextId } = await openWithVersions(test, { kind })
    await put(createState('x'))
    const ids = [contextId]
    for (const name of ['a', 'b', 'c']) {
      const { id = '' } = (await domain.browserContexts.create(accountId, name)) ?? {}
      await versions.replace(accountId, id, createState('x'), { userId: crypto.randomUUID() })
      ids.unshift(id)
    }
    const large = JSON.stringify(['x'.repeat(400 * 1024)])
    await domain.store.write(({ all }) => all('UPDATE browser_context_versions SET cookie_domains = ?', [large]))
    const first = await domain.browserContexts.list(accountId, { limit: 100 })
    expect(first?.contexts.map(({ id }) => id)).toEqual(ids.slice(0, 2))
    const last = await domain.browserContexts.list(accountId, { limit: 2, cursor: first?.nextCursor ?? '' })
    expect(last).toMatchObject({ contexts: [{ id: ids[2] }, { id: ids[3] }], nextCursor: null })
  })

  test('a context without a name is named after its ID', async (test) => {
    const { browserContexts, ...domain } = await openDomain(test, { kind })
    const { accountId } = await newAccount({ browserContexts, ...domain })
    const [one, two] = [
      await browserContexts.create(accountId, undefined),
      await browserContexts.create(accountId, undefined),
    ]
    expect(one?.name).toMatch(/^context-[0-9a-f]{12}$/)
    expect(two?.name).not.toBe(one?.name)
  })

  test('a name is unique within its account and free again after deletion', async (test) => {
    const domain = await openDomain(test, { kind })
    const [mine, theirs] = [await newAccount(domain), await newAccount(domain)]
    const first = await domain.browserContexts.create(mine.accountId, 'shop')
    expect(await domain.browserContexts.create(theirs.accountId, 'shop')).toBeDefined()
    expect(await domain.browserContexts.create(mine.accountId, 'shop')).toBeUndefined()
    expect(await domain.browserContexts.delete(mine.accountId, first?.id ?? '')).toBe(true)
    expect(await domain.browserContexts.delete(mine.accountId, first?.id ?? '')).toBe(false)
    expect(await domain.browserContexts.create(mine.accountId, 'shop')).toBeDefined()
  })

  test('a context can be renamed to a free name but not to a taken one', async (test) => {
    const domain = await openDomain(test, { kind })
    const { accountId } = await newAccount(domain)
    const shop = await domain.browserContexts.create(accountId, 'shop')
    const bank = await domain.browserContexts.create(accountId, 'bank')
    if (!shop || !bank) throw new Error('The contexts were not created.')
    const rename = (name: string) => domain.browserContexts.rename(accountId, shop.id, name)
    expect(await rename('bank')).toBe('nameTaken')
    expect(await rename('shop')).toMatchObject({ id: shop.id, name: 'shop', createdAt: shop.createdAt })
    const renamed = await rename('market')
    expect(renamed).toMatchObject({ id: shop.id, name: 'market' })
    expect(await domain.browserContexts.get(accountId, shop.id)).toEqual(renamed)
    expect(await domain.browserContexts.create(accountId, 'shop')).toBeDefined()
    expect(await domain.browserContexts.rename(accountId, crypto.randomUUID(), 'x')).toBe('noSuchContext')
  })

  test('of concurrent renames to one name, one succeeds', async (test) => {
    const domain = await openDomain(test, { kind })
    const { accountId } = await newAccount(domain)
    const names = Array.from({ length: 10 }, (_, index) => `context ${index}`)
    const contexts = await Promise.all(names.map((name) => domain.browserContexts.create(accountId, name)))
    const renamed = await Promise.all(
      contexts.map((context) => domain.browserContexts.rename(accountId, context?.id ?? '', 'wanted')),
    )
    expect(renamed.filter((result) => result !== 'nameTaken')).toHaveLength(1)
  })

  test('pages list every context once, newest first', async (test) => {
    const domain = await openDomain(test, { kind })
    const [mine, theirs] = [await newAccount(domain), await newAccount(domain)]
    const createdIds: (string | undefined)[] = []
    for (let context = 0; context < 23; context += 1) {
      createdIds.push((await domain.browserContexts.create(mine.accountId, undefined))?.id)
      await domain.browserContexts.create(theirs.accountId, undefined)
    }
    const pages: string[][] = []
    let cursor: string | undefined
    do {
      const page = await domain.browserContexts.list(mine.accountId, { limit: 10, cursor })
      pages.push(page?.contexts.map(({ id }) => id) ?? [])
      cursor = page?.nextCursor ?? undefined
    } while (cursor !== undefined && pages.length < 10)
    expect(pages.map((page) => page.length)).toEqual([10, 10, 3])
    expect(pages.flat()).toEqual(createdIds.toReversed())
    const first = await domain.browserContexts.list(mine.accountId, { limit: 1 })
    const foreign = { limit: 1, cursor: first?.nextCursor ?? '' }
    expect(await domain.browserContexts.list(theirs.accountId, foreign)).toBeUndefined()
    expect(await domain.browserContexts.list(mine.accountId, { limit: 1, cursor: 'nonsense' })).toBeUndefined()
  })

  test('another account cannot read, rename or delete a context', async (test) => {
    const domain = await openDomain(test, { kind })
    const [mine, theirs] = [await newAccount(domain), await newAccount(domain)]
    const context = await domain.browserContexts.create(mine.accountId, 'shop')
    const id = context?.id ?? ''
    expect(await domain.browserContexts.get(theirs.accountId, id)).toBeUndefined()
    expect(await domain.browserContexts.rename(theirs.accountId, id, 'taken over')).toBe('noSuchContext')
    expect(await domain.browserContexts.delete(theirs.accountId, id)).toBe(false)
    expect(await domain.browserContexts.list(theirs.accountId, { limit: 10 })).toMatchObject({ contexts: [] })
    expect(await domain.browserContexts.get(mine.accountId, id)).toEqual(context)
  })

  test('a large context is invisible at once and erased in batches, by maintenance if the process dies', async (test) => {
    const { domain, put, queue, rows, read, context, versions, accountId, contextId } = await openWithVersions(test, {
      kind,
    })
    const { store, browserContexts } = domain
    const name = (await context())?.name ?? ''
    for (let index = 0; index < 3; index += 1) await put(createState('x'.repeat(1.5 * 1024 * 1024)))
    const run = await queue()
    const write = store.write
    const writes = vi.spyOn(store, 'write').mockImplementation((work) => {
      if (writes.mock.calls.length > 1) throw new StoreUnavailable('The process dies.')
      return write(work)
    })
    expect(await browserContexts.delete(accountId, contextId)).toBe(true)
    writes.mockRestore()
    expect(await rows()).toMatchObject([{ version: 1 }, { version: 2 }])
    expect([
      await context(),
      await read(),
      await put(createState('')),
      await versions.list(accountId, contextId),
    ]).toEqual(Array(4).fill(undefined))
    expect(await browserContexts.list(accountId, { limit: 10 })).toMatchObject({ contexts: [] })
    expect(await browserContexts.delete(accountId, contextId)).toBe(false)
    expect(await browserContexts.create(accountId, name)).toBeDefined()
    expect(await claimAll(domain.queue, domain)).toMatchObject([{ runId: run.id, contextLease: null }])
    const later = await openDomain(test, { kind, location: domain.location, now: () => Date.now() + 61_000 })
    await domain.maintenance.once()
    expect(await rows()).toHaveLength(2)
    // Scheduled again soon, because versions remain.
    expect(await later.maintenance.once()).toBeLessThan(1000)
    expect(await rows()).toHaveLength(1)
    await later.maintenance.once()
    expect(await rows()).toEqual([])
    expect(await store.read.all('SELECT name FROM browser_contexts', [])).toEqual([{ name }])
  })
})
