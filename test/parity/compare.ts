/** Sends requests to two servers and compares their responses. */
import type { ReceivedResponse } from '../operations/document.ts'
import { send } from '../operations/requests.ts'
import { until } from '../support/service.ts'
import type { ParityCase } from './cases.ts'
import type { Difference } from './differences.ts'
import {
  type Base,
  type Caller,
  createBase,
  createCaller,
  mockKeySet,
  type Outcome,
  type Reference,
  sendRequest,
  toOutcome,
} from './servers.ts'

interface Addresses {
  executionUrl: string
  browserContextUrl: string
}

export interface Comparison {
  each: ParityCase
  service: Outcome
  other: Outcome
}

/** Sends each case to a service or a simulator, after creating the resources that it needs. */
export async function* sendToReference(service: Reference, cases: Iterable<ParityCase>) {
  let base: Base | undefined
  let caller: Caller | undefined
  let previous: unknown
  for (const each of cases) {
    const { operation, before } = each
    if (operation && operation !== previous) {
      caller = await createCaller(service, operation)
      base = undefined
      previous = operation
    }
    if (operation && caller) base ??= await createBase(service, operation, caller)
    const current = base as Base
    if (before) await sendRequest(findUrl(service, each), before(current))
    const response = await sendRequest(findUrl(service, each), each.request(current))
    yield { each, base: current, service: toOutcome(operation, response) }
    if (caller && isBulkAction(response)) await waitForBulkAction(service, caller, response)
    // The next request needs new resources after a creation or deletion.
    if (response.status < 300 && (before || ['POST', 'DELETE'].includes(operation?.method ?? ''))) base = undefined
  }
}

function isBulkAction({ status, headers }: ReceivedResponse): boolean {
  return status === 202 && String(headers.location).includes('/bulk-actions/')
}

/** An account may have 10 that are unfinished. */
async function waitForBulkAction(service: Reference, { account }: Caller, { text }: ReceivedResponse): Promise<void> {
  const path = { bulkActionId: JSON.parse(text).id }
  await until('the bulk action has ended', async () => {
    const { body } = await send(service, 'getBulkAction', account.key, { path })
    return body.finishedAt
  })
}

export function findUrl({ executionUrl, browserContextUrl }: Addresses, { surface }: ParityCase): string {
  return surface === 'execution' ? executionUrl : browserContextUrl
}

/** Returns the cases in which the mock's response differs from the reference's. */
export async function findDifferences(
  reference: Reference,
  mock: Addresses,
  cases: Iterable<ParityCase>,
): Promise<Comparison[]> {
  const differences: Comparison[] = []
  for await (const { each, base, service: expected } of sendToReference(reference, cases)) {
    const mockBase = base && { ...base, keys: mockKeySet }
    const other = toOutcome(each.operation, await sendRequest(findUrl(mock, each), each.request(mockBase)))
    if (JSON.stringify(expected) !== JSON.stringify(other)) differences.push({ each, service: expected, other })
  }
  return differences
}

/** Returns the cases in which the simulator's response differs from the service's. Resources are created in both. */
export async function findSimulated(
  service: Reference,
  simulator: Reference,
  cases: readonly ParityCase[],
): Promise<Comparison[]> {
  const respond = async (reference: Reference) => {
    const outcomes: Outcome[] = []
    for await (const { service: outcome } of sendToReference(reference, cases)) outcomes.push(outcome)
    return outcomes
  }
  const [expected, simulated] = await Promise.all([respond(service), respond(simulator)])
  const compared = cases.map((each, index): Comparison => {
    return { each, service: expected[index] as Outcome, other: simulated[index] as Outcome }
  })
  return compared.filter((each) => JSON.stringify(each.service) !== JSON.stringify(each.other))
}

/** Describes the cases without a permitted difference, and adds the differences that occur to `seen`. */
export function describeUnpermitted(
  differences: Comparison[],
  list: readonly Difference[],
  seen: Set<Difference>,
): string[] {
  return differences.flatMap(({ each, service, other }) => {
    const known = list.filter((difference) => difference.is(each, service, other))
    for (const difference of known) seen.add(difference)
    return known.length > 0 ? [] : [`${each.title}\n  ${JSON.stringify(service)}\n  ${JSON.stringify(other)}`]
  })
}
