/** Files expire unless a run or a schedule refers to them, and interrupted uploads leave nothing. */
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { operator } from '../../../src/domain/audit-log/audit-log.ts'
import { partBytes } from '../../../src/domain/files/files.ts'
import { type BlobStoreKind, blobStores } from '../../support/blob-stores.ts'
import { claimOne, createManualClock, noRetry } from '../../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun, type Test } from '../../support/domain.ts'
import { workflow } from '../../support/snapshots.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const daySeconds = 24 * 60 * 60
const takesFile = workflow({
  id: 'read',
  variables: { type: 'object', properties: { file: { type: 'string', format: 'file' } } },
})

async function openFiles(test: Test, kind: StoreKind) {
  const clock = createManualClock()
  const { blobs, keys } = await (blobStores[0] as BlobStoreKind).open(test)
  const domain = await openDomain(test, { kind, now: clock.now, workflows: [takesFile], blobs })
  const { accountId, principal } = await newAccount(domain)
  const upload = async (content: Iterable<Uint8Array> | AsyncIterable<Uint8Array> = [randomBytes(100)], name = 'a') => {
    const chunks = (async function* () {
      yield* content
    })()
    return domain.files.create(accountId, { name, mediaType: 'text/plain', content: chunks }, operator)
  }
  const exists = async (id: string) => (await domain.files.get(accountId, id)) !== undefined
  const queueWith = (file: string) => queueRun(domain, principal, { workflowId: 'read', variables: { file } })
  return { clock, keys, domain, accountId, upload, exists, queueWith }
}

/** Purges until nothing has expired. */
async function purgeAll({ maintenance }: Domain): Promise<void> {
  while ((await maintenance.once()) < 1000);
  await maintenance.idle()
}

const countOf = async ({ store }: Domain, table: string) =>
  (await store.read.all(`SELECT 1 AS one FROM ${table}`, [])).length

