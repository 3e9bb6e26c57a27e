/** API keys: values, deletion, expiry, limits and scopes. */
import { describe, expect, test, vi } from 'vitest'
import { ApiKeyError } from '../../../src/domain/api-keys/api-key.ts'
import type { NewApiKey } from '../../../src/domain/api-keys/api-keys.ts'
import { RunTokens } from '../../../src/domain/api-keys/run-tokens.ts'
import { operator } from '../../../src/domain/audit-log/audit-log.ts'
import { knownScopes } from '../../../src/openapi/served-documents.ts'
import { StoreUnavailable } from '../../../src/storage/store.ts'
import { type Domain, newAccount, newUser, openDomain, type Test } from '../../support/domain.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

async function openAccount(test: Test, kind: StoreKind, { scopesEnabled = false, now = Date.now } = {}) {
  const domain = await openDomain(test, { kind, now })
  const { id: accountId } = await domain.accounts.create({ name: 'Test', scopesEnabled })
  const userId = await domain.accounts.findAdminId(accountId)
  const key: NewApiKey = { accountId, userId, name: 'Key', scopes: null, expiresAt: null }
  return { domain, accountId, userId, key }
}

/** Creates the keys concurrently, alternating between the processes, and returns how many succeed. */
async function createMany(processes: readonly Domain[], keys: readonly NewApiKey[]): Promise<number> {
  const results = await Promise.allSettled(
    keys.map((key, index) => processes[index % processes.length]?.apiKeys.create(key, operator)),
  )
  const refusals = results.filter((result) => result.status === 'rejected')
  for (const { reason } of refusals) expect(reason).toBeInstanceOf(ApiKeyError)
  return results.length - refusals.length
}

