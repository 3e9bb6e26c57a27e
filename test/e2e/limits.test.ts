/** Journeys of callers who meet a limit: it is the same, whichever process of an installation answers them. */
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

/** All at the same time, to the processes in turn; tells what came of each. */
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

test('a key that may make a hundred requests in a minute makes a hundred, over two processes and both APIs', async () => {
  const { key } = await installation.createAccount()
  const answers = await sendAll(300, ({ executionUrl, browserContextUrl }, index) =>
    index % 4 < 2
      ? fetch(`${executionUrl}/v1/execution/workflows`, { headers: { Authorization: `Bearer ${key}` } })
      : fetch(`${browserContextUrl}/alpha/browser-contexts`, { headers: { 'x-service-api-key': key } }),
  )
  expect(answers.filter((answer) => answer === 200)).toHaveLength(requestsPerMinute)
  expect(answers.filter((answer) => answer === '/docs/errors#rate-limited')).toHaveLength(300 - requestsPerMinute)
})

test('an account that may have forty queued runs gets forty of a hundred that two processes are sent', async () => {
  const { key } = await installation.createAccount()
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const body = JSON.stringify({ variableData: { name: 'Ada' } })
  const answers = await sendAll(requestsPerMinute, ({ executionUrl }) =>
    fetch(`${executionUrl}/v1/execution/queue-remote/greet?delaySeconds=3600`, { method: 'PUT', headers, body }),
  )
  expect(answers.filter((answer) => answer === 202)).toHaveLength(queuedRunsMax)
  const refused = answers.filter((answer) => answer === '/docs/errors#too-many-queued-runs')
  expect(refused).toHaveLength(requestsPerMinute - queuedRunsMax)
})
