/** The stores of blobs that tests run on: a directory, and a bucket of an S3-compatible server. */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'vitest'
import { type BlobLocation, type BlobStore, openBlobStore } from '../../src/storage/blobs/blob-store.ts'

type Test = Pick<TestContext, 'onTestFinished'>

/** The package has no types. */
type S3Server = new (options: {
  address: string
  port: number
  silent: boolean
  directory: string
  configureBuckets: { name: string }[]
}) => { run(): Promise<AddressInfo>; close(): Promise<void> }

/** Of the server's only user. It checks signatures. */
export const bucketCredentials = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' }

interface TestBlobs {
  blobs: BlobStore
  location: BlobLocation
  /** The keys of all blobs. */
  keys(): Promise<string[]>
}

export interface BlobStoreKind {
  name: string
  open(test: Test): Promise<TestBlobs>
}

async function newDirectory(test: Test): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'execution-service-'))
  test.onTestFinished(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }))
  return directory
}

const key = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/

async function keysIn(directory: string): Promise<string[]> {
  const files = await readdir(directory, { recursive: true, withFileTypes: true })
  return [...new Set(files.flatMap((file) => (file.isFile() && key.exec(file.name)?.[0]) || []))].sort()
}

const directory: BlobStoreKind = {
  name: 'directory',
  async open(test) {
    const path = await newDirectory(test)
    const location = { kind: 'directory', path } as const
    return { blobs: await openBlobStore(location, undefined), location, keys: () => keysIn(path) }
  },
}

const bucket: BlobStoreKind = {
  name: 'bucket',
  async open(test) {
    const path = await newDirectory(test)
    const S3rver = createRequire(import.meta.url)('@20minutes/s3rver') as S3Server
    const listening = { address: '127.0.0.1', port: 0, silent: true }
    const server = new S3rver({ ...listening, directory: path, configureBuckets: [{ name: 'blobs' }] })
    const { port } = await server.run()
    test.onTestFinished(() => server.close())
    const url = `http://127.0.0.1:${port}/blobs/of/tests`
    const location = { kind: 'bucket', url, region: 'us-east-1' } as const
    return { blobs: await openBlobStore(location, bucketCredentials), location, keys: () => keysIn(path) }
  },
}

export const blobStores: readonly BlobStoreKind[] = [directory, bucket]
