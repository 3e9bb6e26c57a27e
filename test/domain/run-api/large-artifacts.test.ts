/** Artifacts above 1 MiB, whose contents are blobs: where they are, and when they are deleted. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { deleteAccount } from '../../../src/domain/accounts/account-deletion.ts'
import { exportAccount } from '../../../src/domain/accounts/account-export.ts'
import { operator } from '../../../src/domain/audit-log/audit-log.ts'
import { ArtifactError, artifactBytesMax, artifactsMax } from '../../../src/domain/runs/artifact.ts'
import type { BlobStore } from '../../../src/storage/blobs/blob-store.ts'
import { inlineBytesMax } from '../../../src/storage/blobs/contents.ts'
import { StoreUnavailable, statement } from '../../../src/storage/store.ts'
import { type BlobStoreKind, blobStores } from '../../support/blob-stores.ts'
import { claimOne, createManualClock, noRetry } from '../../support/claims.ts'
import {
  type Domain,
  newAccount,
  newDirectory,
  openDomain,
  queueRun,
  retention,
  type Test,
} from '../../support/domain.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const findRows = statement<{ name: string; bytes: number; blob: string | null }, []>(
  'SELECT name, octet_length(content) AS bytes, blob FROM artifacts ORDER BY name',
)

async function openRunning(test: Test, kind: StoreKind, blobKind: BlobStoreKind) {
  const clock = createManualClock()
  const { blobs, keys } = await blobKind.open(test)
  const domain = await openDomain(test, { kind, now: clock.now, blobs })
  const { accountId, principal } = await newAccount(domain)
  const { id: runId } = await queueRun(domain, principal)
  const claim = await claimOne(domain)
  const keep = (name: string, content: Uint8Array, lease = claim) =>
    domain.queue.keepArtifact(lease, { name, mediaType: 'text/plain', content }, [])
  const read = async (name: string) => (await domain.artifacts.read(accountId, runId, name))?.content
  const rows = () => domain.store.read.all(findRows, [])
  return { clock, domain, keys, accountId, principal, runId, claim, keep, read, rows }
}

/** The deletion of blobs goes on when `once` has ended. */
async function maintain({ maintenance }: Pick<Domain, 'maintenance'>): Promise<void> {
  await maintenance.once()
  await maintenance.idle()
}

const large = (character: string, bytes = inlineBytesMax + 1) => Buffer.alloc(bytes, character)

const combinations = stores.flatMap((kind) => blobStores.map((blobKind) => ({ kind, blobKind })))

describe.each(combinations)('large artifacts ($kind.name, $blobKind.name)', ({ kind, blobKind }) => {
  test('are blobs, and smaller ones are in their rows', async (test) => {
    const { domain, accountId, runId, keep, read, rows, keys } = await openRunning(test, kind, blobKind)
    await keep('a.txt', large('a'))
    await keep('b.txt', large('b', inlineBytesMax))
    const [key] = await keys()
    expect(await keys()).toHaveLength(1)
    expect(await rows()).toEqual([
      { name: 'a.txt', bytes: 0, blob: key },
      { name: 'b.txt', bytes: inlineBytesMax, blob: null },
    ])
    expect(large('a').equals((await read('a.txt')) ?? Buffer.of())).toBe(true)
    const range = { first: 10, last: inlineBytesMax }
    const part = await (await domain.artifacts.find(accountId, runId, 'a.txt', () => range))?.read()
    expect(part?.content.length).toBe(inlineBytesMax - 9)
    expect(part?.sizeBytes).toBe(inlineBytesMax + 1)
  })

  test('are deleted by maintenance after they were replaced, and with their run', async (test) => {
    const { domain, accountId, runId, claim, keep, read, keys } = await openRunning(test, kind, blobKind)
    await keep('a.txt', large('a'))
    const before = await keys()
    await keep('a.txt', large('b'))
    await maintain(domain)
    const [key, ...others] = await keys()
    expect([others, before.includes(key ?? '')]).toEqual([[], false])
    expect(large('b').equals((await read('a.txt')) ?? Buffer.of())).toBe(true)
    await keep('a.txt', Buffer.from('small'))
    await maintain(domain)
    expect(await keys()).toEqual([])
    await keep('b.txt', large('c'))
    await domain.queue.complete(claim, { kind: 'succeeded', output: null }, noRetry)
    expect(await domain.runs.delete(accountId, runId, operator)).toBe('deleted')
    await maintain(domain)
    expect(await keys()).toEqual([])
  })

  test('are deleted when their retention ends', async (test) => {
    const { domain, clock, keep, keys, rows } = await openRunning(test, kind, blobKind)
    await keep('a.txt', large('a'))
    clock.advance(retention.artifacts * 24 * 60 * 60 + 1)
    await maintain(domain)
    await maintain(domain)
    expect(await rows()).toEqual([])
    expect(await keys()).toEqual([])
  })

  test('that were refused leave no blob', async (test) => {
    const { claim, keep, keys, rows } = await openRunning(test, kind, blobKind)
    await expect(keep('a.txt', large('a', artifactBytesMax + 1))).rejects.toThrow(ArtifactError)
    expect(await keep('a.txt', large('a'), { ...claim, attempt: 7 })).toBe(false)
    expect(await keys()).toEqual([])
    for (let index = 0; index < artifactsMax; index++) await keep(`${index}.txt`, Buffer.from('small'))
    await expect(keep('a.txt', large('a'))).rejects.toThrow(ArtifactError)
    expect(await keys()).toEqual([])
    expect(await rows()).toHaveLength(artifactsMax)
  })

  test('of evidence that gives way to a file of the workflow are deleted, too', async (test) => {
    const { domain, claim, keep, read, keys } = await openRunning(test, kind, blobKind)
    await keep('a.zip', large('a'))
    const [key] = await keys()
    const evidence = { name: 'a.zip', kind: 'evidence', mediaType: 'application/zip', content: large('b') } as const
    await domain.queue.keepArtifact(claim, evidence, [])
    await maintain(domain)
    expect(await keys()).toEqual([key])
    expect((await read('a.zip'))?.at(0)).toBe('a'.charCodeAt(0))
  })

  test('are exported and deleted with their account', async (test) => {
    const { domain, accountId, runId, claim, keep, keys } = await openRunning(test, kind, blobKind)
    await keep('a.txt', large('a'))
    await domain.queue.complete(claim, { kind: 'succeeded', output: null }, noRetry)
    const directory = await newDirectory(test)
    const { store, contents } = domain
    const none = { columns: [], encryption: undefined, readFiles: async () => undefined, now: 0 }
    expect(await exportAccount(store, accountId, directory, { ...none, contents })).toMatchObject({ files: 1 })
    expect(large('a').equals(await readFile(join(directory, 'artifacts', runId, 'a.txt')))).toBe(true)
    const account = await domain.accounts.get(accountId)
    if (!account) throw new Error('There is no account.')
    const receipt = await deleteAccount(store, account, contents)
    expect(receipt).toMatchObject({ deleted: { artifacts: 1 }, left: 0 })
    expect(await keys()).toEqual([])
  })
})

