/** Limits hold across all processes of an installation. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Installation, newInstallation, type ServiceProcess } from '../support/installation.ts'

const requestsPerMinute = 100
const queuedRunsMax = 40

let installation: Installation
let services: ServiceProcess[]

beforeAll(async () => {
  installation = await newInstallation({
    RATE_LIMIT_PER_MINUTE: String(requestsPerMinute),
    QUEUED_RUNS_MAX: String(queuedRunsMax),
  })
  services = await Promise.all([installation.start('service ready'), installation.start('service ready')])
})

afterAll(() => installation?.remove())

/** Sends all requests at the same time, to the processes alternately, and returns their results. */
async function sendAll(count: number, send: (service: ServiceProcess, index: number) => Promise<Response>) {
  const sending = Array.from({ length: count }, (_, index) => send(services[index % 2] as ServiceProcess, index))
  return Promise.all(
    (await Promise.all(sending)).map(async (response) => {
      if (response.status !== 429) return response.status
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
      return ((await response.json()) as { type: string }).type
    }),
  )
}

test('a key with a limit of 100 requests per minute makes exactly 100, over two processes and both APIs', async () => {
  const { key } = await installation.createAccount()
  const responses = await sendAll(300, ({ executionUrl, browserContextUrl }, index) =>
    index % 4 < 2
      ? fetch(`${executionUrl}/v1/execution/workflows`, { headers: { Authorization: `Bearer ${key}` } })
      : fetch(`${browserContextUrl}/alpha/browser-contexts`, { headers: { 'x-service-api-key': key } }),
  )
  expect(responses.filter((response) => response === 200)).toHaveLength(requestsPerMinute)
  expect(responses.filter((response) => response === '/docs/errors#rate-limited')).toHaveLength(300 - requestsPerMinute)
})

test('an account with a limit of 40 queued runs gets exactly 40 of 100 sent to two processes', async () => {
  const { key } = await installation.createAccount()
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const body = JSON.stringify({ variableData: { name: 'Ada' } })
  const responses = await sendAll(requestsPerMinute, ({ executionUrl }) =>
    fetch(`${executionUrl}/v1/execution/queue-remote/greet?delaySeconds=3600`, { method: 'PUT', headers, body }),
  )
  expect(responses.filter((response) => response === 202)).toHaveLength(queuedRunsMax)
  const refused = responses.filter((response) => response === '/docs/errors#too-many-queued-runs')
  expect(refused).toHaveLength(requestsPerMinute - queuedRunsMax)
})
