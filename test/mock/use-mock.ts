/** Starts a mock for the tests of a file, and calls it. */
import { pino } from 'pino'
import { afterAll, beforeAll } from 'vitest'
import { type Mock, startMock } from '../../src/tools/mock/mock.ts'
import { validKey } from '../../src/tools/mock/mock-keys.ts'
import type { DocumentedOperation, ReceivedResponse } from '../operations/document.ts'
import { sendRaw } from '../operations/raw-http.ts'
import { type Filled, requestOf } from '../operations/requests.ts'

/** From the documents' examples. */
const id = '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07'
const path = {
  workflowId: 'count-words',
  runId: id,
  browserContextId: id,
  endpointId: id,
  deliveryId: id,
  artifactName: 'invoice.pdf',
  version: '1',
}

export function useMock() {
  let mock: Mock | undefined
  beforeAll(async () => {
    mock = await startMock({
      host: '127.0.0.1',
      executionPort: 0,
      browserContextPort: 0,
      log: pino({ level: 'silent' }),
    })
  })
  afterAll(() => mock?.stop())

  /** Sends a valid request, with the first example of the body by default. */
  async function call(
    operation: DocumentedOperation,
    filled: Filled = {},
    key = validKey.value,
  ): Promise<ReceivedResponse> {
    const [example] = Object.values(operation.body ?? {})
    const { headers, ...request } = requestOf(operation, key, { path, body: example, ...filled })
    const list = Object.entries(headers).flatMap(([name, value]) => [value].flat().flatMap((each) => [name, each]))
    const url = operation.surface === 'execution' ? mock?.executionUrl : mock?.browserContextUrl
    return sendRaw(url ?? '', { ...request, headers: list })
  }
  return { call }
}
