/** Describes one operation by a block for each status that its document has: a missing or a foreign one does not compile. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  queuedRunsMax,
  requestsPerMinute,
  startTestService,
  type TestAccount,
  type TestService,
} from '../support/service.ts'
import {
  type Answer,
  type DocumentedOperation,
  expectDocumented,
  type OperationId,
  operationOf,
  type StatusOf,
} from './document.ts'
import type { Filled } from './requests.ts'
import { addressOf, type SentRequest, send, sendRequest, validRequest } from './requests.ts'

/** What the block of a status is given. Everything but `operation` is there only while a test runs. */
export interface Subject {
  readonly operation: DocumentedOperation
  readonly service: TestService
  /** A new account, and a request of it that is answered with success. */
  caller(): Promise<{ account: TestAccount; request: SentRequest }>
  /** Sends a request, which must be answered with the block's status and just as its document says. */
  answered(request: SentRequest): Promise<Answered>
  /** The same for a request of which the document says the rest. */
  called(key: string, filled?: Filled): Promise<Answered>
}

export interface Answered extends Answer {
  /** The parsed body. */
  // biome-ignore lint/suspicious/noExplicitAny: it has been held to its schema
  body: any
}

type Blocks = { [Id in OperationId]: { [Status in StatusOf<Id>]: (subject: Subject) => void } }

export function describeOperation<Id extends OperationId>(
  id: Id,
  { worker }: { worker: boolean },
  blocks: Blocks[Id],
): void {
  const operation = operationOf(id)
  let service: TestService | undefined
  beforeAll(async () => {
    const settings = { RATE_LIMIT_PER_MINUTE: String(requestsPerMinute), QUEUED_RUNS_MAX: String(queuedRunsMax) }
    service = await startTestService({ worker, settings })
  })
  afterAll(() => service?.stop())

  describe(`${operation.method} ${operation.path}`, () => {
    test('has a block for each documented status, and no other', () => {
      expect(Object.keys(blocks).map(Number).sort()).toEqual([...operation.responses.keys()].sort())
    })
    for (const [status, block] of Object.entries(blocks as Record<string, (subject: Subject) => void>)) {
      const description = operation.responses.get(Number(status))?.description.split('.')[0]
      describe(`${status}: ${description}`, () => {
        block(subjectOf(operation, Number(status), () => service as TestService))
      })
    }
  })
}

function subjectOf(operation: DocumentedOperation, status: number, service: () => TestService): Subject {
  let seen = false
  // A block whose tests never see its status describes something else.
  afterAll(() => expect(seen, `no test of this block was answered with ${status}`).toBe(true))
  const held = (answer: Answer): Answered => {
    expect(answer.status, answer.text).toBe(status)
    const body = expectDocumented(operation, answer)
    seen = true
    return { status, headers: answer.headers, text: answer.text, body }
  }
  return {
    operation,
    get service() {
      return service()
    },
    async caller() {
      const account = await service().createAccount()
      return { account, request: await validRequest(service(), operation.id, account) }
    },
    answered: async (request) => held(answerOf(await sendRequest(addressOf(service(), operation), request))),
    called: async (key, filled) => held(answerOf(await send(service(), operation.id, key, filled))),
  }
}

/** Supertest leaves the text of an answer without a body undefined. */
function answerOf({ status, headers, text }: Answer & { text: string | undefined }): Answer {
  return { status, headers, text: text ?? '' }
}
