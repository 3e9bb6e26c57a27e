/** The block of 429, which is alike for every operation: a key that has made as many requests as it may. */
import { expect, test } from 'vitest'
import { requestsPerMinute } from '../support/service.ts'
import { expectProblem, operationOf } from './document.ts'
import type { Subject } from './operation.ts'
import { addressOf, credential, sendRequest } from './requests.ts'

/** Makes requests with the key, over the other surface too, until one more is refused. */
async function exhaust(subject: Subject, key: string): Promise<void> {
  for (let count = 0; count <= requestsPerMinute; count++) {
    const operation = operationOf(count % 2 === 0 ? 'listWorkflows' : 'listBrowserContexts')
    // Refused after it was counted: the quickest request that counts.
    const headers = { ...credential(operation, key), Accept: 'image/png' }
    const { status } = await fetch(addressOf(subject.service, operation) + operation.path, { headers })
    if (status === 429) return
    expect(status).toBe(406)
  }
  throw new Error(`A key could make more than ${requestsPerMinute} requests.`)
}

export function limitsRequests(subject: Subject): void {
  test('refuses a key that has made as many requests as it may, and says when to try again', async () => {
    const { account, request } = await subject.caller()
    await exhaust(subject, account.key)
    const answer = await subject.answered(request)
    const seconds = Number(answer.headers['retry-after'])
    expect(seconds).toBeGreaterThan(0)
    expect(seconds).toBeLessThanOrEqual(60)
    expectProblem(subject.operation, answer, {
      kind: 'rate-limited',
      title: 'Too many requests',
      status: 429,
      detail: `The limit is ${requestsPerMinute} requests in 60 seconds. Try again in ${seconds} second${seconds === 1 ? '' : 's'}.`,
    })
    expect(answer.headers).toMatchObject({
      ratelimit: `"api-key";r=0;t=${seconds}`,
      'ratelimit-policy': `"api-key";q=${requestsPerMinute};w=60`,
    })
    const other = await account.createKey()
    const headers = { ...request.headers, ...credential(subject.operation, other.value) }
    const { status } = await sendRequest(addressOf(subject.service, subject.operation), { ...request, headers })
    expect(status, 'with another key of the account').toBeLessThan(300)
  })
}
