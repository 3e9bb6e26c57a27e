/** HEAD gets the response to GET without content (RFC 9110, section 9.3.2). */
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../support/service.ts'
import { operationOf, operations } from './document.ts'
import { addressOf, queueRun, requestOf, type SentRequest, validRequest } from './requests.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ worker: false })
})
afterAll(() => service.stop())

const reads = operations.filter(({ method }) => method === 'GET')

/** Status, body, and the headers that do not differ between two equal requests. */
async function fetchAs(method: string, url: string, headers: SentRequest['headers']) {
  const response = await fetch(url, { method, headers: headers as Record<string, string> })
  const perResponse = ['x-request-id', 'date', 'ratelimit', 'transfer-encoding', 'connection', 'keep-alive']
  const others = [...response.headers].filter(([name]) => !perResponse.includes(name))
  return { status: response.status, headers: Object.fromEntries(others), text: await response.text() }
}

/** Repeats the requests when the service has changed what they read in between, such as the progress of an action. */
async function unlessChanged<Response extends { text: string }>(
  get: () => Promise<Response>,
  head: () => Promise<Response>,
): Promise<[Response, Response, Response]> {
  const responses: [Response, Response, Response] = [await get(), await head(), await get()]
  const [before, after] = [responses[0], responses[2]].map((response) => ({ ...response, text: '' }))
  return isDeepStrictEqual(before, after) ? responses : unlessChanged(get, head)
}

test.each(reads)('$id has it, also when it is refused', async (operation) => {
  const account = await service.createAccount()
  const { path, headers } = await validRequest(service, operation.id, account)
  const url = addressOf(service, operation) + path
  for (const sent of [headers, { ...headers, Accept: 'video/mp4' }, {}]) {
    const [before, head, after] = await unlessChanged(
      () => fetchAs('GET', url, sent),
      () => fetchAs('HEAD', url, sent),
    )
    expect(head).toEqual({ ...before, text: '' })
    expect(after.text).not.toBe('')
  }
})

test('an event stream ends at once, before its run has finished', async () => {
  const account = await service.createAccount()
  const path = { runId: await queueRun(service, account) }
  const { path: target, headers } = requestOf(operationOf('streamRunEvents'), account.key, { path })
  const response = await fetchAs('HEAD', service.executionUrl + target, headers)
  expect(response).toMatchObject({ status: 200, headers: { 'content-type': 'text/event-stream' }, text: '' })
})

test('the size of an artifact, whatever `Range` asks for', async () => {
  const account = await service.createAccount()
  const { path, headers } = await validRequest(service, 'getRunArtifact', account)
  const response = await fetchAs('HEAD', service.executionUrl + path, { ...headers, Range: 'bytes=0-1' })
  expect(response).toMatchObject({ status: 200, headers: { 'content-length': '5' } })
})
