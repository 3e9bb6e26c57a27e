/** How much an account stores: measured by maintenance, and compared with its quota. */
import { describe, expect, test } from 'vitest'
import { Problem } from '../../../src/contract/problem.ts'
import { StorageUsage } from '../../../src/domain/accounts/storage-usage.ts'
import { deleteRun } from '../../../src/domain/run-api/run-erasure.ts'
import { type Store, StoreUnavailable } from '../../../src/storage/store.ts'
import { createState, openWithVersions } from '../../support/browser-contexts.ts'
import { claimOne, createManualClock, noRetry } from '../../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun, workflow } from '../../support/domain.ts'
import { stores } from '../../support/store-kinds.ts'

const kibibyte = 1024
const mebibyte = 1024 * kibibyte
const text = (bytes: number) => ({ text: 'x'.repeat(bytes) })

/** A call of `maintain` measures everything. */
const withoutPause = { measureMilliseconds: Number.POSITIVE_INFINITY }

/** What another process of the installation measures, which has stored nothing itself. */
async function measure({ store }: Pick<Domain, 'store'>, accountId: string): Promise<number> {
  const usage = new StorageUsage(store, 0, withoutPause)
  await usage.maintain()
  return usage.bytesOf(accountId)
}

/** Finishes the next run with an event, an artifact and an output. */
async function finishRun(domain: Domain) {
  const claim = await claimOne(domain)
  const artifact = { name: 'a.txt', mediaType: 'text/plain', content: new Uint8Array(300 * kibibyte) } as const
  await domain.queue.keepArtifact(claim, artifact, [{ at: 1, type: 'log', data: text(20 * kibibyte) }])
  await domain.queue.complete(claim, { kind: 'succeeded', output: text(100 * kibibyte) }, noRetry)
  return claim
}

describe.each(stores)('storage usage ($name)', (kind) => {
  test('is the sum of runs, events, artifacts and browser contexts, of each account', async (test) => {
    const { domain, principal, accountId, put } = await openWithVersions(test, { kind })
    const other = await newAccount(domain)
    await queueRun(domain, other.principal, { variables: text(500 * kibibyte) })
    const empty = await measure(domain, accountId)
    await queueRun(domain, principal, { variables: text(200 * kibibyte), priority: 1 })
    await finishRun(domain)
    await put(createState('x'.repeat(400 * kibibyte)))
    const bytes = (await measure(domain, accountId)) - empty
    // The state contains its value twice.
    expect(bytes / kibibyte).toBeGreaterThan(200 + 20 + 300 + 100 + 800)
    expect(bytes / kibibyte).toBeLessThan(200 + 20 + 300 + 100 + 800 + 10)
    expect((await measure(domain, other.accountId)) / kibibyte).toBeCloseTo(502, -1)
  })

  test('counts answers to waits, also before the run has reached them', async (test) => {
    const waits = { note: { schema: { type: 'string' }, title: null, description: null } }
    const domain = await openDomain(test, { kind, workflows: [workflow({ waits })] })
    const { principal, accountId } = await newAccount(domain)
    const run = await queueRun(domain, principal)
    const before = await measure(domain, accountId)
    await domain.waits.answer(accountId, run.id, 'note', 'x'.repeat(200 * kibibyte), { link: 'test', address: null })
    expect(((await measure(domain, accountId)) - before) / kibibyte).toBeCloseTo(200, -1)
  })

  test('falls when data is deleted, purged or replaced by newer versions', async (test) => {
    const { domain, principal, accountId, contextId, put } = await openWithVersions(test, { kind, versionsKept: 1 })
    const before = await measure(domain, accountId)
    const run = await queueRun(domain, principal, { variables: text(100 * kibibyte), priority: 1 })
    await finishRun(domain)
    for (let version = 0; version < 3; version++) await put(createState('x'.repeat(100 * kibibyte)))
    expect((await measure(domain, accountId)) / kibibyte).toBeLessThan(100 + 20 + 300 + 100 + 200 + 20)
    expect(await deleteRun(domain.store, accountId, run.id, principal)).toBe('deleted')
    await domain.browserContexts.delete(accountId, contextId)
    expect(await measure(domain, accountId)).toBeLessThan(before)
  })

  test('is measured by the next call after the store was unavailable', async (test) => {
    const { domain, accountId, put } = await openWithVersions(test, { kind })
    await put(createState('x'.repeat(kibibyte)))
    let isAvailable = false
    const write: Store['write'] = (work, options) =>
      isAvailable ? domain.store.write(work, options) : Promise.reject(new StoreUnavailable())
    const usage = new StorageUsage({ ...domain.store, write }, 0, withoutPause)
    await expect(usage.maintain()).rejects.toThrow(StoreUnavailable)
    isAvailable = true
    await usage.maintain()
    expect(usage.bytesOf(accountId)).toBeGreaterThan(0)
    expect(await measure(domain, accountId)).toBe(usage.bytesOf(accountId))
  })

  test('is limited by the quota, in every process and until data is deleted', async (test) => {
    const clock = createManualClock()
    const options = { kind, storageQuotaMegabytes: 2, now: clock.now }
    const domain = await openDomain(test, options)
    const other = await openDomain(test, { ...options, location: domain.location })
    const { accountId, principal } = await newAccount(domain)
    const neighbour = await newAccount(domain)
    const queue = (to = domain, who = principal) => queueRun(to, who, { variables: text(mebibyte) })
    const [first] = [await queue(), await queue()]
    await expect(queue()).rejects.toThrow('This account has reached its storage quota of 2 MB.')
    await expect(domain.browserContexts.create(accountId, 'shop')).rejects.toThrow(Problem)
    await queue(domain, neighbour.principal)
    await domain.maintenance.once()
    await other.maintenance.once()
    await expect(queue(other)).rejects.toThrow(Problem)
    await domain.runs.cancel(accountId, first.id)
    await deleteRun(domain.store, accountId, first.id, principal)
    // The first measurement may not have what was stored during it, so each process adds that once more.
    for (let measurement = 0; measurement < 2; measurement++) {
      clock.advance(10)
      await domain.maintenance.once()
      await other.maintenance.once()
    }
    await queue()
    await queue(other)
  })

  test('is measured while other processes measure, each run once', async (test) => {
    const domain = await openDomain(test, { kind })
    const { accountId, principal } = await newAccount(domain)
    for (let run = 0; run < 20; run++) await queueRun(domain, principal)
    const alone = await measure(domain, accountId)
    const usages = Array.from({ length: 4 }, () => new StorageUsage(domain.store, 0, withoutPause))
    await Promise.all(usages.map((usage) => usage.maintain()))
    expect(await measure(domain, accountId)).toBe(alone)
  })
})
