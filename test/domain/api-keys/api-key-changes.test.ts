/** Renaming, rotating and using API keys, and the use of deleted ones. */
import { describe, expect, test, vi } from 'vitest'
import { AuditLog, operator } from '../../../src/domain/audit-log/audit-log.ts'
import { createManualClock } from '../../support/claims.ts'
import { newAccount, newUser, openDomain, type Test } from '../../support/domain.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'
import { waitLimits } from '../../support/timeouts.ts'

async function openKeys(
  test: Test,
  kind: StoreKind,
  { location, now = Date.now }: { location?: string; now?: () => number } = {},
) {
  const domain = await openDomain(test, { kind, now, ...(location !== undefined && { location }) })
  return { ...domain, auditLog: new AuditLog(domain.store) }
}

const newId = () => crypto.randomUUID()

describe.each(stores)('API keys ($name)', (kind) => {
  test('a key can be renamed by its own account only, and keeps working', async (test) => {
    const domain = await openKeys(test, kind)
    const { apiKeys } = domain
    const { accountId, key } = await newAccount(domain)
    const other = await newAccount(domain)
    expect(await apiKeys.rename(accountId, key.id, '  nightly <b>import</b> ', operator)).toBe(true)
    expect(await apiKeys.rename(other.accountId, key.id, 'theirs', operator)).toBe(false)
    expect(await apiKeys.list(accountId)).toMatchObject([{ id: key.id, name: 'nightly <b>import</b>' }])
    expect(await apiKeys.authenticate(key.value)).toBeDefined()
    for (const name of ['', ' ', 'a'.repeat(101), 'a\0b']) {
      await expect(apiKeys.rename(accountId, key.id, name, operator)).rejects.toMatchObject({ about: 'name' })
    }
    await apiKeys.delete(accountId, key.id, operator)
    expect(await apiKeys.rename(accountId, key.id, 'gone', operator)).toBe(false)
  })

  test('an ID creates one key, also when sent repeatedly to several processes', async (test) => {
    const one = await openKeys(test, kind)
    const two = await openKeys(test, kind, { location: one.location })
    const { accountId, userId } = await newAccount(one)
    const other = await newAccount(one)
    const key = { id: newId(), accountId, userId, name: 'Key', scopes: null, expiresAt: null }
    const create = (index: number) => (index % 2 ? one : two).apiKeys.create(key, operator)
    const results = await Promise.allSettled([0, 1, 2, 3].map(create))
    const refused = results.filter((result) => result.status === 'rejected')
    expect(refused).toHaveLength(3)
    for (const { reason } of refused) expect(reason).toMatchObject({ about: 'repeated' })
    await one.apiKeys.delete(accountId, key.id, operator)
    await expect(create(0)).rejects.toMatchObject({ about: 'repeated' })
    const stolen = { ...key, accountId: other.accountId, userId: other.userId }
    await expect(one.apiKeys.create(stolen, operator)).rejects.toMatchObject({ about: 'repeated' })
  })

  describe('rotation', () => {
    test('a rotated key keeps name, scopes and lifetime, even at the limit, and its old value is refused everywhere', async (test) => {
      let time = Date.now()
      const one = await openKeys(test, kind, { now: () => time })
      const two = await openKeys(test, kind, { location: one.location, now: () => time })
      const { accountId, userId } = await newAccount(one, { scopesEnabled: true })
      const scopes = one.apiKeys.knownScopes.slice(0, 2)
      const draft = { accountId, userId, name: 'nightly', scopes, expiresAt: time + 10_000 }
      const old = await one.apiKeys.create(draft, operator)
      for (let count = 2; count < 5; count += 1) await one.apiKeys.create({ ...draft, expiresAt: null }, operator)
      await expect(one.apiKeys.create(draft, operator)).rejects.toMatchObject({ about: 'userLimit' })
      time += 4000
      const rotated = await one.apiKeys.rotate(accountId, old.id, newId(), operator)
      expect(rotated).toMatchObject({ name: 'nightly', scopes, userId, expiresAt: time + 10_000, createdAt: time })
      expect(rotated?.value).not.toBe(old.value)
      for (const { apiKeys } of [two, one]) {
        expect(await apiKeys.authenticate(old.value)).toBeUndefined()
        expect(await apiKeys.authenticate(rotated?.value ?? '')).toMatchObject({ scopes })
      }
      expect(await one.apiKeys.list(accountId)).toHaveLength(5)
    })

    test.for([1, 2, 3])('ten concurrent rotations of a key create one new key (round %i)', async (_, test) => {
      const one = await openKeys(test, kind)
      const two = await openKeys(test, kind, { location: one.location })
      const { accountId, key } = await newAccount(one)
      const rotate = (index: number) => (index % 2 ? one : two).apiKeys.rotate(accountId, key.id, newId(), operator)
      const results = await Promise.all(Array.from({ length: 10 }, (_, index) => rotate(index)))
      const created = results.filter((result) => result !== undefined)
      expect(created).toHaveLength(1)
      expect((await one.apiKeys.list(accountId)).map(({ id }) => id)).toEqual([created[0]?.id])
      expect(await two.apiKeys.authenticate(created[0]?.value ?? '')).toBeDefined()
    })

    test('a key that is rotated again during its overlap gets a successor of the full lifetime', async (test) => {
      const clock = createManualClock()
      const domain = await openDomain(test, { kind, now: clock.now })
      const { accountId, userId } = await newAccount(domain)
      const rotatedTwice = async (lifetime: number | null) => {
        const expiresAt = lifetime === null ? null : clock.now() + lifetime
        const key = await domain.apiKeys.create({ accountId, userId, name: 'Key', scopes: null, expiresAt }, operator)
        const first = await domain.apiKeys.rotate(accountId, key.id, newId(), operator, 1)
        clock.advance(60)
        const second = await domain.apiKeys.rotate(accountId, key.id, newId(), operator, 0)
        expect(first?.expiresAt).toBe(lifetime === null ? null : clock.now() - 60_000 + lifetime)
        for (const each of [first, second]) await domain.apiKeys.delete(accountId, each?.id ?? '', operator)
        return second?.expiresAt === null ? null : (second?.expiresAt ?? 0) - clock.now()
      }
      const month = 30 * 24 * 60 * 60 * 1000
      expect(await rotatedTwice(month)).toBe(month)
      expect(await rotatedTwice(null)).toBeNull()
    })

    test('a key that is deleted while it is rotated with an overlap gets no successor', async (test) => {
      const domain = await openDomain(test, { kind })
      const { accountId, key } = await newAccount(domain)
      const deleting = Promise.withResolvers<void>()
      const rotated = Promise.withResolvers<void>()
      const deleted = domain.store.write(
        async (tx) => {
          await tx.query.updateTable('api_keys').set({ deleted_at: Date.now() }).where('id', '=', key.id).execute()
          deleting.resolve()
          await rotated.promise
        },
        { concurrent: true },
      )
      await deleting.promise
      const rotation = domain.apiKeys.rotate(accountId, key.id, newId(), operator, 24)
      // In PostgreSQL, the rotation now waits for the row of the key; in SQLite, it has not begun.
      const waits = async () => {
        if (kind.name === 'sqlite') return true
        const waiting = 'SELECT 1 AS one FROM pg_locks WHERE NOT granted'
        return (await domain.store.read.all(waiting, [])).length > 0
      }
      await vi.waitUntil(waits, { timeout: 10_000 })
      rotated.resolve()
      await deleted
      expect(await rotation).toBeUndefined()
      expect(await domain.apiKeys.list(accountId)).toEqual([])
    })

    test('with an overlap, both values work until its end, both count, and the audit log says when it ends', async (test) => {
      let time = Date.now()
      const domain = await openKeys(test, kind, { now: () => time })
      const { apiKeys } = domain
      const { accountId, key } = await newAccount(domain)
      time += 1 // Keys are listed in the order of their creation.
      const rotated = await apiKeys.rotate(accountId, key.id, newId(), operator, 24)
      const works = async () =>
        Promise.all([key, rotated].map(async (each) => Boolean(await apiKeys.authenticate(each?.value ?? ''))))
      const end = time + 24 * 60 * 60 * 1000
      time = end - 1
      expect(await works()).toEqual([true, true])
      const ends = new Map((await apiKeys.list(accountId)).map(({ id, expiresAt }) => [id, expiresAt]))
      expect([ends.get(key.id), ends.get(rotated?.id ?? '')]).toEqual([end, null])
      time = end
      expect(await works()).toEqual([false, true])
      for (const hours of [-1, 25, 0.5, Number.NaN]) {
        const rotation = apiKeys.rotate(accountId, rotated?.id ?? '', newId(), operator, hours)
        await expect(rotation).rejects.toMatchObject({ about: 'overlap' })
      }
      for (let count = 0; count < 3; count += 1)
        await apiKeys.rotate(accountId, rotated?.id ?? '', newId(), operator, 1)
      const atLimit = apiKeys.rotate(accountId, rotated?.id ?? '', newId(), operator, 1)
      await expect(atLimit).rejects.toMatchObject({ about: 'userLimit' })
      expect(await works()).toEqual([false, true])
      const [entry] = (await domain.auditLog.list(accountId, { limit: 10 })).filter(
        ({ details }) => details.replaces === key.id,
      )
      expect(entry).toMatchObject({ action: 'apiKey.rotated', details: { oldKeyExpiresAt: end } })
    })

    test('a repeated rotation has no effect, and another account cannot rotate the key', async (test) => {
      const domain = await openKeys(test, kind)
      const { apiKeys } = domain
      const { accountId, key } = await newAccount(domain)
      const other = await newAccount(domain)
      expect(await apiKeys.rotate(other.accountId, key.id, newId(), operator)).toBeUndefined()
      const newKeyId = newId()
      const rotated = await apiKeys.rotate(accountId, key.id, newKeyId, operator)
      await expect(apiKeys.rotate(accountId, key.id, newKeyId, operator)).rejects.toMatchObject({ about: 'repeated' })
      await expect(apiKeys.rotate(accountId, newKeyId, newKeyId, operator)).rejects.toMatchObject({ about: 'repeated' })
      expect(await apiKeys.authenticate(rotated?.value ?? '')).toBeDefined()
    })

    test('rotating an expired key is refused if the account is at its limit', async (test) => {
      let time = Date.now()
      const domain = await openKeys(test, kind, { now: () => time })
      const { apiKeys } = domain
      const { accountId, userId } = await newAccount(domain)
      const draft = { accountId, userId, name: 'Key', scopes: null, expiresAt: null }
      const expired = await apiKeys.create({ ...draft, expiresAt: time + 1000 }, operator)
      time += 1000
      const otherUserId = await newUser(domain, accountId)
      for (let count = 1; count < 5; count += 1) await apiKeys.create({ ...draft, userId: otherUserId }, operator)
      const rotation = apiKeys.rotate(accountId, expired.id, newId(), operator)
      await expect(rotation).rejects.toMatchObject({ about: 'accountLimit' })
      expect(await apiKeys.get(accountId, expired.id)).toMatchObject({ expired: true })
      expect(await apiKeys.list(accountId)).toHaveLength(6)
    })
  })

  describe('last use', () => {
    test('a key shows when and by whom it was last used, including open streams', async (test) => {
      let time = Date.now()
      const domain = await openKeys(test, kind, { now: () => time })
      const { accountId, key } = await newAccount(domain)
      await domain.apiKeys.authenticate(key.value, '10.0.0.7 curl/8.5')
      await domain.apiKeys.close()
      expect(await domain.apiKeys.get(accountId, key.id)).toMatchObject({
        lastUsedAt: time,
        lastUsedBy: '10.0.0.7 curl/8.5',
      })
      time += 1000
      await domain.apiKeys.authenticate(key.value)
      await domain.apiKeys.close()
      expect(await domain.apiKeys.get(accountId, key.id)).toMatchObject({
        lastUsedAt: time,
        lastUsedBy: '10.0.0.7 curl/8.5',
      })
    })

    test('a use is written within five seconds, and again after a failed write', async (test) => {
      vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
      test.onTestFinished(() => void vi.useRealTimers())
      const domain = await openKeys(test, kind)
      const { store, apiKeys } = domain
      const { accountId, key } = await newAccount(domain)
      const lastUsedBy = async () => (await apiKeys.get(accountId, key.id))?.lastUsedBy
      await apiKeys.authenticate(key.value, 'first')
      await vi.advanceTimersByTimeAsync(5000)
      await vi.waitUntil(async () => (await lastUsedBy()) === 'first', waitLimits)
      await apiKeys.authenticate(key.value, 'second')
      const write = vi.spyOn(store, 'write').mockRejectedValueOnce(new Error('The disk is full.'))
      await vi.advanceTimersByTimeAsync(5000)
      await vi.waitUntil(() => write.mock.calls.length === 1, waitLimits)
      expect(await lastUsedBy()).toBe('first')
      await vi.advanceTimersByTimeAsync(5000)
      await vi.waitUntil(async () => (await lastUsedBy()) === 'second', waitLimits)
    })
  })
})
