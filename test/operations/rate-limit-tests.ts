/** The block of 429, the same for every operation: a key that exceeds its rate limit. */
import { expect, test } from 'vitest'
import { requestsPerMinute } from '../support/service.ts'
import type { Subject } from './describe-operation.ts'
import { expectProblem, operationOf } from './document.ts'
import { addressOf, credential, sendRequest } from './requests.ts'

/** Sends requests with the key to both APIs until one is refused. */
async function exhaustRateLimit(subject: Subject, key: string): Promise<void> {
  for (let count = 0; count <= requestsPerMinute; count++) {
    const operation = operationOf(count % 2 === 0 ? 'listWorkflows' : 'listBrowserContexts')
    // 406 is the cheapest response after the rate limit.
    const headers = { ...credential(operation, key), Accept: 'image/png' }
    const { status } = await fetch(addressOf(subject.service, operation) + operation.path, { headers })
    if (status === 429) return
    expect(status).toBe(406)
  }
  throw new Error(`A key made more than ${requestsPerMinute} requests.`)
}

export function testRateLimit(subject: Subject): void {
  test('refuses a key over its rate limit and says when to retry', async () => {
    const { account, request } = await subject.caller()
    await exhaustRateLimit(subject, account.key)
    const response = await subject.send(request)
    const seconds = Number(response.headers['retry-after'])
    expect(seconds).toBeGreaterThan(0)
    expect(seconds).toBeLessThanOrEqual(60)
    expectProblem(subject.operation, response, {
      kind: 'rate-limited',
      title: 'Too many requests',
      status: 429,
      detail: `The limit is ${requestsPerMinute} requests in 60 seconds. Try again in ${seconds} second${seconds === 1 ? '' : 's'}.`,
    })
    expect(response.headers).toMatchObject({
      ratelimit: `"api-key";r=0;t=${seconds}`,
      'ratelimit-policy': `"api-key";q=${requestsPerMinute};w=60`,
    })
    const other = await account.createKey()
    const headers = { ...request.headers, ...credential(subject.operation, other.value) }
    const { status } = await sendRequest(addressOf(subject.service, subject.operation), { ...request, headers })
    // 404 on a worker of the first key.
    expect(status, 'with another key of the account').toBeLessThan(429)
  })
}