describe.each(stores)('files ($name)', (kind) => {
  test('a file of several parts is read as it was written, in any range', async (test) => {
    const { domain, keys, upload } = await openFiles(test, kind)
    const content = randomBytes(2 * partBytes + 1_500_000)
    const chunks = [content.subarray(0, 10), content.subarray(10, partBytes + 1), content.subarray(partBytes + 1)]
    const file = await upload(chunks)
    expect([file.sizeBytes, (await keys()).length]).toEqual([content.length, 3])
    const read = async (first: number, last: number) => {
      const { bytes, chunks: parts } = domain.files.stream(file, { first, last })
      const content = await buffer(parts)
      expect(content.length).toBe(bytes)
      return content
    }
    for (const [first, last] of [
      [0, content.length - 1],
      [partBytes - 1, partBytes],
      [partBytes, 2 * partBytes - 1],
      [content.length - 1, content.length - 1],
    ] as const)
      expect((await read(first, last)).equals(content.subarray(first, last + 1))).toBe(true)
  })

  test('a file expires after its last use, and its blobs go with it', async (test) => {
    const { clock, domain, keys, upload, exists } = await openFiles(test, kind)
    const { id } = await upload([randomBytes(2_000_000)])
    clock.advance(7 * daySeconds - 1)
    await purgeAll(domain)
    expect(await exists(id)).toBe(true)
    clock.advance(1)
    expect(await exists(id)).toBe(false)
    await purgeAll(domain)
    expect([await countOf(domain, 'files'), await countOf(domain, 'file_parts'), await keys()]).toEqual([0, 0, []])
  })

  test('a file stays while a run refers to it, until the run is purged', async (test) => {
    const { clock, domain, upload, exists, queueWith } = await openFiles(test, kind)
    const { id } = await upload()
    clock.advance(6 * daySeconds)
    await queueWith(id)
    clock.advance(30 * daySeconds)
    await purgeAll(domain)
    expect(await exists(id)).toBe(true)
    await domain.queue.complete(await claimOne(domain), { kind: 'succeeded', output: null }, noRetry)
    clock.advance(89 * daySeconds)
    await purgeAll(domain)
    expect(await exists(id)).toBe(true)
    await queueWith(id)
    const again = await claimOne(domain)
    await domain.queue.complete(again, { kind: 'succeeded', output: null }, noRetry)
    clock.advance(92 * daySeconds)
    await purgeAll(domain)
    clock.advance(daySeconds)
    await purgeAll(domain)
    expect([await exists(id), await countOf(domain, 'files'), await countOf(domain, 'run_files')]).toEqual([
      false,
      0,
      0,
    ])
  })

  test('an upload that fails leaves nothing, and one whose process is killed is purged', async (test) => {
    const { clock, domain, keys, upload } = await openFiles(test, kind)
    const failing = async function* () {
      yield randomBytes(partBytes + 10)
      throw new Error('gone')
    }
    await expect(upload(failing())).rejects.toThrow('gone')
    expect([await countOf(domain, 'files'), await countOf(domain, 'file_parts')]).toEqual([0, 0])
    let isStored = () => {}
    const stored = new Promise<void>((resolve) => {
      isStored = resolve
    })
    const endless = async function* () {
      yield randomBytes(partBytes + 10)
      isStored()
      await new Promise(() => {})
    }
    void upload(endless())
    await stored
    expect(await countOf(domain, 'file_parts')).toBe(1)
    clock.advance(60 * 60)
    await purgeAll(domain)
    expect([await countOf(domain, 'files'), await keys()]).toEqual([0, []])
  })

  test('a file is that of one account, with its name, for the runs and schedules that refer to it', async (test) => {
    const { domain, accountId, upload, exists, queueWith } = await openFiles(test, kind)
    const stranger = await newAccount(domain)
    const content = randomBytes(100)
    const { id } = await upload([content])
    const uploadOf = (of: string, name: string) =>
      domain.files.create(of, { name, mediaType: 'text/plain', content: Readable.from([content]) }, operator)
    expect((await uploadOf(accountId, 'a')).id).toBe(id)
    const ids = [id, (await uploadOf(accountId, 'b')).id, (await uploadOf(stranger.accountId, 'a')).id]
    expect(new Set(ids).size).toBe(3)
    expect(await domain.files.get(stranger.accountId, id)).toBeUndefined()
    expect(await domain.files.delete(stranger.accountId, id, operator)).toBeUndefined()
    const others = { workflowId: 'read', variables: { file: id } }
    await expect(queueRun(domain, stranger.principal, others)).rejects.toThrow('names no file of this account')
    const [run, other] = [await queueWith(id), await queueWith(ids[1] ?? '')]
    expect((await domain.files.ofRun(run.id)).map((each) => each.id)).toEqual([id])
    expect(await domain.files.getOfRun(other.id, id)).toBeUndefined()
    expect(await domain.files.delete(accountId, id, operator)).toBe('inUse')
    await domain.runs.cancel(accountId, run.id, {})
    for (const file of ids.slice(0, 2)) {
      const given = { workflowId: 'read', variables: { file }, cron: '* * * * *' }
      expect(await domain.schedules.create(accountId, given, operator)).toMatchObject({ kind: 'created' })
    }
    expect(await domain.files.delete(accountId, id, operator)).toBe('inUse')
    expect(await exists(id)).toBe(true)
  })

  test('an upload of unknown size ends at the quota of its account', async (test) => {
    const domain = await openDomain(test, { kind, storageQuotaMegabytes: 1 })
    const { accountId } = await newAccount(domain)
    const content = Readable.from([randomBytes(2_000_000)])
    const file = { name: 'a', mediaType: 'text/plain', content }
    await expect(domain.files.create(accountId, file, operator)).rejects.toThrow('quota')
    expect([await countOf(domain, 'files'), await countOf(domain, 'file_parts')]).toEqual([0, 0])
  })

  test('files count towards the storage of their account until they are deleted', async (test) => {
    const { domain, accountId, upload } = await openFiles(test, kind)
    const { id } = await upload([randomBytes(3_000_000)])
    expect(domain.usage.bytesOf(accountId)).toBeGreaterThanOrEqual(3_000_000)
    await domain.usage.maintain()
    expect(domain.usage.bytesOf(accountId)).toBeGreaterThanOrEqual(3_000_000)
    expect(await domain.files.delete(accountId, id, operator)).toBe('deleted')
    expect(await countOf(domain, 'files')).toBe(0)
  })
})
