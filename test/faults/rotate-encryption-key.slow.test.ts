/** `rotate-encryption-key` during operation: nothing fails, and nothing stays encrypted with the old key. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, type TestContext, test } from 'vitest'
import { secretsAad } from '../../src/domain/runs/run.ts'
import { deriveKey, Encryption, FixedKeys, keyBytes } from '../../src/storage/encryption.ts'
import { createKeyFile, KeyFile, keyFilePath } from '../../src/storage/key-file.ts'
import { callerOf, clientOf, ownInstallation, queue, untilStatus } from '../e2e/caller.ts'
import { signIn, Visitor } from '../support/dashboard.ts'
import { type Installation, runCommand } from '../support/installation.ts'
import { main, until } from '../support/service.ts'

const linesOf = ({ dataDirectory }: Installation) =>
  readFileSync(keyFilePath(dataDirectory), 'utf8').trimEnd().split('\n')

interface SecretRow {
  id: string
  account_id: string
  secrets: Uint8Array
}

function databaseOf(context: TestContext, { dataDirectory }: Installation): DatabaseSync {
  const database = new DatabaseSync(join(dataDirectory, 'service.db'), { timeout: 5000 })
  context.onTestFinished(() => database.close())
  return database
}

function secretsIn(database: DatabaseSync): SecretRow[] {
  const rows = database.prepare('SELECT id, account_id, secrets FROM runs WHERE secrets IS NOT NULL').all()
  return rows as unknown as SecretRow[]
}

/** The ids of the keys that encrypt anything in the store. */
function keysInUse(database: DatabaseSync): string[] {
  const ciphertext =
    'SELECT secrets AS it FROM runs UNION ALL SELECT value FROM run_steps UNION ALL SELECT value FROM encryption_check'
  const rows = database.prepare(`SELECT DISTINCT hex(substr(it, 2, 4)) AS id FROM (${ciphertext}) WHERE it IS NOT NULL`)
  return rows.all().map(({ id }) => String(id).toLowerCase())
}

const idOf = (line = '') => deriveKey(Buffer.from(line, 'base64')).id.toString('hex')

function expectOpened(rows: readonly SecretRow[], encryption: Encryption): void {
  for (const { id, account_id, secrets } of rows) {
    const opened = JSON.parse(encryption.decrypt(secrets, secretsAad(account_id, id)))
    expect(opened).toEqual({ '/token': expect.stringContaining('a secret of ') })
  }
}

/** Queues runs with secrets. */
function seed(database: DatabaseSync, encryption: Encryption, count: number): void {
  database.exec("BEGIN; INSERT INTO accounts (id, name, scopes_enabled, created_at) VALUES ('a', '', 0, 0)")
  const insert = database.prepare(`INSERT INTO runs
    (id, account_id, workflow_id, workflow_version, status, priority, variables, created_at, secrets)
    VALUES (?, 'a', 'greet', '1.0.0', 'succeeded', 0, '{}', 0, ?)`)
  for (let index = 0; index < count; index += 1) {
    const id = crypto.randomUUID()
    insert.run(id, encryption.encrypt(`{"/token":"a secret of ${index}"}`, secretsAad('a', id)))
  }
  database.exec('COMMIT')
}

const secretOf = (index: number) => ({ name: 'Ada', token: `a secret of ${index}` })

