/** Checks where artifacts above 1 MiB are: the directory or the bucket of ARTIFACTS_URL, or the database. */
import { existsSync } from 'node:fs'
import { access, constants, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { v7 as uuid } from 'uuid'
import type { Config } from '../../config/config.ts'
import { blobLocation, openBlobs } from '../../domain/installation.ts'
import type { BlobStore } from '../../storage/blobs/blob-store.ts'
import { type Finding, fail, ok, shortMessage, warn } from './finding.ts'

export async function checkArtifacts(config: Config): Promise<Finding> {
  const location = blobLocation(config)
  if (!location) {
    return warn(
      'artifacts above 1 MiB are in the database, which grows with them',
      'Set ARTIFACTS_URL to a bucket, or to a directory that all machines mount.',
    )
  }
  if (location.kind === 'bucket') return checkBucket(await openBlobs(config))
  const { path } = location
  const found = `artifacts above 1 MiB are in ${path}`
  if (existsSync(path)) {
    const problem = await findProblem(path)
    if (problem)
      return fail(
        `${found}, which cannot be used (${problem})`,
        'Set ARTIFACTS_URL to a writable directory, or a bucket.',
      )
  }
  if (config.DATABASE_URL === undefined) return ok(found)
  return warn(found, 'If processes run on several machines, all of them must mount this directory.')
}

async function findProblem(path: string): Promise<string | undefined> {
  try {
    await access(join(path, '.'), constants.R_OK | constants.W_OK | constants.X_OK)
    return (await stat(path)).isDirectory() ? undefined : 'it is no directory'
  } catch (error) {
    return shortMessage(error)
  }
}

/** Writes, reads and deletes a small blob. */
async function checkBucket(blobs: BlobStore | undefined): Promise<Finding> {
  if (!blobs) throw new Error('There is no bucket.')
  const key = uuid()
  try {
    await blobs.put(key, Buffer.from(key))
    const read = await blobs.read(key, { first: 0, last: key.length - 1 })
    if (!read || Buffer.from(read).toString() !== key) throw new Error('it does not return what was stored')
    await blobs.delete(key)
    return ok(`artifacts above 1 MiB are in ${blobs.place}`)
  } catch (error) {
    return fail(
      `the bucket of ARTIFACTS_URL cannot be used (${shortMessage(error)})`,
      'Set ARTIFACTS_URL, ARTIFACTS_ACCESS_KEY_ID and ARTIFACTS_SECRET_ACCESS_KEY to a bucket and a key that may read, write and delete.',
    )
  }
}
