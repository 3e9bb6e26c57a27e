/** The examples of the documents are correct: requests are accepted, and responses are valid by their schemas. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from '../support/service.ts'
import { eventsIn, expectToFit, operations } from './document.ts'
import { addressOf, requestOf, sendRequest, signInBody, validRequest } from './requests.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({
    worker: false,
    settings: { SMTP_URL: 'smtp://127.0.0.1:1', SMTP_FROM: 'service@shop.example' },
  })
})
afterAll(() => service.stop())

const requests = operations.flatMap((operation) =>
  Object.entries(operation.body ?? {}).map(([name, body]) => ({ name, body, operation, id: operation.id })),
)

describe('documented requests', () => {
  test.each(requests)('$id accepts its example $name', async ({ operation, body }) => {
    const account = await service.createAccount()
    const valid = await validRequest(service, operation.id, account)
    const { path, headers } = valid
    // A run of the account instead of the example's.
    const { runId } = JSON.parse(String(valid.body ?? '{}'))
    const ofRun = runId === undefined ? body : { ...(body as object), runId }
    // The workflow that signs in, instead of the example's.
    const { workflowId, variableData } = signInBody
    const example = operation.id === 'setSignIn' ? { ...(body as object), workflowId, variableData } : ofRun
    // The workflow of the example instead of the one that tests use.
    const request = {
      ...requestOf(operation, account.key, { body: example }),
      headers,
      path: path.replace('greet', 'count-words'),
    }
    const received = await sendRequest(addressOf(service, operation), request)
    expect(received.status, received.text).toBeLessThan(300)
  })

  test('every request body has an example', () => {
    const without = operations.filter(({ body }) => body && Object.keys(body).length === 0)
    expect(without.map(({ id }) => id)).toEqual([])
  })
})

/** Each once; most are shared by all responses. */
const headers = new Map(
  operations.flatMap(({ surface, responses: byStatus }) =>
    [...byStatus.values()].flatMap((response) =>
      Object.entries(response.headers).map(([name, header]) => [
        surface + header.pointer,
        { surface, name, ...header },
      ]),
    ),
  ),
)

describe('documented responses', () => {
  test('the example of each header is valid', () => {
    for (const { surface, pointer, name, example } of headers.values()) {
      expect(example, name).toBeDefined()
      expectToFit(surface, pointer, example)
    }
  })

  test.each(operations)('the examples of the responses of $id are valid', ({ surface, responses }) => {
    for (const [status, { schemas, examples }] of responses)
      for (const [mediaType, name, value] of examples) {
        const schema = schemas[mediaType] ?? ''
        expectToFit(surface, schema, value)
        if (schema.includes('problem+json')) expect(value, `${status} ${name}`).toMatchObject({ status })
        if (!schema.includes('event-stream')) continue
        const events = eventsIn(value as string)
        for (const event of events) {
          expectToFit(surface, '/components/schemas/RunEvent', event.data)
          expect(event).toMatchObject({ id: String(event.data.sequence), event: event.data.type })
        }
        expect(events, name).not.toEqual([])
      }
  })

  test('every response body has an example', () => {
    const without = operations.flatMap(({ id, responses: byStatus }) =>
      [...byStatus]
        .filter(
          ([, { schemas, examples, isFile }]) =>
            !isFile && Object.keys(schemas).length !== new Set(examples.map(([type]) => type)).size,
        )
        .map(([status]) => `${id} ${status}`),
    )
    expect(without).toEqual([])
  })
})
