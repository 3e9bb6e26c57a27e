/** Sends requests that are wrong in one place, and holds the service to storing nothing of them. */
import { expect } from 'vitest'
import type { TestAccount, TestService } from '../support/service.ts'
import { type Answer, expectProblem, operationOf } from './document.ts'
import { type RawRequest, sendRaw } from './http.ts'

/** A body that the workflow `greet` takes. */
export const good = '{"variableData":{"name":"Ada"}}'

export const json = ['Content-Type', 'application/json']

export const invalid = { kind: 'invalid-request', title: 'Invalid request', status: 400 }

export const anyDetail: unknown = expect.any(String)

/** Members at fault, as an answer names them. */
export const at = (pointer: string, detail = anyDetail) => ({ pointer, detail })
export const parameter = (name: string, detail = anyDetail) => ({ parameter: name, detail })
export const header = (name: string, detail = anyDetail) => ({ header: name, detail })

export interface QueueRequest {
  /** In the place of the workflow's id. */
  path?: string
  query?: string
  headers?: string[]
  body?: string | Buffer
  chunked?: boolean
}

/** A call of queueRemoteRun, good but for what is given. */
export function queueRequest(account: TestAccount, request: QueueRequest): RawRequest {
  const { path = 'greet', query = '', headers = json, body, chunked = false } = request
  return {
    method: 'PUT',
    path: `/v1/execution/queue-remote/${path}${query}`,
    headers: [...bearer(account), ...headers],
    chunked,
    ...(body !== undefined && { body }),
  }
}

export function bearer(account: TestAccount): string[] {
  return ['Authorization', `Bearer ${account.key}`]
}

/** @param service which there is only while a test runs. */
export function wrongRequests(service: () => TestService) {
  const rowsStored = () => {
    const tables = ['runs', 'run_events', 'idempotency_keys', 'browser_contexts']
    const counts = tables.map((table) => `(SELECT COUNT(*) FROM ${table}) AS ${table}`)
    return service().rows(`SELECT ${counts.join(', ')}`)
  }

  /** Whatever `act` sends, it must store nothing. */
  async function storingNothing(act: () => Promise<Answer>): Promise<Answer> {
    const before = await rowsStored()
    const answer = await act()
    expect(await rowsStored()).toEqual(before)
    return answer
  }

  const unstored = (url: string, request: RawRequest) => storingNothing(() => sendRaw(url, request))

  /** Queues with what is wrong; the answer must be 400 and name exactly these members, in any order. */
  async function expectRefused(request: QueueRequest, errors: object[]): Promise<void> {
    const answer = await unstored(service().executionUrl, queueRequest(await service().createAccount(), request))
    expectProblem(operationOf('queueRemoteRun'), answer, { ...invalid, errors: expect.any(Array) })
    const named = JSON.parse(answer.text).errors
    expect(named).toHaveLength(errors.length)
    expect(named).toEqual(expect.arrayContaining(errors))
  }

  async function expectQueued(request: QueueRequest): Promise<Answer> {
    const answer = await sendRaw(service().executionUrl, queueRequest(await service().createAccount(), request))
    expect(answer.status, answer.text).toBe(202)
    return answer
  }

  return { storingNothing, unstored, expectRefused, expectQueued }
}
