/** `migrate-store` as its operator runs it: a process, a service before, during and after it, and kill -9. */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { expect, type TestContext, test } from 'vitest'
import { createBrowserContextClient, type Run, unwrap } from '../../src/client/index.ts'
import { callerOf, clientOf, fileIn, ownInstallation, queue, read, untilStatus } from '../e2e/caller.ts'
import {
  capture,
  cleanEnvironment,
  type Installation,
  type ServiceProcess,
  waitForExit,
} from '../support/installation.ts'
import { postgres } from '../support/postgres.ts'
import { main, until } from '../support/service.ts'

const state = { cookies: [], origins: [{ origin: 'https://shop.example', localStorage: [{ name: 'a', value: 'b' }] }] }

async function emptyDatabase({ onTestFinished }: TestContext): Promise<string> {
  const url = await postgres.prepare({ empty: true })
  onTestFinished(() => postgres.remove(url))
  return url
}

/** The same data directory, and so the same key file, on the other store. */
function onPostgres(context: TestContext, { dataDirectory }: Installation, url: string): Promise<Installation> {
  return ownInstallation(context, { DATA_DIR: dataDirectory, DATABASE_URL: url })
}

/** Starts the command. It is killed after the test. */
function startMigration({ onTestFinished }: TestContext, { settings }: Installation, url: string, ...more: string[]) {
  const child: ChildProcess = spawn(process.execPath, [main, 'migrate-store', '--to', url, ...more], {
    env: cleanEnvironment(settings),
  })
  const ended = waitForExit(child)
  const output = capture(child, () => {})
  onTestFinished(() => void child.kill('SIGKILL'))
  return { child, ended, output }
}

async function firstColumn(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query({ text: sql, rowMode: 'array' }).finally(() => client.end())
  return rows.map(([value]) => value)
}

test('a stopped service goes on with PostgreSQL: its runs, keys, contexts and queue', async (context) => {
  const installation = await ownInstallation(context)
  const service = await installation.start()
  const { account, client } = await callerOf(installation, service)
  const deleted = await account.createKey()
  await account.deleteKey(deleted.id)
  const contexts = createBrowserContextClient({ apiKey: account.key, baseUrl: service.browserContextUrl })
  const { id: browserContextId } = unwrap(await contexts.createBrowserContext({}))
  await contexts.putStorageState({ params: { path: { browserContextId } }, body: state })
  const secret = (index: number) => ({ name: 'Ada', token: `a secret of ${index}` })
  const finished: Run[] = []
  for (let index = 0; index < 10; index += 1) {
    const { run } = await queue(client, 'greet', secret(index))
    finished.push(await untilStatus(client, run, 'succeeded'))
  }
  await service.stop()
  const withoutWorker = await installation.startOnly('execution')
  const late = clientOf(withoutWorker, account.key)
  const queued: Run[] = []
  for (let index = 0; index < 10; index += 1) {
    const header = { 'Idempotency-Key': `order-${index}` }
    queued.push((await queue(late, 'greet', secret(index), {}, header)).run)
  }
  const delayed = (await queue(late, 'greet', secret(0), { delaySeconds: 3600 })).run
  await withoutWorker.stop()
  await installation.closeAdministration()

  const url = await emptyDatabase(context)
  expect(await installation.runCommand('migrate-store', '--to', url)).toMatchObject({ code: 0, stderr: '' })

  const target = await onPostgres(context, installation, url)
  const successor = await target.start()
  const caller = clientOf(successor, account.key)
  for (const run of finished) expect(await read(caller, run)).toEqual(run)
  for (const run of queued) await untilStatus(caller, run, 'succeeded')
  const { status, availableAt } = await read(caller, delayed)
  expect({ status, availableAt }).toEqual({ status: 'queued', availableAt: delayed.availableAt })
  for (const [index, { id }] of queued.entries()) {
    const again = await queue(caller, 'greet', secret(index), {}, { 'Idempotency-Key': `order-${index}` })
    expect(again.run.id).toBe(id)
  }
  const copies = createBrowserContextClient({ apiKey: account.key, baseUrl: successor.browserContextUrl })
  expect(unwrap(await copies.getStorageState({ params: { path: { browserContextId } } }))).toEqual(state)
  const refused = await clientOf(successor, deleted.value).getRun({ params: { path: { runId: delayed.id } } })
  expect(refused.response.status).toBe(401)
})

const runs = 20_000

/** Inserts finished runs with an event each. */
function fill({ dataDirectory }: Installation): void {
  const database = new DatabaseSync(join(dataDirectory, 'service.db'), { timeout: 5000 })
  database.exec(`BEGIN;
    INSERT INTO accounts (id, name, scopes_enabled, created_at) VALUES ('a', '', 0, 0);
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${runs})
    INSERT INTO runs (id, account_id, workflow_id, workflow_version, status, priority, variables, created_at)
    SELECT printf('run-%08d', n), 'a', 'greet', '1.0.0', 'succeeded', 0, '{}', 0 FROM numbers;
    INSERT INTO run_events (run_id, sequence, at, type, data) SELECT id, 1, 0, 'finished', '{}' FROM runs;
    COMMIT`)
  database.close()
}

