/** Starts a mock for the tests of a file, and calls it. */
import { pino } from 'pino'
import { afterAll, beforeAll } from 'vitest'
import { snapshotId } from '../../src/domain/deployments/snapshot.ts'
import { Workflows } from '../../src/domain/workflows/workflows.ts'
import { type Mock, startMock } from '../../src/tools/mock/mock.ts'
import { validKey } from '../../src/tools/mock/mock-keys.ts'
import type { Clock } from '../../src/tools/mock/mock-response.ts'
import type { DocumentedOperation, ReceivedResponse } from '../operations/document.ts'
import { sendRaw } from '../operations/raw-http.ts'
import { type Filled, requestOf } from '../operations/requests.ts'
import { testWorkflows } from '../support/service.ts'
import { snapshotOf } from '../support/snapshots.ts'

/** From the documents' examples. */
const id = '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07'
/** A valid value of each path parameter. */
export const mockPath = {
  workflowId: 'count-words',
  runId: id,
  browserContextId: id,
  scheduleId: id,
  deploymentId: '5f1c0d0f2c5b1f0d8a6de21c0a3a3a1c8f61d5ce5c0a7b0f4a9f2de1c3b7a904',
  bulkActionId: id,
  endpointId: id,
  ruleId: id,
  deliveryId: id,
  artifactName: 'invoice.pdf',
  fileId: id,
  workerId: id,
  attempt: '1',
  stepName: 'charge',
  version: '1',
  viewId: id,
  name: 'SHOP_TOKEN',
}

/** Of operations that require parameters in their query. */
export const mockQueries: Record<string, string> = { getUsage: 'from=2026-11-01&to=2026-11-30' }

/** The workflows of the tests' service. */
export async function testedWorkflows(): Promise<Workflows> {
  const snapshot = await snapshotOf(testWorkflows)
  return new Workflows(snapshot.workflows, snapshotId(snapshot, null))
}

/** Moves by each sleep at once. */
export function jumpingClock(): Clock & { pass(milliseconds: number): void } {
  let time = Date.parse('2026-11-20T09:30:00.000Z')
  return {
    now: () => time,
    pass(milliseconds) {
      time += milliseconds
    },
    async sleep(milliseconds) {
      time += milliseconds
    },
  }
}

export function useMock() {
  let mock: Mock | undefined
  const clock = jumpingClock()
  beforeAll(async () => {
    mock = await startMock({
      host: '127.0.0.1',
      executionPort: 0,
      browserContextPort: 0,
      log: pino({ level: 'silent' }),
      workflows: await testedWorkflows(),
      clock,
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
    const { headers, ...request } = requestOf(operation, key, {
      ...{ path: mockPath, query: mockQueries[operation.id] ?? '', body: example },
      ...filled,
    })
    const list = Object.entries(headers).flatMap(([name, value]) => [value].flat().flatMap((each) => [name, each]))
    const url = operation.surface === 'execution' ? mock?.executionUrl : mock?.browserContextUrl
    return sendRaw(url ?? '', { ...request, headers: list })
  }
  const urls = () => mock as Mock
  return { call, clock, urls }
}
