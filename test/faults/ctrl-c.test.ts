/** Ctrl-C in a terminal, which tells every process of the service at the same moment, and some of them again. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { newInstallation } from '../support/installation.ts'
import { until } from '../support/service.ts'

test('one press lets requests and runs end as they should, and the next start goes on with what was handed back', async () => {
  const installation = await newInstallation({ SHUTDOWN_SECONDS: '1' })
  onTestFinished(installation.remove)
  const { key } = await installation.createAccount()
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const file = join(installation.dataDirectory, 'release')
  const first = await installation.start()
  const queue = `${first.executionUrl}/v1/execution/queue-remote/hold`
  const queued = await fetch(queue, { method: 'PUT', headers, body: JSON.stringify({ variableData: { file } }) })
  const { id } = (await queued.json()) as { id: string }
  const read = async (url: string) => (await fetch(`${url}/v1/execution/runs/${id}`, { headers })).json()
  await until('the run is running', async () => (await read(first.executionUrl)).status === 'running')

  process.kill(-first.pid, 'SIGINT')
  process.kill(-first.pid, 'SIGINT')
  expect(await first.ended).toEqual({ code: 0, signal: null })
  for (const msg of ['service stopped', 'worker stopped']) expect(first.log.map((line) => line.msg)).toContain(msg)
  await until('nothing of it is left', () => !first.anyAlive())

  writeFileSync(file, '')
  const second = await installation.start()
  const run = await until('the run has ended', async () => {
    const now = await read(second.executionUrl)
    return now.finishedAt && now
  })
  expect(run).toMatchObject({ status: 'succeeded', attempts: 2 })
})