describe.each(stores)('API keys ($name)', (kind) => {
  test('a key is a random UUID of version 4 that authenticates its caller in upper and lower case', async (test) => {
    const { domain, accountId, key } = await openAccount(test, kind)
    const created = await domain.apiKeys.create(key, operator)
    expect(created.value).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(created.prefix).toBe(created.value.slice(0, 8))
    const known = { principal: { accountId, apiKeyId: created.id }, scopes: null }
    expect(await domain.apiKeys.authenticate(created.value)).toEqual(known)
    expect(await domain.apiKeys.authenticate(created.value.toUpperCase())).toEqual(known)
    expect(await domain.apiKeys.authenticate(crypto.randomUUID())).toBeUndefined()
    expect(await domain.apiKeys.authenticate('')).toBeUndefined()
    expect(await domain.apiKeys.authenticate(created.id)).toBeUndefined()
  })

  test('one statement looks up all keys of calls that arrive together, and the next those that arrive meanwhile', async (test) => {
    const { domain, key } = await openAccount(test, kind)
    const keys = [await domain.apiKeys.create(key, operator), await domain.apiKeys.create(key, operator)]
    const all = vi.spyOn(domain.store.read, 'all')
    test.onTestFinished(() => all.mockRestore())
    const meanwhile: Promise<unknown>[] = []
    all.mockImplementationOnce(async (...query) => {
      for (const { value } of keys)
        meanwhile.push(domain.apiKeys.authenticate(value), domain.apiKeys.authenticate(value))
      return domain.store.read.all(...query)
    })
    const callers = await Promise.all(keys.map(({ value }) => domain.apiKeys.authenticate(value)))
    expect(callers.map((caller) => caller?.principal.apiKeyId)).toEqual(keys.map(({ id }) => id))
    expect(await Promise.all(meanwhile)).toEqual(callers.flatMap((caller) => [caller, caller]))
    // The first look-up, its repetition by this test, and the second look-up.
    expect(all).toHaveBeenCalledTimes(3)
  })

  test('a stop does not fail when the store cannot take the time of the last call', async (test) => {
    const { domain, key } = await openAccount(test, kind)
    const { value } = await domain.apiKeys.create(key, operator)
    await domain.apiKeys.authenticate(value)
    const write = vi.spyOn(domain.store, 'write').mockRejectedValue(new StoreUnavailable('database is locked'))
    await domain.apiKeys.close()
    expect(write).toHaveBeenCalledOnce()
    write.mockRestore()
  })

  test('neither the store nor the list of keys contains the value of a key', async (test) => {
    const { domain, accountId, key } = await openAccount(test, kind)
    const { value } = await domain.apiKeys.create({ ...key, name: 'canary-name' }, operator)
    await domain.apiKeys.authenticate(value)
    const contents = await kind.contents(domain.location)
    expect(contents.includes('canary-name')).toBe(true)
    for (const spelling of [value, value.toUpperCase(), value.replaceAll('-', '')]) {
      expect(contents.includes(spelling)).toBe(false)
    }
    expect(contents.includes(Buffer.from(value.replaceAll('-', ''), 'hex'))).toBe(false)
    expect(JSON.stringify(await domain.apiKeys.list(accountId))).not.toContain(value.slice(9))
  })

  test('a deleted key is refused by every process once the deletion has returned', async (test) => {
    const { domain, accountId, key } = await openAccount(test, kind)
    const other = await openDomain(test, { kind, location: domain.location })
    const [deleted, kept] = [await domain.apiKeys.create(key, operator), await domain.apiKeys.create(key, operator)]
    expect(await other.apiKeys.authenticate(deleted.value)).toBeDefined()
    expect(await domain.apiKeys.delete(accountId, deleted.id, operator)).toBe(true)
    expect(await other.apiKeys.authenticate(deleted.value)).toBeUndefined()
    expect(await domain.apiKeys.authenticate(deleted.value)).toBeUndefined()
    expect(await other.apiKeys.authenticate(kept.value)).toBeDefined()
    expect((await domain.apiKeys.list(accountId)).map(({ id }) => id)).toEqual([kept.id])
    expect(await domain.apiKeys.delete(accountId, deleted.id, operator)).toBe(false)
  })

  test('an account cannot list or delete the keys of another account', async (test) => {
    const { domain, key } = await openAccount(test, kind)
    const created = await domain.apiKeys.create(key, operator)
    const other = await newAccount(domain)
    expect(await domain.apiKeys.delete(other.accountId, created.id, operator)).toBe(false)
    expect(await domain.apiKeys.authenticate(created.value)).toBeDefined()
    expect((await domain.apiKeys.list(other.accountId)).map(({ id }) => id)).toEqual([other.key.id])
  })

  test('no account creates a key for a user of another account', async (test) => {
    const { domain, accountId, key } = await openAccount(test, kind)
    const userId = await newUser(domain, (await newAccount(domain)).accountId)
    await expect(domain.apiKeys.create({ ...key, userId }, operator)).rejects.toThrow('has been removed')
    expect(await domain.apiKeys.list(accountId)).toEqual([])
  })

  test('a run token ends in the millisecond in which it expires', async (test) => {
    let time = 0
    const { domain, accountId, key } = await openAccount(test, kind)
    const { id: apiKeyId } = await domain.apiKeys.create(key, operator)
    const tokens = new RunTokens(domain.encryption, domain.apiKeys, () => time)
    const { token, expiresAt } = tokens.create({ accountId, apiKeyId }, crypto.randomUUID(), 60)
    time = expiresAt - 1
    expect(await tokens.authenticate(token)).toBeDefined()
    time = expiresAt
    expect(await tokens.authenticate(token)).toBeUndefined()
  })

  test('a key shows when it was last used', async (test) => {
    let time = Date.now()
    const { domain, accountId, key } = await openAccount(test, kind, { now: () => time })
    const { id, value } = await domain.apiKeys.create(key, operator)
    const unused = { id, name: 'Key', createdAt: time, lastUsedAt: null, expiresAt: null, expired: false }
    expect(await domain.apiKeys.list(accountId)).toMatchObject([unused])
    time += 1000
    await domain.apiKeys.authenticate(value)
    time += 1000
    await domain.apiKeys.close()
    expect(await domain.apiKeys.list(accountId)).toMatchObject([{ id, lastUsedAt: time - 1000 }])
  })

  describe('expiry', () => {
    test('a key is refused from its expiry on, even if the clock steps back', async (test) => {
      let time = Date.now()
      const { domain, accountId, key } = await openAccount(test, kind, { now: () => time })
      const expiresAt = time + 1000
      const { value } = await domain.apiKeys.create({ ...key, expiresAt }, operator)
      time = expiresAt - 1
      expect(await domain.apiKeys.authenticate(value)).toBeDefined()
      expect(await domain.apiKeys.list(accountId)).toMatchObject([{ expired: false, expiresAt }])
      time = expiresAt
      expect(await domain.apiKeys.list(accountId)).toMatchObject([{ expired: true, expiresAt }])
      expect(await domain.apiKeys.authenticate(value)).toBeUndefined()
      time = expiresAt - 3_600_000
      expect(await domain.apiKeys.authenticate(value)).toBeUndefined()
      const other = await openDomain(test, { kind, location: domain.location, now: () => time })
      expect(await other.apiKeys.authenticate(value)).toBeUndefined()
      expect(await domain.apiKeys.list(accountId)).toMatchObject([{ expired: true, expiresAt }])
    })

    test('an expired key counts towards the limit per user but not the limit per account', async (test) => {
      let time = Date.now()
      const { domain, accountId, key } = await openAccount(test, kind, { now: () => time })
      for (let count = 0; count < 3; count += 1)
        await domain.apiKeys.create({ ...key, expiresAt: time + 1000 }, operator)
      const keyOfOtherUser = { ...key, userId: await newUser(domain, accountId) }
      for (let count = 0; count < 2; count += 1) await domain.apiKeys.create(keyOfOtherUser, operator)
      await expect(domain.apiKeys.create(keyOfOtherUser, operator)).rejects.toThrow(
        /^This account has 5 active API keys/,
      )
      time += 1000
      // The account has 2 active keys; the owner has 3 expired ones.
      for (let count = 0; count < 2; count += 1) await domain.apiKeys.create(key, operator)
      await expect(domain.apiKeys.create(key, operator)).rejects.toThrow(/^This user has 5 API keys/)
      await domain.apiKeys.create(keyOfOtherUser, operator)
      await expect(domain.apiKeys.create(keyOfOtherUser, operator)).rejects.toThrow(
        /^This account has 5 active API keys/,
      )
    })

    test('an expired key that was replaced stays expired if the clock steps back', async (test) => {
      let time = Date.now()
      const { domain, accountId, key } = await openAccount(test, kind, { now: () => time })
      const old = await domain.apiKeys.create({ ...key, expiresAt: time + 1000 }, operator)
      const keyOfOtherUser = { ...key, userId: await newUser(domain, accountId) }
      time += 1000
      for (let count = 0; count < 5; count += 1) await domain.apiKeys.create(keyOfOtherUser, operator)
      time -= 1000
      expect(await domain.apiKeys.authenticate(old.value)).toBeUndefined()
      expect((await domain.apiKeys.list(accountId)).filter(({ expired }) => !expired)).toHaveLength(5)
    })
  })

  describe('limits under concurrency', () => {
    test.for([1, 2])(
      'a user gets at most five keys from 30 concurrent requests to two processes (round %i)',
      async (_, test) => {
        const { domain, accountId, key } = await openAccount(test, kind)
        const other = await openDomain(test, { kind, location: domain.location })
        const keys = Array.from({ length: 30 }, () => key)
        expect(await createMany([domain, other], keys)).toBe(5)
        const [first] = await domain.apiKeys.list(accountId)
        expect(await domain.apiKeys.delete(accountId, first?.id ?? '', operator)).toBe(true)
        expect(await createMany([domain, other], keys)).toBe(1)
        expect(await domain.apiKeys.list(accountId)).toHaveLength(5)
      },
    )

    test.for([1, 2])('three users of an account share a limit of five active keys (round %i)', async (_, test) => {
      const { domain, accountId, userId, key } = await openAccount(test, kind)
      const other = await openDomain(test, { kind, location: domain.location })
      const users = [userId, await newUser(domain, accountId), await newUser(domain, accountId)]
      const keys = Array.from({ length: 30 }, (_, index) => ({ ...key, userId: users[index % 3] ?? userId }))
      expect(await createMany([domain, other], keys)).toBe(5)
      expect(await domain.apiKeys.list(accountId)).toHaveLength(5)
      // The limit of another account is separate.
      await newAccount(domain)
    })
  })

  describe('scopes', () => {
    test('a key is limited to its scopes', async (test) => {
      const { domain, accountId, key } = await openAccount(test, kind, { scopesEnabled: true })
      const scopes = knownScopes().slice(0, 2)
      const { id, value } = await domain.apiKeys.create({ ...key, scopes }, operator)
      expect(await domain.apiKeys.authenticate(value)).toEqual({ principal: { accountId, apiKeyId: id }, scopes })
      expect(await domain.apiKeys.list(accountId)).toMatchObject([{ id, scopes }])
    })

    test('a key with scopes is refused if the account has scopes disabled', async (test) => {
      const { domain, key } = await openAccount(test, kind)
      const refused = domain.apiKeys.create({ ...key, scopes: [knownScopes()[0] ?? ''] }, operator)
      await expect(refused).rejects.toThrow(
        'Scopes are off for this account. An admin turns them on in the dashboard, under Settings → General.',
      )
      await expect(refused).rejects.toBeInstanceOf(ApiKeyError)
    })

    test('an unknown scope and an empty list of scopes are refused', async (test) => {
      const { domain, accountId, key } = await openAccount(test, kind, { scopesEnabled: true })
      const create = (scopes: string[]) => domain.apiKeys.create({ ...key, scopes }, operator)
      const known = knownScopes()
      const choices = known.join(', ')
      await expect(create([known[0] ?? '', 'runs:delete'])).rejects.toThrow(
        `Unknown scope "runs:delete". Choose from ${choices}.`,
      )
      await expect(create([''])).rejects.toThrow(`Unknown scope "". Choose from ${choices}.`)
      await expect(create([])).rejects.toThrow(`Choose at least one scope of ${choices}.`)
      expect(await domain.apiKeys.list(accountId)).toEqual([])
    })
  })
})