describe.concurrent('rotate-encryption-key', () => {
  test('run twice at the same time, while runs with secrets execute, leaves nothing under an older key', async (context) => {
    const installation = await ownInstallation(context)
    const service = await installation.start()
    const { account, client } = await callerOf(installation, service)
    const person = await signIn({ ...service, settings: installation.settings })
    const database = databaseOf(context, installation)
    const listing = { params: { query: { limit: 1 } } }
    const replayed = { 'Idempotency-Key': 'before-the-rotation' }
    const first = await queue(client, 'greet', secretOf(0), {}, replayed)
    await queue(client, 'greet', secretOf(1))
    const cursor = (await client.listRuns(listing)).data?.nextCursor ?? ''

    let rotating = true
    const queued: { id: string }[] = []
    const call = async () => {
      while (rotating) queued.push((await queue(client, 'greet', secretOf(queued.length))).run)
    }
    const callers = [call(), call()]
    await until('runs are queued', () => queued.length > 50)
    const rotations = await Promise.all([
      installation.runCommand('rotate-encryption-key'),
      installation.runCommand('rotate-encryption-key'),
    ])
    rotating = false
    await Promise.all(callers)
    for (const { code, stdout, stderr } of rotations) {
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout).toMatch(/^Re-encrypted \d+ values?\. Older keys stay in .*encryption\.key, because older backups/m)
    }

    const lines = linesOf(installation)
    expect(lines).toHaveLength(3)
    expect(keysInUse(database)).toEqual([idOf(lines[0])])
    expectOpened(secretsIn(database), new Encryption(new FixedKeys([Buffer.from(lines[0] ?? '', 'base64')])))
    for (const run of queued) await untilStatus(client, run, 'succeeded')

    const survives = async (at: typeof client, url: string) => {
      const again = await queue(at, 'greet', secretOf(0), {}, replayed)
      expect([again.run.id, again.response.headers.get('idempotent-replayed')]).toEqual([first.run.id, 'true'])
      const page = await at.listRuns({ params: { query: { limit: 1, cursor } } })
      expect(page.data?.data).toMatchObject([{ id: first.run.id }])
      const visitor = new Visitor(url)
      for (const cookie of person.visitor.cookies) visitor.cookies.set(...cookie)
      expect((await visitor.get('/')).status).toBe(200)
    }
    await survives(client, service.dashboardUrl)
    await service.stop()
    const restarted = await installation.start('service ready')
    await survives(clientOf(restarted, account.key), restarted.dashboardUrl)
  })

  test('that is killed at any point is completed by the next call', async (context) => {
    const installation = await ownInstallation(context)
    const path = keyFilePath(installation.dataDirectory)
    createKeyFile(path)
    const [oldest] = linesOf(installation)
    const database = databaseOf(context, installation)
    seed(database, new Encryption(new KeyFile(path)), 1500)
    const points: [string, () => boolean][] = [
      ['the new key exists', () => linesOf(installation).length === 2],
      ['some values are under the new key', () => keysInUse(database).length > 1],
    ]
    for (const [what, condition] of points) {
      const child = spawn(process.execPath, [main, 'rotate-encryption-key'], {
        env: { ...process.env, ...installation.settings },
      })
      const ended = once(child, 'close')
      // The write lock keeps it from going on before it is killed.
      await until(what, () => {
        database.exec('BEGIN IMMEDIATE')
        if (condition()) return true
        database.exec('ROLLBACK')
        return false
      })
      child.kill('SIGKILL')
      expect(await ended).toEqual([null, 'SIGKILL'])
      database.exec('ROLLBACK')
      expect(keysInUse(database)).toContain(idOf(oldest))
      expectOpened(secretsIn(database), new Encryption(new KeyFile(path)))
    }
    const { code, stdout } = await installation.runCommand('rotate-encryption-key')
    // Includes the value that verifies the key.
    expect([code, stdout.match(/^Re-encrypted .* values/m)?.[0]]).toEqual([0, 'Re-encrypted 1501 values'])
    expect(keysInUse(database)).toEqual([idOf(linesOf(installation)[0])])
    expect(linesOf(installation)).toHaveLength(4)
    expectOpened(secretsIn(database), new Encryption(new KeyFile(path)))
  })

  test('with keys from the environment re-encrypts, creates no key, and explains how to rotate', async (context) => {
    const [older, newer] = [randomBytes(keyBytes), randomBytes(keyBytes)]
    const before = { ENCRYPTION_KEY: older.toString('base64') }
    const after = { ENCRYPTION_KEY: newer.toString('base64'), ENCRYPTION_KEY_PREVIOUS: before.ENCRYPTION_KEY }
    const installation = await ownInstallation(context)
    const rotate = (changes: Record<string, string>) =>
      runCommand(['rotate-encryption-key'], { ...installation.settings, ...changes })
    const nothing = await rotate(before)
    expect(nothing).toMatchObject({ code: 0, stderr: '' })
    expect(nothing.stdout).toMatch(
      /^Nothing is encrypted with an older key\. To rotate the key:.*ENCRYPTION_KEY_PREVIOUS/s,
    )
    const database = databaseOf(context, installation)
    seed(database, new Encryption(new FixedKeys([older])), 3)
    expect(await rotate(after)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^Re-encrypted 4 values\. Keep the keys of ENCRYPTION_KEY_PREVIOUS: older backups/),
    })
    expectOpened(secretsIn(database), new Encryption(new FixedKeys([newer])))
    expect(existsSync(keyFilePath(installation.dataDirectory))).toBe(false)
    expect(await rotate(before)).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'The store was encrypted with another key: set ENCRYPTION_KEY to that key, or add it to ENCRYPTION_KEY_PREVIOUS.\n',
    })
  })
})
