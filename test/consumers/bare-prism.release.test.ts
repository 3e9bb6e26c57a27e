/** The stages of the mock in front of Prism are needed: `prism mock` differs from the service in every listed way. */
import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { DocumentName } from '../../src/openapi/document.ts'
import { spawnPrism, stopProcess } from '../../src/tools/mock/main.ts'
import { operations, type Surface } from '../operations/document.ts'
import type { RawRequest } from '../operations/raw-http.ts'
import { casesForOperation, casesWithoutOperation, type ParityCase } from '../parity/cases.ts'
import { type Comparison, describeUnpermitted, sendToReference } from '../parity/compare.ts'
import type { Difference } from '../parity/differences.ts'
import { noResponse, prismDifferences } from '../parity/prism-differences.ts'
import { type Outcome, sendRequest, toOutcome } from '../parity/servers.ts'
import { freePort } from '../support/free-port.ts'
import { startTestService, type TestService, until } from '../support/service.ts'

let service: TestService
let prisms: Record<Surface, Awaited<ReturnType<typeof startPrism>>>

/** Without its log, which fails on some requests and ends the process. */
async function startPrism(name: DocumentName) {
  const port = await freePort()
  const child = spawnPrism('mock', name, ['--port', String(port), '--verboseLevel', 'silent'], 'ignore')
  const url = `http://127.0.0.1:${port}`
  await until('Prism listens', () => fetch(url).then(Boolean, () => false))
  return { url, child }
}

beforeAll(async () => {
  service = await startTestService({ worker: false })
  const [execution, browserContext] = await Promise.all([
    startPrism('execution.v1'),
    startPrism('browser-context.alpha'),
  ])
  prisms = { execution, browserContext }
})
afterAll(async () => {
  await Promise.all([stopProcess(prisms.execution.child), stopProcess(prisms.browserContext.child), service.stop()])
})

const waitMilliseconds = 150

/** Prism has not responded if it responds to three later requests first. */
async function askPrism(each: ParityCase, request: RawRequest | string): Promise<Outcome> {
  const { url } = prisms[each.surface]
  const finished = new AbortController()
  const expectNoResponse = async () => {
    await setTimeout(waitMilliseconds, undefined, { signal: finished.signal })
    for (let count = 0; count < 3; count++) await fetch(`${url}/`)
    return noResponse
  }
  const response = sendRequest(url, request).then((received) => toOutcome(each.operation, received))
  const noResponseUnlessFinished = expectNoResponse().catch((error) =>
    finished.signal.aborted ? noResponse : Promise.reject(error),
  )
  return Promise.race([response, noResponseUnlessFinished]).finally(() => finished.abort())
}

test('prism mock differs from the service in exactly the listed ways', { timeout: 1_200_000 }, async () => {
  const cases = [...operations.flatMap(casesForOperation), ...casesWithoutOperation()]
  const differences: Comparison[] = []
  for await (const { each, base, service: expected } of sendToReference(service, cases)) {
    const outcome = await askPrism(each, each.request(base))
    // Every response of Prism lacks Cache-Control, at which validation stops.
    const { violation: _, ...rest } = outcome
    const other = outcome === noResponse ? outcome : rest
    if (JSON.stringify(expected) !== JSON.stringify(other)) differences.push({ each, service: expected, other })
  }
  const seen = new Set<Difference>()
  expect(describeUnpermitted(differences, prismDifferences, seen)).toEqual([])
  expect(prismDifferences.filter((difference) => !seen.has(difference)).map(({ what }) => what)).toEqual([])
})

test('the decision about the mock lists these differences', () => {
  const text = readFileSync('docs/decisions/0012-mock.md', 'utf8')
  const listed = text.split('<!-- differences -->')[1]?.split('<!-- /differences -->')[0]?.trim()
  expect(listed).toBe(prismDifferences.map(({ what, why }) => `- **${what}.** ${why}`).join('\n'))
})
