/** The management address reports health and metrics, and reveals nothing internal. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService, until } from '../support/service.ts'
import { sendRaw } from './raw-http.ts'
import { send } from './requests.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ worker: false })
})
afterAll(() => service.stop())

const get = (path: string) => sendRaw(service.managementUrl, { method: 'GET', path })

test('the service is ready while the store is readable, and alive in any case', async () => {
  expect(await get('/readyz')).toMatchObject({ status: 200, text: 'ready\n' })
  await service.whileUnreadable(async () => {
    for (let count = 0; count < 3; count += 1) {
      expect(await get('/readyz')).toMatchObject({ status: 503, text: 'not ready\n' })
    }
    expect(await get('/livez')).toMatchObject({ status: 200, text: 'alive\n' })
  })
  expect(await get('/readyz')).toMatchObject({ status: 200, text: 'ready\n' })
  // The log has the reason once for each outage.
  const lines = service.log.filter(({ msg }) => /ready/.test(msg) && msg !== 'service ready')
  expect(lines).toMatchObject([
    { level: 40, msg: 'store unavailable; not ready', err: { message: expect.stringMatching(/./) } },
    { level: 30, msg: 'store available; ready' },
  ])
})

test('the metrics count responses by operation and status', async () => {
  const { key } = await service.createAccount()
  await send(service, 'listRuns', key).expect(200)
  await send(service, 'listRuns', crypto.randomUUID()).expect(401)
  const { text } = await get('/metrics')
  for (const status of [200, 401]) {
    const labels = `surface="execution",operation="listRuns",status="${status}",process="service"`
    expect(text).toContain(`execution_service_request_duration_seconds_count{${labels}} 1\n`)
  }
})

test('without a readable store, the metrics that need none are served and reveal nothing internal', async () => {
  const isUnknown = (text: string, name: string) => text.includes(`# TYPE execution_service_${name} gauge\n\n`)
  const { status, text } = await service.whileUnreadable(() =>
    // Earlier values are cached for a while.
    until('the cached values expire', async () => {
      const response = await get('/metrics')
      return isUnknown(response.text, 'waiting_runs') && response
    }),
  )
  expect(text).not.toMatch(/node_modules|\.ts:|not a database/)
  expect(status).toBe(200)
  expect(text).toMatch(/^process_cpu_seconds_total\{process="service"\} /m)
  expect(text).toMatch(/^execution_service_ready\{process="service"\} 0$/m)
  // Unknown values are absent, not 0.
  for (const name of ['waiting_runs', 'running_runs', 'oldest_waiting_run_seconds', 'workers', 'worker_slots']) {
    expect([name, isUnknown(text, name)]).toEqual([name, true])
  }
})