const findUnused = statement<{ key: string }, []>('SELECT key FROM unused_blobs')

/** A directory whose calls fail or take long as the test says. */
function disturbed(test: Test, change: (blobs: BlobStore) => Partial<BlobStore>): BlobStoreKind {
  const [directory] = blobStores
  if (!directory) throw new Error('There is no directory.')
  const open = async () => {
    const opened = await directory.open(test)
    const { place, put, read, delete: remove } = opened.blobs
    const bound = {
      place,
      put: put.bind(opened.blobs),
      read: read.bind(opened.blobs),
      delete: remove.bind(opened.blobs),
    }
    return { ...opened, blobs: { ...bound, ...change(opened.blobs) } }
  }
  return { name: 'disturbed', open }
}

const unavailable = () => Promise.reject(new StoreUnavailable('The place of blobs is down.'))

describe.each(stores)('while the place of blobs is down ($name)', (kind) => {
  test('an attempt that has lost its lease stops to upload, and repeated uploads have one key', async (test) => {
    const down = disturbed(test, () => ({ put: unavailable }))
    const { domain, claim, rows } = await openRunning(test, kind, down)
    const artifact = { name: 'a.txt', mediaType: 'text/plain', content: large('a') } as const
    const keep = () => domain.queue.keepArtifact(claim, artifact, [])
    await expect(keep()).rejects.toThrow(StoreUnavailable)
    await expect(keep()).rejects.toThrow(StoreUnavailable)
    expect(await domain.store.read.all(findUnused, [])).toHaveLength(1)
    await domain.queue.complete(claim, { kind: 'succeeded', output: null }, noRetry)
    expect(await keep()).toBe(false)
    expect(await rows()).toEqual([])
  })

  test('an upload during which the lease is lost is deleted after an hour', async (test) => {
    let end = async () => {}
    const slow = disturbed(test, (blobs) => ({ put: (...blob) => blobs.put(...blob).then(() => end()) }))
    const { domain, clock, claim, keep, keys } = await openRunning(test, kind, slow)
    end = async () => void (await domain.queue.complete(claim, { kind: 'succeeded', output: null }, noRetry))
    expect(await keep('a.txt', large('a'))).toBe(false)
    await maintain(domain)
    expect(await keys()).toHaveLength(1)
    clock.advance(60 * 60)
    await maintain(domain)
    expect(await keys()).toEqual([])
  })

  test('maintenance does not wait for it, nor does its end', async (test) => {
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    const slow = disturbed(test, (blobs) => ({ delete: (key) => released.then(() => blobs.delete(key)) }))
    const { domain, keep, keys } = await openRunning(test, kind, slow)
    await keep('a.txt', large('a'))
    await keep('a.txt', Buffer.from('small'))
    await domain.maintenance.once()
    await domain.maintenance.once()
    await domain.maintenance.stop()
    expect(await keys()).toHaveLength(1)
    release()
    await domain.maintenance.idle()
    expect(await keys()).toEqual([])
  })

  test('a blob that cannot be deleted keeps no other one', async (test) => {
    const failing = new Set<string>()
    const change = (blobs: BlobStore) => ({
      delete: (key: string) => (failing.has(key) ? unavailable() : blobs.delete(key)),
    })
    const { domain, clock, keep, keys } = await openRunning(test, kind, disturbed(test, change))
    await keep('a.txt', large('a'))
    const [first = ''] = await keys()
    failing.add(first)
    await keep('a.txt', large('b'))
    await keep('a.txt', Buffer.from('small'))
    await maintain(domain)
    expect(await keys()).toEqual([first])
    failing.clear()
    clock.advance(60 * 60)
    await maintain(domain)
    expect(await keys()).toEqual([])
  })

  test('an account is deleted, with a receipt', async (test) => {
    const broken = disturbed(test, () => ({ delete: () => Promise.reject(new Error('It is broken.')) }))
    const { domain, accountId, claim, keep } = await openRunning(test, kind, broken)
    await keep('a.txt', large('a'))
    await domain.queue.complete(claim, { kind: 'succeeded', output: null }, noRetry)
    const account = await domain.accounts.get(accountId)
    if (!account) throw new Error('There is no account.')
    const receipt = await deleteAccount(domain.store, account, domain.contents)
    expect(receipt).toMatchObject({ deleted: { artifacts: 1 }, left: 0 })
    expect(await domain.store.read.all(findUnused, [])).toHaveLength(1)
  })
})
