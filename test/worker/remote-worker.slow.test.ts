/** A worker of this package that reaches the service over HTTP alone. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { send } from '../operations/requests.ts'
import { main, startTestService, type TestAccount, type TestService } from '../support/service.ts'
import { waitLimits } from '../support/timeouts.ts'

let service: TestService
let account: TestAccount
let worker: ChildProcess
const directory = mkdtempSync(join(tmpdir(), 'remote-worker-'))
const modules = join(directory, 'modules.txt')
const recorder = fileURLToPath(new URL('../support/loaded-modules.ts', import.meta.url))
const log: string[] = []

beforeAll(async () => {
  service = await startTestService({ worker: false })
  account = await service.createAccount()
  // Of the code of the deployment, the worker gets what these workflows need.
  const workflowIds = ['greet', 'approve', 'hold']
  const key = await account.createKey({ scopes: ['runs:execute'], workflowIds })
  // Neither the data directory nor a database: only the address and the key.
  const { PATH = '' } = process.env
  const environment = {
    PATH,
    API_KEY: key.value,
    LOG_LEVEL: 'debug',
    LOADED_MODULES: modules,
    RECORDED: '/src/storage/(?:sqlite|postgres|runs|migrations)/|/kysely/|/pg/',
  }
  const args = ['--import', recorder, ...workerArgs()]
  worker = spawn(process.execPath, args, { cwd: directory, env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
  for (const stream of [worker.stdout, worker.stderr]) stream?.on('data', (data) => log.push(String(data)))
})
afterAll(async () => {
  if (worker?.exitCode === null) {
    worker.kill('SIGTERM')
    await once(worker, 'exit')
  }
  await service?.stop()
  rmSync(directory, { recursive: true })
})

function workerArgs(): string[] {
  return [main, 'worker', '--url', service.executionUrl]
}

/** Modules of the store that the worker itself has loaded. */
function loaded(): string[] {
  if (!existsSync(modules)) return []
  const lines = readFileSync(modules, 'utf8').trim().split('\n')
  const own = lines.filter((line) => line.startsWith(`${worker.pid} `))
  return [...new Set(own.map((line) => line.replace(/^.*\/(src\/|node_modules\/)/, '$1')))].sort()
}

async function execute(workflowId: string, variableData: object, limits = waitLimits) {
  return ended(await queue(workflowId, variableData), limits)
}

async function queue(workflowId: string, variableData: object): Promise<string> {
  const queued = await send(service, 'queueRemoteRun', account.key, { path: { workflowId }, body: { variableData } })
  expect(queued.status, queued.text).toBe(202)
  return queued.body.id
}

async function get(runId: string) {
  const { body } = await send(service, 'getRun', account.key, { path: { runId } }).expect(200)
  return body
}

function ended(runId: string, limits = waitLimits) {
  return vi.waitUntil(async () => {
    const run = await get(runId)
    return run.finishedAt !== null && run
  }, limits)
}

test('it executes a deployed workflow, and writes nothing into its directory', async () => {
  const run = await execute('greet', { name: 'Ada' })
  expect(run, log.join('')).toMatchObject({ status: 'succeeded', attempts: 1 })
  expect(readdirSync(directory).filter((name) => name !== 'modules.txt')).toEqual([])
  expect(loaded()).toEqual([])
})

test('steps, logs, artifacts, waits and failures are as with a worker of the service', async () => {
  const run = await queue('approve', { amount: 5 })
  await vi.waitUntil(async () => (await get(run)).waitingFor === 'answer', waitLimits)
  const answer = { path: { runId: run, name: 'approval' }, body: { value: { approved: true } } }
  await send(service, 'completeWait', account.key, answer).expect(200)
  const approved = await ended(run)
  expect(approved).toMatchObject({ status: 'succeeded', attempts: 1 })
  expect(approved.attemptHistory.map(({ outcome }: { outcome: string }) => outcome)).toEqual(['waiting', 'succeeded'])
})

test('a worker whose key is deleted stops its code and exits', async () => {
  const other = await service.createAccount()
  const key = await other.createKey({ scopes: ['runs:execute'] })
  const env = { PATH: process.env.PATH, API_KEY: key.value, LEASE_SECONDS: '5' }
  const refused = spawn(process.execPath, workerArgs(), { cwd: directory, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const lines: string[] = []
  for (const stream of [refused.stdout, refused.stderr]) stream.on('data', (data) => lines.push(String(data)))
  const exited = once(refused, 'exit')
  const body = { variableData: { file: join(directory, 'none') } }
  const queued = await send(service, 'queueRemoteRun', other.key, { path: { workflowId: 'hold' }, body }).expect(202)
  const path = { runId: queued.body.id }
  const getStatus = async () => (await send(service, 'getRun', other.key, { path })).body.status
  await vi.waitUntil(async () => (await getStatus()) === 'running', waitLimits)
  await other.deleteKey(key.id)
  expect(await exited, lines.join('')).toEqual([1, null])
  expect(lines.join('')).toContain('the service refuses the API key; exiting')
})

test('a run that is cancelled is aborted', async () => {
  const runId = await queue('hold', { file: join(directory, 'none') })
  await vi.waitUntil(async () => (await get(runId)).status === 'running', waitLimits)
  await send(service, 'cancelRun', account.key, { path: { runId } }).expect(200)
  expect(await ended(runId)).toMatchObject({ status: 'cancelled' })
})
