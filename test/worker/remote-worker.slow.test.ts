/** A worker of this package that reaches the service over HTTP alone. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { send } from '../operations/requests.ts'
import { main, startTestService, type TestAccount, type TestService } from '../support/service.ts'
import { waitLimits } from '../support/timeouts.ts'

let service: TestService
let account: TestAccount
let worker: ChildProcess
const directory = mkdtempSync(join(tmpdir(), 'remote-worker-'))
const log: string[] = []

beforeAll(async () => {
  service = await startTestService({ worker: false })
  account = await service.createAccount()
  // Neither the data directory nor a database: only the address and the key.
  const { PATH = '' } = process.env
  const environment = { PATH, API_KEY: account.key, LOG_LEVEL: 'debug' }
  const args = [main, 'worker', '--url', service.executionUrl]
  worker = spawn(process.execPath, args, { cwd: directory, env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
  for (const stream of [worker.stdout, worker.stderr]) stream?.on('data', (data) => log.push(String(data)))
})
afterAll(async () => {
  if (worker?.exitCode === null) {
    worker.kill('SIGTERM')
    await once(worker, 'exit')
  }
  await service?.stop()
})

async function execute(workflowId: string, variableData: object, limits = waitLimits) {
  const queued = await send(service, 'queueRemoteRun', account.key, { path: { workflowId }, body: { variableData } })
  expect(queued.status, queued.text).toBe(202)
  return vi.waitUntil(async () => {
    const { body } = await send(service, 'getRun', account.key, { path: { runId: queued.body.id } })
    return body.finishedAt !== null && body
  }, limits)
}

test('it executes a deployed workflow, and writes nothing into its directory', async () => {
  const run = await execute('greet', { name: 'Ada' })
  expect(run, log.join('')).toMatchObject({ status: 'succeeded', attempts: 1 })
  expect(readdirSync(directory)).toEqual([])
})
