/** `accounts export` and `accounts delete` while the service runs. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { deleteAccount } from '../../src/domain/accounts/account-deletion.ts'
import { exportAccount } from '../../src/domain/accounts/account-export.ts'
import { Accounts } from '../../src/domain/accounts/accounts.ts'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { Deployments } from '../../src/domain/deployments/deployments.ts'
import { encryptedColumns, openEncryption, openStore } from '../../src/domain/installation.ts'
import { accountTables, installationTables } from '../../src/storage/account-rows.ts'
import { Contents } from '../../src/storage/blobs/contents.ts'
import type { Store } from '../../src/storage/store.ts'
import {
  removeDirectory,
  startTestService,
  type TestAccount,
  type TestService,
  temporaryDirectory,
  testWorkflows,
} from '../support/service.ts'
import { snapshotOf } from '../support/snapshots.ts'
import { createOwner } from './filled-account.ts'
import { answeredRun, claimedAttempt, leasedRun, send } from './requests.ts'

let service: TestService
let store: Store
beforeAll(async () => {
  service = await startTestService({ worker: false })
  store = await openStore(readConfig(process.env))
})
afterAll(async () => {
  await store.close()
  await service.stop()
})

async function createFilled(): Promise<TestAccount> {
  const owner = await createOwner(service)
  await answeredRun(service, owner)
  await claimedAttempt(service, owner)
  return owner
}

/** How many rows the account has in each table. */
async function rowsOf({ id }: TestAccount): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { name, isOfAccount } of accountTables) {
    // Maintenance writes these.
    if (name === 'storage_usage' || name === 'storage_days' || name === 'run_events') continue
    const [row] = await service.rows<{ count: number }>(
      `SELECT COUNT(*) AS count FROM ${name} WHERE ${isOfAccount}`,
      id,
    )
    counts[name] = row?.count ?? 0
  }
  return counts
}

const account = async ({ id }: TestAccount) => (await new Accounts(store).get(id)) ?? expect.fail('no account')

test('the rows of each table belong to an account or to the installation', () => {
  const listed = [...accountTables.map(({ name }) => name), ...installationTables]
  expect(new Set(listed).size).toBe(listed.length)
  return expect(tableNames()).resolves.toEqual(listed.toSorted())
})

/** Without the tables that one of the stores alone has. */
async function tableNames(): Promise<string[]> {
  const sql = process.env.DATABASE_URL
    ? "SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema() AND tablename !~ '^(kysely|counters)'"
    : "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'kysely%'"
  return (await service.rows<{ name: string }>(sql)).map(({ name }) => name).toSorted()
}