test('a copy that is killed several times is completed by the next command, with every row once', async (context) => {
  const installation = await ownInstallation(context)
  await installation.closeAdministration()
  fill(installation)
  const url = await emptyDatabase(context)
  const isCopied = async (table: string, count: number) => {
    const [name] = await firstColumn(url, `SELECT to_regclass('execution_service_copy.${table}')::text`)
    if (!name) return false
    const [found] = await firstColumn(url, `SELECT count(*)::int FROM ${name}`)
    return Number(found) >= count
  }
  for (const [table, count] of [
    ['accounts', 1],
    ['runs', 1],
    ['runs', runs / 2],
    ['run_events', 1],
  ] as const) {
    const { child, ended, output } = startMigration(context, installation, url)
    await until(`${count} rows of ${table} are copied`, () => isCopied(table, count))
    child.kill('SIGKILL')
    expect(await ended, output()).toEqual({ code: null, signal: 'SIGKILL' })
    expect(await firstColumn(url, "SELECT 1 FROM pg_namespace WHERE nspname = 'execution_service'")).toEqual([])
  }

  const { code, stdout, stderr } = await installation.runCommand('migrate-store', '--to', url)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toContain('Resuming the copy that was interrupted')
  expect(stdout).not.toContain('Starting over.')
  for (const table of ['runs', 'run_events']) {
    expect(stdout).toContain(`${table}: ${runs} rows copied and verified`)
    expect(await firstColumn(url, `SELECT count(*)::int FROM execution_service.${table}`)).toEqual([runs])
  }
})

/** Queues runs and reads them until it is stopped. Keeps what was answered. */
function keepCalling({ executionUrl }: ServiceProcess, key: string) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const answers = { accepted: [] as string[], refused: [] as (string | null)[], reads: 0, others: [] as unknown[] }
  let calling = true
  const put = async (index: number) => {
    const body = JSON.stringify({ variableData: { name: 'Ada', token: `a secret of ${index}` } })
    const response = await fetch(`${executionUrl}/v1/execution/queue-remote/greet`, { method: 'PUT', headers, body })
    const answer = (await response.json()) as { id: string }
    if (response.status === 202) answers.accepted.push(answer.id)
    else if (response.status === 503) answers.refused.push(response.headers.get('retry-after'))
    else answers.others.push([response.status, answer])
  }
  const get = async () => {
    const response = await fetch(`${executionUrl}/v1/execution/runs?limit=5`, { headers })
    await response.text()
    if (response.status === 200) answers.reads += 1
    else answers.others.push(response.status)
    // Leaves the machine to the writers.
    await delay(10)
  }
  const repeat = async (call: (index: number) => Promise<void>) => {
    for (let index = 0; calling; index += 1) await call(index)
  }
  const callers = Promise.all([repeat(put), repeat(put), repeat(put), repeat(get)])
  const stop = async () => {
    calling = false
    await callers
  }
  return { answers, stop }
}

/** A service under load while the command keeps its store locked, after the copy. */
async function copyWhileServing(context: TestContext) {
  const installation = await ownInstallation(context, {
    RATE_LIMIT_PER_MINUTE: '1000000',
    SHUTDOWN_SECONDS: '1',
    ABORT_GRACE_SECONDS: '1',
  })
  const service = await installation.start()
  const { account, client } = await callerOf(installation, service)
  const { file, release } = fileIn(installation)
  const { run: running } = await queue(client, 'hold', { file })
  await untilStatus(client, running, 'running')
  const url = await emptyDatabase(context)
  const { answers, stop } = keepCalling(service, account.key)
  answers.accepted.push(running.id)
  await until('runs are queued', () => answers.accepted.length > 100)
  const migration = startMigration(context, installation, url, '--serving')
  await until('the copy is complete', () => {
    if (migration.child.exitCode !== null) throw new Error(migration.output())
    return migration.output().includes('press Ctrl+C')
  })
  const readsBefore = answers.reads
  await until('writes are refused', () => answers.refused.length >= 3)
  expect(answers.reads).toBeGreaterThan(readsBefore)
  expect(answers.refused).not.toContain(null)
  return { installation, service, account, url, answers, stop, migration, release }
}

const idsIn = (url: string) => firstColumn(url, 'SELECT id FROM execution_service.runs ORDER BY id')

test('--serving: every run that was accepted is in the copy, and the old store accepts after Ctrl+C', async (context) => {
  const { answers, stop, url, migration } = await copyWhileServing(context)
  const accepted = [...answers.accepted]
  expect(await idsIn(url)).toEqual(accepted.toSorted())
  migration.child.kill('SIGINT')
  expect(await migration.ended).toEqual({ code: 0, signal: null })
  await until('the old store accepts again', () => answers.accepted.length > accepted.length)
  await stop()
  expect(answers.others).toEqual([])
})

test('--serving: a service that executes a run stops before Ctrl+C, and PostgreSQL finishes all runs', async (context) => {
  const { installation, service, account, answers, stop, url, migration, release } = await copyWhileServing(context)
  await stop()
  expect(answers.others).toEqual([])
  // Its worker has an attempt whose outcome the locked store does not take.
  expect(await service.stop(), service.output().slice(-5000)).toEqual({ code: 0, signal: null })
  expect(service.anyAlive()).toBe(false)
  migration.child.kill('SIGINT')
  expect(await migration.ended).toEqual({ code: 0, signal: null })
  const target = await onPostgres(context, installation, url)
  const successor = await target.start()
  release()
  const caller = clientOf(successor, account.key)
  for (const id of answers.accepted) await untilStatus(caller, { id }, 'succeeded')
  expect(await idsIn(url)).toEqual(answers.accepted.toSorted())
})
