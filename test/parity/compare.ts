/** Sends requests to two servers and compares their responses. */
import type { TestService } from '../support/service.ts'
import type { ParityCase } from './cases.ts'
import type { Difference } from './differences.ts'
import {
  type Base,
  type Caller,
  createBase,
  createCaller,
  mockKeySet,
  type Outcome,
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

/** Sends each case to the service, after creating the resources that it needs. */
export async function* sendToService(service: TestService, cases: Iterable<ParityCase>) {
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
    // The next request needs new resources after a creation or deletion.
    if (response.status < 300 && (before || ['POST', 'DELETE'].includes(operation?.method ?? ''))) base = undefined
  }
}

export function findUrl({ executionUrl, browserContextUrl }: Addresses, { surface }: ParityCase): string {
  return surface === 'execution' ? executionUrl : browserContextUrl
}

/** Returns the cases in which the mock's response differs from the service's. */
export async function findDifferences(
  service: TestService,
  mock: Addresses,
  cases: Iterable<ParityCase>,
): Promise<Comparison[]> {
  const differences: Comparison[] = []
  for await (const { each, base, service: expected } of sendToService(service, cases)) {
    const mockBase = base && { ...base, keys: mockKeySet }
    const other = toOutcome(each.operation, await sendRequest(findUrl(mock, each), each.request(mockBase)))
    if (JSON.stringify(expected) !== JSON.stringify(other)) differences.push({ each, service: expected, other })
  }
  return differences
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
