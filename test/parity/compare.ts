/** Puts requests to two servers and tells in which answers they differ. */
import type { TestService } from '../support/service.ts'
import type { ParityCase } from './cases.ts'
import type { Difference } from './differences.ts'
import { type Base, type Caller, keysOfMock, newBase, newCaller, type Outcome, outcomeOf, put } from './servers.ts'

interface Addresses {
  executionUrl: string
  browserContextUrl: string
}

export interface Compared {
  each: ParityCase
  service: Outcome
  other: Outcome
}

/** Every case with what the service answered, in order. What the request needs exists in the service. */
export async function* answeredByService(service: TestService, cases: Iterable<ParityCase>) {
  let base: Base | undefined
  let caller: Caller | undefined
  let of: unknown
  for (const each of cases) {
    const { operation, before } = each
    if (operation && operation !== of) {
      caller = await newCaller(service, operation)
      base = undefined
      of = operation
    }
    if (operation && caller) base ??= await newBase(service, operation, caller)
    const own = base as Base
    if (before) await put(addressOf(service, each), before(own))
    const answer = await put(addressOf(service, each), each.request(own))
    yield { each, base: own, service: outcomeOf(operation, answer) }
    // What has been made or deleted is in the way of the next request.
    if (answer.status < 300 && (before || ['POST', 'DELETE'].includes(operation?.method ?? ''))) base = undefined
  }
}

export function addressOf({ executionUrl, browserContextUrl }: Addresses, { surface }: ParityCase): string {
  return surface === 'execution' ? executionUrl : browserContextUrl
}

/** The cases in which the mock has answered otherwise than the service. */
export async function differing(
  service: TestService,
  mock: Addresses,
  cases: Iterable<ParityCase>,
): Promise<Compared[]> {
  const found: Compared[] = []
  for await (const { each, base, service: expected } of answeredByService(service, cases)) {
    const ofMock = base && { ...base, keys: keysOfMock }
    const other = outcomeOf(each.operation, await put(addressOf(mock, each), each.request(ofMock)))
    if (JSON.stringify(expected) !== JSON.stringify(other)) found.push({ each, service: expected, other })
  }
  return found
}

/** Parts what is permitted from what is not; `seen` gets what of the list has occurred. */
export function unpermitted(found: Compared[], list: readonly Difference[], seen: Set<Difference>): string[] {
  return found.flatMap(({ each, service, other }) => {
    const known = list.filter((difference) => difference.is(each, service, other))
    for (const difference of known) seen.add(difference)
    return known.length > 0 ? [] : [`${each.title}\n  ${JSON.stringify(service)}\n  ${JSON.stringify(other)}`]
  })
}