test('an export has the rows and files of its account alone, with secrets only if they are asked for', async ({
  onTestFinished,
}) => {
  const owner = await createFilled()
  const other = await createFilled()
  const deployments = new Deployments(store)
  const snapshot = await snapshotOf(testWorkflows)
  const { deployment } = await deployments.deploy(snapshot, { accountId: owner.id, by: operator, directory: '/' })
  const encryption = await openEncryption(readConfig(process.env), store)
  const exportTo = async (withSecrets: boolean) => {
    const directory = temporaryDirectory()
    onTestFinished(() => removeDirectory(directory))
    const summary = await exportAccount(store, owner.id, directory, {
      columns: encryptedColumns,
      encryption: withSecrets ? encryption : undefined,
      readFiles: (id) => deployments.readFiles(id),
      contents: new Contents(store),
      now: Date.UTC(2030, 0),
    })
    const lines = (name: string) =>
      readFileSync(join(directory, name), 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line))
    const all = readdirSync(directory, { recursive: true, encoding: 'utf8' })
    const text = all
      .filter((name) => name.endsWith('.jsonl'))
      .map((name) => readFileSync(join(directory, name), 'utf8'))
    return { summary, directory, lines, all, text: text.join('') }
  }

  const { summary, directory, lines, all, text } = await exportTo(false)
  expect(JSON.parse(readFileSync(join(directory, 'export.json'), 'utf8'))).toEqual(summary)
  expect(summary).toMatchObject({ accountId: owner.id, exportedAt: '2030-01-01T00:00:00.000Z', withSecrets: false })
  const counts = summary.lines
  expect(Object.keys(counts).sort()).toEqual(all.filter((name) => name.endsWith('.jsonl')).sort())
  for (const [name, count] of Object.entries(counts)) expect([name, lines(name).length]).toEqual([name, count])
  expect(text).not.toContain(other.id)
  expect(text).not.toContain('canary.example-cookie')
  expect(lines('accounts.jsonl')).toMatchObject([
    { id: owner.id, name: 'Test', createdAt: expect.stringMatching(/Z$/) },
  ])
  expect(lines('accountValues.jsonl').every((line) => !('value' in line))).toBe(true)
  expect(lines('apiKeys.jsonl').every((line) => !('hash' in line))).toBe(true)
  const [artifact] = lines('artifacts.jsonl')
  const content = readFileSync(join(directory, artifact.files[0]))
  expect(content.length).toBe(artifact.sizeBytes)
  expect(statSync(join(directory, artifact.files[0])).mode & 0o777).toBe(0o600)
  const written = lines('deployments.jsonl')
  const paths = snapshot.files.map(({ path }) => join('deployments', deployment.id, path))
  expect(written.find(({ id }) => id === deployment.id).files).toEqual(paths)
  for (const path of paths) expect(statSync(join(directory, path)).isFile()).toBe(true)
  // Of the test's other deployment, whose files are none.
  expect(written.find(({ filesProblem }) => filesProblem)).toMatchObject({
    filesProblem: expect.stringMatching(/^The files of the deployment cannot be read/),
  })

  const exports = () => service.rows("SELECT actor_kind FROM audit_log WHERE action = 'account.exported'")
  expect(await exports()).toEqual([])
  const full = await exportTo(true)
  expect(await exports()).toEqual([{ actor_kind: 'operator' }])
  const values = full.lines('accountValues.jsonl')
  expect(values.length).toBeGreaterThan(0)
  expect(values.every(({ value }) => value !== undefined)).toBe(true)
  expect(full.lines('browserContextVersions.jsonl')).toMatchObject([{ state: { cookies: expect.any(Array) } }])
  expect(full.lines('webhookEndpoints.jsonl')).toMatchObject([{ secret: expect.stringMatching(/^whsec_/) }])
  expect(text).not.toContain('/services/T0')
  expect(full.lines('notificationRules.jsonl')).toMatchObject([
    { target: { url: expect.stringContaining('/services/T0') } },
  ])
})

test('a deletion leaves nothing of its account, ends its keys first, and changes no other', async () => {
  const owner = await createFilled()
  const other = await createFilled()
  const before = await rowsOf(other)
  const had = await rowsOf(owner)
  // The worker has died.
  await service.change('UPDATE runs SET lease_expires_at = 0 WHERE account_id = ? AND status = ?', owner.id, 'running')
  const receipt = await deleteAccount(store, await account(owner), new Contents(store))
  await send(service, 'listRuns', owner.key).expect(401)
  expect(receipt).toMatchObject({ accountId: owner.id, name: 'Test', left: 0 })
  const counted = Object.entries(had).filter(([, count]) => count > 0)
  expect(receipt.deleted).toMatchObject(Object.fromEntries(counted))
  expect(Object.values(await rowsOf(owner)).every((count) => count === 0)).toBe(true)
  expect(await rowsOf(other)).toEqual(before)
  await send(service, 'listRuns', other.key).expect(200)
})

test('a deletion waits for the worker that executes a run', async () => {
  const owner = await service.createAccount()
  const runId = await leasedRun(service, owner)
  const deletion = deleteAccount(store, await account(owner), new Contents(store))
  const read = () => service.rows('SELECT cancel_requested, status FROM runs WHERE id = ?', runId)
  await expect.poll(read).toEqual([{ cancel_requested: 1, status: 'running' }])
  await send(service, 'getRun', owner.key, { path: { runId } }).expect(401)
  await service.change("UPDATE runs SET status = 'cancelled', finished_at = 1 WHERE id = ?", runId)
  expect(await deletion).toMatchObject({ left: 0 })
  expect(await read()).toEqual([])
})
