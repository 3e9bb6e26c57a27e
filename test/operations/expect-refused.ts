/** Sends requests with a single error, and requires that the service stores nothing of them. */
import { expect } from 'vitest'
import type { TestAccount, TestService } from '../support/service.ts'
import { expectProblem, operationOf, type ReceivedResponse } from './document.ts'
import { type RawRequest, sendRaw } from './raw-http.ts'

/** A valid body for the workflow `greet`. */
export const good = '{"variableData":{"name":"Ada"}}'

export const json = ['Content-Type', 'application/json']

export const invalid = { kind: 'invalid-request', title: 'Invalid request', status: 400 }

export const anyDetail: unknown = expect.any(String)

/** Validation errors as in a response. */
export const at = (pointer: string, detail = anyDetail) => ({ pointer, detail })
export const parameter = (name: string, detail = anyDetail) => ({ parameter: name, detail })
export const header = (name: string, detail = anyDetail) => ({ header: name, detail })

export interface QueueRequest {
  /** Replaces the workflow's id. */
  path?: string
  query?: string
  headers?: string[]
  body?: string | Buffer
  chunked?: boolean
}

/** A request of queueRemoteRun, valid except for the given members. */
export function buildQueueRequest(account: TestAccount, request: QueueRequest): RawRequest {
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

/** @param service returns the service, which exists only while a test runs. */
export function refusalHelpers(service: () => TestService) {
  const rowsStored = () => {
    const tables = ['runs', 'run_events', 'idempotency_keys', 'browser_contexts']
    const counts = tables.map((table) => `(SELECT COUNT(*) FROM ${table}) AS ${table}`)
    return service().rows(`SELECT ${counts.join(', ')}`)
  }

  /** Fails if the action stores anything. */
  async function expectNothingStored(act: () => Promise<ReceivedResponse>): Promise<ReceivedResponse> {
    const before = await rowsStored()
    const response = await act()
    expect(await rowsStored()).toEqual(before)
    return response
  }

  const sendUnstored = (url: string, request: RawRequest) => expectNothingStored(() => sendRaw(url, request))

  /** Fails unless the response is 400 with exactly these errors, in any order. */
  async function expectRefused(request: QueueRequest, errors: object[]): Promise<void> {
    const response = await sendUnstored(
      service().executionUrl,
      buildQueueRequest(await service().createAccount(), request),
    )
    expectProblem(operationOf('queueRemoteRun'), response, { ...invalid, errors: expect.any(Array) })
    const named = JSON.parse(response.text).errors
    expect(named).toHaveLength(errors.length)
    expect(named).toEqual(expect.arrayContaining(errors))
  }

  async function expectQueued(request: QueueRequest): Promise<ReceivedResponse> {
    const response = await sendRaw(service().executionUrl, buildQueueRequest(await service().createAccount(), request))
    expect(response.status, response.text).toBe(202)
    return response
  }

  return { expectNothingStored, sendUnstored, expectRefused, expectQueued }
}
