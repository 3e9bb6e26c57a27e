/** The findings of `doctor` about where artifacts above 1 MiB are. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkArtifacts } from '../../src/commands/doctor/artifacts.ts'
import { readConfig } from '../../src/config/config.ts'
import { blobStores, bucketCredentials } from '../support/blob-stores.ts'
import { newDirectory } from '../support/domain.ts'

const database = { DATABASE_URL: 'postgres://127.0.0.1/any' }

test('a directory is right for one machine, and must be shared by several', async (test) => {
  const directory = await newDirectory(test)
  const embedded = await checkArtifacts(readConfig({ DATA_DIR: directory }))
  expect(embedded).toEqual({
    status: 'ok',
    detail: `artifacts above 1 MiB are in ${join(directory, 'blobs')}`,
    advice: null,
  })
  const shared = await checkArtifacts(readConfig({ ...database, ARTIFACTS_URL: `file://${directory}` }))
  expect(shared).toMatchObject({
    status: 'warn',
    advice: 'If processes run on several machines, all of them must mount this directory.',
  })
})

test('artifacts in a database are a warning', async () => {
  const found = await checkArtifacts(readConfig(database))
  expect(found).toMatchObject({
    status: 'warn',
    detail: 'artifacts above 1 MiB are in the database, which grows with them',
  })
})

test('a bucket is written, read and emptied again', async (test) => {
  const [, bucket] = blobStores
  const opened = await bucket?.open(test)
  if (opened?.location.kind !== 'bucket') throw new Error('It is no bucket.')
  const { origin } = new URL(opened.location.url)
  const { accessKeyId, secretAccessKey } = bucketCredentials
  const settings = {
    ARTIFACTS_URL: `s3://blobs/doctor?endpoint=${origin}`,
    ARTIFACTS_ACCESS_KEY_ID: accessKeyId,
    ARTIFACTS_SECRET_ACCESS_KEY: secretAccessKey,
  }
  expect(await checkArtifacts(readConfig(settings))).toMatchObject({
    status: 'ok',
    detail: `artifacts above 1 MiB are in ${origin}/blobs/doctor`,
  })
  expect(await opened.keys()).toEqual([])
  const wrong = await checkArtifacts(readConfig({ ...settings, ARTIFACTS_SECRET_ACCESS_KEY: 'wrong' }))
  expect(wrong.status).toBe('fail')
  expect(wrong.detail).toMatch(/cannot be used \(PUT in .* failed with 403 \(SignatureDoesNotMatch\)\)$/)
  expect(JSON.stringify(wrong)).not.toContain('wrong')
})

test('a directory that cannot be used is a failure', async (test) => {
  const file = join(await newDirectory(test), 'file')
  await writeFile(file, '')
  const found = await checkArtifacts(readConfig({ ARTIFACTS_URL: `file://${file}` }))
  expect(found).toMatchObject({ status: 'fail' })
})
