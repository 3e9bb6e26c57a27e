/** A store written before the dashboard existed: its API keys stay valid, and its account gets an owner who can sign in. */
import { join } from 'node:path'
import { type Migration, Migrator } from 'kysely/migration'
import { expect, test } from 'vitest'
import { SignInLinks } from '../../src/domain/accounts/sign-in-links.ts'
import { Users } from '../../src/domain/accounts/users.ts'
import { hashKeyValue } from '../../src/domain/api-keys/api-key.ts'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { migrationsFor } from '../../src/storage/migrations/migrations.ts'
import { connect, sqliteColumnTypes } from '../../src/storage/sqlite/sqlite-connection.ts'
import { newDirectory, openDomain, queueRun } from '../support/domain.ts'

const runId = '018bcfe5-6800-7000-8000-000000000001'
const values = { good: crypto.randomUUID(), deleted: crypto.randomUUID(), expired: crypto.randomUUID() }

/** Writes a store of that version: an account with its user, three keys and a run. */
async function writeOldStore(location: string): Promise<void> {
  const { database, tx } = connect(join(location, 'service.db'), { readOnly: false })
  const { '0001-initial': initial } = migrationsFor(sqliteColumnTypes)
  const provider = { getMigrations: async () => ({ '0001-initial': initial as Migration }) }
  const { error } = await new Migrator({ db: tx.query, provider }).migrateToLatest()
  if (error) throw error
  database.exec(`
    INSERT INTO accounts (id, name, scopes_enabled, created_at) VALUES ('a', 'Default', 1, 1000);
    INSERT INTO users (id, account_id, name, created_at) VALUES ('u', 'a', 'Owner', 1000);
    INSERT INTO runs (id, account_id, api_key_id, workflow_id, workflow_version, status, priority, variables, created_at)
      VALUES ('${runId}', 'a', 'good', 'anything', '1.0.0', 'queued', 0, '{}', 1000)`)
  const insert = database.prepare(`INSERT INTO api_keys
    (id, account_id, user_id, name, hash, prefix, scopes, created_at, last_used_at, expires_at, expired_at, deleted_at)
    VALUES (?, 'a', 'u', ?, ?, ?, ?, 1000, ?, ?, ?, ?)`)
  const key = (name: keyof typeof values, ...rest: (number | string | null)[]) =>
    insert.run(name, `the ${name} one`, hashKeyValue(values[name]), values[name].slice(0, 8), ...rest)
  key('good', '["runs:read"]', 2000, null, null, null)
  key('deleted', null, null, null, null, 3000)
  key('expired', null, null, 2000, 2000, null)
  database.close()
}

test('API keys from before the dashboard authenticate, and can be listed, rotated and deleted', async (context) => {
  const location = await newDirectory(context)
  await writeOldStore(location)
  const domain = await openDomain(context, { location })
  const { apiKeys } = domain
  const principal = { accountId: 'a', apiKeyId: 'good' }
  expect(await apiKeys.authenticate(values.good)).toEqual({ principal, scopes: ['runs:read'] })
  expect(await apiKeys.authenticate(values.deleted)).toBeUndefined()
  expect(await apiKeys.authenticate(values.expired)).toBeUndefined()
  expect(await apiKeys.list('a')).toMatchObject([
    { id: 'expired', expired: true, lastUsedAt: null, lastUsedBy: null },
    { id: 'good', name: 'the good one', userId: 'u', lastUsedAt: 2000, lastUsedBy: null, expired: false },
  ])
  const successor = await apiKeys.rotate('a', 'good', crypto.randomUUID(), operator)
  expect(await apiKeys.authenticate(values.good)).toBeUndefined()
  expect(await apiKeys.authenticate(successor?.value ?? '')).toMatchObject({ scopes: ['runs:read'] })
  expect(await apiKeys.delete('a', 'expired', operator)).toBe(true)
  expect(await domain.runs.get('a', runId)).toMatchObject({ apiKeyId: 'good', status: 'queued' })
  await queueRun(domain, principal)
})

test('the user from before the dashboard becomes the owner through a welcome link', async (context) => {
  const location = await newDirectory(context)
  await writeOldStore(location)
  const { store, accounts } = await openDomain(context, { location })
  const [links, users] = [new SignInLinks(store), new Users(store)]
  expect(await accounts.createFirst()).toBeUndefined()
  expect(await users.list('a')).toMatchObject([{ id: 'u', name: 'Owner', role: 'owner', email: null }])
  const token = (await links.createFirstWelcomeLink()) ?? ''
  const profile = { name: 'Ada', email: 'ada@example.com', password: 'a difference engine' }
  expect(await links.accept(token, profile)).toMatchObject({ id: 'u', accountId: 'a', role: 'owner' })
  expect(await users.authenticate('ada@example.com', 'a difference engine')).toMatchObject({ id: 'u' })
  expect(await links.createFirstWelcomeLink()).toBeUndefined()
})
