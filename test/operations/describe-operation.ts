/** Describes an operation by a block for each documented status; a missing or undocumented one does not compile. */
import { afterAll, beforeAll, describe, expect } from 'vitest'
import {
  fileMegabytesMax,
  queuedRunsMax,
  requestsPerMinute,
  schedulesMax,
  startTestService,
  storageQuotaMegabytes,
  type TestAccount,
  type TestService,
} from '../support/service.ts'
import {
  type DocumentedOperation,
  expectDocumented,
  type OperationId,
  operationOf,
  type ReceivedResponse,
  type StatusOf,
} from './document.ts'
import type { Filled } from './requests.ts'
import { addressOf, type SentRequest, send, sendRequest, validRequest } from './requests.ts'

/** The parameter of a status's block. All members except `operation` exist only while a test runs. */
export interface Subject {
  readonly operation: DocumentedOperation
  readonly service: TestService
  /** Creates an account and a request of it that succeeds. */
  caller(): Promise<Caller>
  /** The same caller for all requests that are refused, and so change nothing. */
  refusedCaller(): Promise<Caller>
  /** Sends a request, and requires the block's status and a response that matches the document. */
  send(request: SentRequest): Promise<SubjectResponse>
  /** The same for a request that is built from the document. */
  call(key: string, filled?: Filled): Promise<SubjectResponse>
  /** Fails if no response had the status: then something else has been tested. */
  expectSeen(): void
}

interface Caller {
  account: TestAccount
  request: SentRequest
}

export interface SubjectResponse extends ReceivedResponse {
  /** The parsed body. */
  // biome-ignore lint/suspicious/noExplicitAny: its schema has been checked
  body: any
}

/** Statuses that `guards.ts` tests for every operation. A block holds what the operation adds. */
const guardedStatuses = [400, 401, 403, 404, 406, 413, 415, 429, 500, 503, 507] as const
type GuardedStatus = (typeof guardedStatuses)[number]

type Block = (subject: Subject) => void

type Blocks = {
  [Id in OperationId]: { [Status in Exclude<StatusOf<Id>, GuardedStatus>]: Block } & {
    [Status in Extract<StatusOf<Id>, GuardedStatus>]?: Block
  }
}

/** Settings of the service, with limits that tests reach. */
export const testLimits = {
  RATE_LIMIT_PER_MINUTE: String(requestsPerMinute),
  QUEUED_RUNS_MAX: String(queuedRunsMax),
  SCHEDULES_MAX: String(schedulesMax),
  STORAGE_QUOTA_MB: String(storageQuotaMegabytes),
  FILE_MAX_MB: String(fileMegabytesMax),
}

export function describeOperation<Id extends OperationId>(
  id: Id,
  { worker }: { worker: boolean },
  blocks: Blocks[Id],
): void {
  const operation = operationOf(id)
  let service: TestService | undefined
  beforeAll(async () => {
    service = await startTestService({ worker, settings: testLimits })
  })
  afterAll(() => service?.stop())

  describe(`${operation.method} ${operation.path}`, () => {
    const caller = subjectOf(operation, () => service as TestService)
    for (const [status, block] of Object.entries(blocks as Record<string, Block>)) {
      const description = operation.responses.get(Number(status))?.description.split('.')[0]
      describe(`${status}: ${description}`, () => {
        const subject = caller(Number(status))
        if (!(guardedStatuses as readonly number[]).includes(Number(status))) afterAll(subject.expectSeen)
        block(subject)
      })
    }
  })
}

/** @returns the subject of a status; subjects of one operation share the caller whose requests are refused. */
export function subjectOf(operation: DocumentedOperation, service: () => TestService): (status: number) => Subject {
  const caller = async (): Promise<Caller> => {
    const account = await service().createAccount()
    return { account, request: await validRequest(service(), operation.id, account) }
  }
  let refused: Promise<Caller> | undefined
  let refusals = 0
  return (status) => {
    let seen = false
    const check = (response: ReceivedResponse): SubjectResponse => {
      expect(response.status, response.text).toBe(status)
      const body = expectDocumented(operation, response)
      expectRateLimit(response)
      seen = true
      return { status, headers: response.headers, text: response.text, body }
    }
    return {
      operation,
      get service() {
        return service()
      },
      caller,
      refusedCaller() {
        // Each key stays below its rate limit.
        if (refusals++ % (requestsPerMinute / 2) === 0) refused = caller()
        return refused as Promise<Caller>
      },
      send: async (request) => check(toReceived(await sendRequest(addressOf(service(), operation), request))),
      call: async (key, filled) => check(toReceived(await send(service(), operation.id, key, filled))),
      expectSeen: () => expect(seen, `no response had the status ${status}`).toBe(true),
    }
  }
}

/** Every response to a known key says what is left of its limit. Without the store, the key is not known. */
function expectRateLimit({ status, headers }: ReceivedResponse): void {
  if (status === 500 || status === 503) return
  const policy = status === 401 ? undefined : `"api-key";q=${requestsPerMinute};w=60`
  expect(headers['ratelimit-policy']).toBe(policy)
  expect(headers.ratelimit).toEqual(policy && expect.stringMatching(/^"api-key";r=[0-9]{1,2};t=([1-9]|[1-5][0-9]|60)$/))
}

/** Supertest leaves the text of a response without a body undefined. */
function toReceived({ status, headers, text }: ReceivedResponse & { text: string | undefined }): ReceivedResponse {
  return { status, headers, text: text ?? '' }
}
