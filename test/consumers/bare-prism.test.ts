/** What stands in front of Prism in the mock is needed: each class of its differences from the service is met without it. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { operations } from '../operations/document.ts'
import type { RawRequest } from '../operations/http.ts'
import { casesOf, casesOfNone, type ParityCase } from '../parity/cases.ts'
import { addressOf, answeredByService, type Compared, unpermitted } from '../parity/compare.ts'
import type { Difference } from '../parity/differences.ts'
import { prismDifferences, noResponse } from '../parity/prism-differences.ts'
import { type Outcome, outcomeOf, put } from '../parity/servers.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService
let prism: ChildProcess
let addresses: { executionUrl: string; browserContextUrl: string }

beforeAll(async () => {
  service = await startTestService({ worker: false })
  prism = fork(fileURLToPath(new URL('bare-prism-process.ts', import.meta.url)), {
    execArgv: [],
    // It prints the stack of each error.
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  addresses = (await once(prism, 'message'))[0] as typeof addresses
})
afterAll(async () => {
  prism.kill()
  await service.stop()
})

/** How long Prism may take before it is asked something else, to see that it has done with this. */
const patienceMilliseconds = 150

async function answeredByPrism(each: ParityCase, request: RawRequest | string): Promise<Outcome> {
  const over = new AbortController()
  const { signal } = over
  const left = async () => {
    await Promise.race([once(prism, 'message', { signal }), setTimeout(patienceMilliseconds, undefined, { signal })])
    // Nothing keeps it waiting: what comes later is not answered before.
    for (let count = 0; count < 3; count++) await fetch(`${addresses.executionUrl}/v1/execution/workflows`)
    return noResponse
  }
  const answering = put(addressOf(addresses, each), request).then((answer) => outcomeOf(each.operation, answer))
  const unlessOver = left().catch((error) => (signal.aborted ? noResponse : Promise.reject(error)))
  return Promise.race([answering, unlessOver]).finally(() => over.abort())
}

test('Prism alone differs from the service in what is listed, and in nothing else; each still occurs', async () => {
  const cases = [...operations.flatMap(casesOf), ...casesOfNone()]
  const found: Compared[] = []
  for await (const { each, base, service: expected } of answeredByService(service, cases)) {
    const other = await answeredByPrism(each, each.request(base))
    // It is the same for all answers: Cache-Control is missing, and nothing is looked at after it.
    const { misfit: _, ...ofPrism } = other
    const compared = other === noResponse ? other : ofPrism
    if (JSON.stringify(expected) !== JSON.stringify(compared)) found.push({ each, service: expected, other: compared })
  }
  const seen = new Set<Difference>()
  expect(unpermitted(found, prismDifferences, seen)).toEqual([])
  expect(prismDifferences.filter((difference) => !seen.has(difference)).map(({ what }) => what)).toEqual([])
})

test('the decision about the mock shows the list', () => {
  const text = readFileSync('docs/decisions/0012-mock.md', 'utf8')
  const shown = text.split('<!-- differences -->')[1]?.split('<!-- /differences -->')[0]?.trim()
  expect(shown).toBe(prismDifferences.map(({ what, why }) => `- **${what}.** ${why}`).join('\n'))
})
