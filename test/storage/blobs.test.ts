/** Blobs in a directory, and in a bucket of an S3-compatible server. */
import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { v7 as uuid } from 'uuid'
import { describe, expect, test } from 'vitest'
import { type BlobLocation, openBlobStore } from '../../src/storage/blobs/blob-store.ts'
import { StoreUnavailable } from '../../src/storage/store.ts'
import { blobStores, bucketCredentials } from '../support/blob-stores.ts'

const megabytes = Buffer.alloc(3 * 1024 * 1024, 'abcdefghijk')

describe.each(blobStores)('blobs in a $name', ({ open }) => {
  test('are read whole and by ranges, until they are deleted', async (test) => {
    const { blobs, keys } = await open(test)
    const [key, other] = [uuid(), uuid()]
    await blobs.put(key, megabytes)
    await blobs.put(other, Buffer.from('other'))
    expect(await keys()).toEqual([key, other].sort())
    const all = await blobs.read(key, { first: 0, last: megabytes.length - 1 })
    expect(megabytes.equals(all ?? Buffer.of())).toBe(true)
    const part = await blobs.read(key, { first: 1_000_000, last: 1_000_004 })
    expect(Buffer.from(part ?? []).toString()).toBe(megabytes.toString('latin1', 1_000_000, 1_000_005))
    await blobs.delete(key)
    await blobs.delete(key)
    expect(await blobs.read(key, { first: 0, last: 1 })).toBeUndefined()
    expect(await keys()).toEqual([other])
  })

  test('are read by any number of readers at once', async (test) => {
    const { blobs } = await open(test)
    const keys = Array.from({ length: 20 }, () => uuid())
    await Promise.all(keys.map((key) => blobs.put(key, Buffer.from(key))))
    const read = await Promise.all(keys.map((key) => blobs.read(key, { first: 0, last: key.length - 1 })))
    expect(read.map((each) => Buffer.from(each ?? []).toString())).toEqual(keys)
  })
})

test('files of blobs are private, and a failed write leaves nothing', async ({ onTestFinished }) => {
  const directory = await mkdtemp(join(tmpdir(), 'execution-service-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const path = join(directory, 'blobs')
  const blobs = await openBlobStore({ kind: 'directory', path }, undefined)
  const key = uuid()
  await blobs.put(key, megabytes)
  const [file = ''] = (await readdir(path, { recursive: true })).filter((name) => name.endsWith(key))
  expect((await stat(join(path, file))).mode & 0o777).toBe(0o600)
  expect((await stat(path)).mode & 0o777).toBe(0o700)
  // A file is where the next blob's directory would be.
  const next = `${uuid().slice(0, -2)}zz`
  await writeFile(join(path, 'zz'), '')
  await expect(blobs.put(next, megabytes)).rejects.toThrow(StoreUnavailable)
  const files = (await readdir(path, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
  expect(files.map(({ name }) => name).sort()).toEqual([key, 'zz'].sort())
})

test('a file that a killed process has left is replaced, and deleted with its blob', async ({ onTestFinished }) => {
  const path = await mkdtemp(join(tmpdir(), 'execution-service-'))
  onTestFinished(() => rm(path, { recursive: true }))
  const blobs = await openBlobStore({ kind: 'directory', path }, undefined)
  const [key, other] = [uuid(), uuid()]
  const files = async () => (await readdir(path, { recursive: true, withFileTypes: true })).filter((it) => it.isFile())
  for (const each of [key, other]) {
    await mkdir(join(path, each.slice(-2)), { recursive: true })
    await writeFile(join(path, each.slice(-2), `${each}.partial`), 'a part that is longer')
  }
  await blobs.put(key, Buffer.from('whole'))
  expect(Buffer.from((await blobs.read(key, { first: 0, last: 4 })) ?? []).toString()).toBe('whole')
  await blobs.delete(other)
  expect((await files()).map(({ name }) => name)).toEqual([key])
})

const [, bucket] = blobStores

test('a server that cannot be reached is an error that may pass', async () => {
  const location: BlobLocation = { kind: 'bucket', url: 'http://127.0.0.1:9/blobs', region: 'us-east-1' }
  const blobs = await openBlobStore(location, bucketCredentials)
  await expect(blobs.put(uuid(), Buffer.of(1))).rejects.toThrow(StoreUnavailable)
})

test('a wrong key and a missing bucket are errors that name the cause', async (test) => {
  const { location } = (await bucket?.open(test)) ?? {}
  if (location?.kind !== 'bucket') throw new Error('It is no bucket.')
  const content = Buffer.of(1)
  const warnings: string[] = []
  const warn = ({ message }: Error) => void warnings.push(message)
  const wrongKey = await openBlobStore(location, { ...bucketCredentials, secretAccessKey: 'wrong' }, warn)
  await expect(wrongKey.put(uuid(), content)).rejects.toThrow(StoreUnavailable)
  await expect(wrongKey.put(uuid(), content)).rejects.toThrow(/failed with 403 \(SignatureDoesNotMatch\)\.$/)
  const missing = { ...location, url: location.url.replace('/blobs/', '/missing/') }
  const inMissing = await openBlobStore(missing, bucketCredentials)
  await expect(inMissing.put(uuid(), content)).rejects.toThrow(/failed with 404 \(NoSuchBucket\)\.$/)
  await expect(inMissing.read(uuid(), { first: 0, last: 0 })).rejects.toThrow(/NoSuchBucket/)
  await expect(inMissing.read(uuid(), { first: 0, last: 0 })).rejects.toThrow(StoreUnavailable)
  expect(warnings).toEqual([expect.stringMatching(/failed with 403/)])
})
