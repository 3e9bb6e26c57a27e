/** A service whose bucket does not answer: requests for large artifacts wait, and no other ones. */
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { inlineBytesMax } from '../../../src/storage/blobs/contents.ts'
import { claimedAttempt, send } from '../../operations/requests.ts'
import { blobStores, bucketCredentials } from '../../support/blob-stores.ts'
import type { Test } from '../../support/domain.ts'
import { startTestService, until } from '../../support/service.ts'

/** A bucket behind a proxy that keeps requests while `isStuck`. */
async function openBucket(test: Test) {
  const [, bucket] = blobStores
  const { location } = (await bucket?.open(test)) ?? {}
  if (location?.kind !== 'bucket') throw new Error('It is no bucket.')
  const { port } = new URL(location.url)
  const kept: (() => void)[] = []
  const proxy = { url: '', isStuck: false, kept, release: () => kept.splice(0).forEach((pass) => void pass()) }
  const pass = (request: IncomingMessage, response: ServerResponse) => {
    const { method, url: path, headers } = request
    const sent = forward({ port, method, path, headers }, (answer) => {
      answer.pipe(response.writeHead(answer.statusCode ?? 500, answer.headers))
    })
    request.pipe(sent.on('error', () => response.destroy()))
  }
  const server = createServer((request, response) => {
    if (proxy.isStuck) kept.push(() => pass(request, response))
    else pass(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  test.onTestFinished(() => void server.close().closeAllConnections())
  proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return proxy
}

test('large artifacts that a bucket keeps waiting keep no other account waiting', async (test) => {
  const bucket = await openBucket(test)
  const { accessKeyId, secretAccessKey } = bucketCredentials
  const settings = {
    ARTIFACTS_URL: `s3://blobs?endpoint=${bucket.url}`,
    ARTIFACTS_ACCESS_KEY_ID: accessKeyId,
    ARTIFACTS_SECRET_ACCESS_KEY: secretAccessKey,
  }
  const service = await startTestService({ worker: false, settings })
  test.onTestFinished(() => service.stop())
  const [account, other] = [await service.createAccount(), await service.createAccount()]
  const { runId, attempt } = await claimedAttempt(service, account)
  const { runId: othersRun, attempt: othersAttempt } = await claimedAttempt(service, other)
  const content = Buffer.alloc(inlineBytesMax + 1, 'a')
  const put = (artifactName: string, isOther = false, bytes = content) => {
    const path = isOther ? { runId: othersRun, attempt: othersAttempt } : { runId, attempt }
    const body = { mediaType: 'text/plain', content: bytes.toString('base64') }
    const { key } = isOther ? other : account
    return send(service, 'putAttemptArtifact', key, { path: { ...path, artifactName }, body })
  }
  const get = () => send(service, 'getRunArtifact', account.key, { path: { runId, artifactName: 'a.txt' } })
  await put('a.txt').expect(204)

  bucket.isStuck = true
  for (const start of [() => get().expect(200), () => put('b.txt').expect(204)]) {
    const waiting = Promise.resolve(start())
    await until('the bucket has a request', async () => bucket.kept.length > 0)
    // Its body is large, too, and is a row of the store.
    await put('c.txt', true, Buffer.alloc(inlineBytesMax, 'c')).expect(204)
    expect(bucket.kept).toHaveLength(1)
    bucket.release()
    await waiting
  }
})
