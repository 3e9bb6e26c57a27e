/** Second factors: codes that work once, recovery codes, and what a change of them ends. */
import { Secret, TOTP } from 'otpauth'
import { describe, expect, test } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { SecondFactors } from '../../../src/domain/accounts/second-factors.ts'
import { Sessions } from '../../../src/domain/accounts/sessions.ts'
import type { User } from '../../../src/domain/accounts/user.ts'
import { Users } from '../../../src/domain/accounts/users.ts'
import { AuditLog, operator } from '../../../src/domain/audit-log/audit-log.ts'
import { encryptedColumns } from '../../../src/domain/installation.ts'
import { reencrypt } from '../../../src/storage/encrypted-columns.ts'
import { Encryption, FixedKeys } from '../../../src/storage/encryption.ts'
import { newAccount, openDomain, type Test } from '../../support/domain.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const password = 'a difference engine'
const proof = { password, code: '' }
const step = 30_000
const minute = 60_000

async function openFactors(test: Test, kind: StoreKind) {
  const clock = { time: 1_800_000_000_000 }
  const domain = await openDomain(test, { kind })
  const { store, encryption } = domain
  const factors = new SecondFactors(store, encryption, () => clock.time)
  const users = new Users(store, readConfig({}))
  const sessions = new Sessions(store, 86_400_000)
  return { ...domain, clock, factors, users, sessions, auditLog: new AuditLog(store) }
}

type Opened = Awaited<ReturnType<typeof openFactors>>

const codeAt = (secret: string, timestamp: number) =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp })

async function newUser(opened: Opened): Promise<User> {
  const { userId } = await newAccount(opened)
  const user = await opened.users.get(userId)
  if (!user) throw new Error('An account comes with a user.')
  return opened.users.changePassword(user, undefined, password)
}

/** A user with a second factor; their codes of the present step are used up. */
async function newUserWithFactor(opened: Opened) {
  const { factors, clock } = opened
  const before = await newUser(opened)
  const secret = await factors.createSecret()
  const { user, codes } = await factors.setUp(before, { secret, code: codeAt(secret, clock.time) }, proof)
  return { before, user, secret, codes }
}

async function isSignedIn({ sessions }: Opened, user: User): Promise<boolean> {
  const token = crypto.randomUUID()
  await sessions.create(token, { user, byLink: false, client: { address: '', userAgent: '' }, proof: undefined })
  return (await sessions.get(token)) !== undefined
}

describe.each(stores)('second factors ($name)', (kind) => {
  test('setting one up requires the password and the code of the app', async (test) => {
    const opened = await openFactors(test, kind)
    const { factors, clock, users } = opened
    const user = await newUser(opened)
    const secret = await factors.createSecret()
    const code = codeAt(secret, clock.time)
    const wrong = String((Number(code) + 1) % 1_000_000).padStart(6, '0')
    const setUp = (proof: { secret: string; code: string }, current: string) =>
      factors.setUp(user, proof, { password: current, code: '' })
    await expect(setUp({ secret, code }, 'not this one')).rejects.toMatchObject({ member: 'currentPassword' })
    for (const proof of [
      { secret, code: wrong },
      { secret, code: '' },
      { secret: 'AAAA', code },
      { secret: '', code: '' },
    ]) {
      await expect(setUp(proof, password)).rejects.toMatchObject({ member: 'code' })
    }
    expect(await users.get(user.id)).toMatchObject({ hasSecondFactor: false })
    expect(await isSignedIn(opened, user)).toBe(true)
    const { user: changed, codes } = await setUp({ secret, code: ` ${code.slice(0, 3)} ${code.slice(3)}` }, password)
    expect([changed.hasSecondFactor, codes.length, new Set(codes).size]).toEqual([true, 10, 10])
    expect(await opened.sessions.list(user.id)).toEqual([])
    await expect(isSignedIn(opened, user)).rejects.toThrow()
    expect(await isSignedIn(opened, changed)).toBe(true)
    expect(await factors.setUpUri(changed, secret)).toMatch(
      /^otpauth:\/\/totp\/execution-service:Admin\?.*secret=[A-Z2-7]{32}&/,
    )
  })

  test('a code works once, and so do codes of earlier steps', async (test) => {
    const opened = await openFactors(test, kind)
    const { factors, clock } = opened
    const { user, secret } = await newUserWithFactor(opened)
    const codeIn = (steps: number) => codeAt(secret, clock.time + steps * step)
    // The code that set it up is used up.
    expect(await factors.useCode(user, codeIn(0))).toBe(false)
    expect(await factors.useCode(user, codeIn(2))).toBe(false)
    expect(await factors.useCode(user, codeIn(1))).toBe(true)
    expect(await factors.useCode(user, codeIn(1))).toBe(false)
    clock.time += 2 * step
    const attempts = await Promise.all(Array.from({ length: 8 }, () => factors.useCode(user, codeIn(0))))
    expect(attempts.filter(Boolean)).toHaveLength(1)
    clock.time += 3 * step
    expect(await factors.useCode(user, codeIn(0))).toBe(true)
    expect(await factors.useCode(user, codeIn(-1))).toBe(false)
    clock.time += 2 * step
    expect(await factors.useCode(user, codeIn(-1))).toBe(true)
    for (const text of ['', 'abcdef', '12345', '1234567', codeIn(-2)])
      expect(await factors.useCode(user, text)).toBe(false)
    const other = await newUser(opened)
    expect(await factors.useCode(other, codeIn(0))).toBe(false)
  })

  test('each recovery code works once, for its user', async (test) => {
    const opened = await openFactors(test, kind)
    const { factors } = opened
    const [ada, eve] = [await newUserWithFactor(opened), await newUserWithFactor(opened)]
    const [first = '', second = '', third = '', fourth = ''] = ada.codes
    const attempts = await Promise.all(Array.from({ length: 4 }, () => factors.useRecoveryCode(ada.user, first)))
    expect(attempts.filter(Boolean)).toHaveLength(1)
    expect(await factors.useRecoveryCode(eve.user, second)).toBe(false)
    expect(await factors.useRecoveryCode(ada.user, ` ${second.toUpperCase().replace('-', ' ')} `)).toBe(true)
    for (const text of ['', 'none', '-'.repeat(10), `${third}x`])
      expect(await factors.useRecoveryCode(ada.user, text)).toBe(false)
    expect(await factors.countRecoveryCodes(ada.user.id)).toBe(8)
    await expect(factors.replaceRecoveryCodes(ada.user, { password: 'wrong', code: fourth })).rejects.toMatchObject({
      member: 'currentPassword',
    })
    for (const code of ['', first, eve.codes[0] ?? ''])
      await expect(factors.replaceRecoveryCodes(ada.user, { password, code })).rejects.toMatchObject({
        member: 'currentCode',
      })
    const [fresh = ''] = await factors.replaceRecoveryCodes(ada.user, { password, code: fourth })
    expect([await factors.useRecoveryCode(ada.user, third), await factors.useRecoveryCode(ada.user, fresh)]).toEqual([
      false,
      true,
    ])
  })

  test('the store contains neither the secret nor a recovery code', async (test) => {
    const opened = await openFactors(test, kind)
    const { secret, codes } = await newUserWithFactor(opened)
    const contents = await kind.contents(opened.location)
    for (const text of [secret, ...codes, ...codes.map((code) => code.replace('-', ''))]) {
      expect(contents.includes(text)).toBe(false)
    }
    expect(contents.includes(Buffer.from(Secret.fromBase32(secret).bytes))).toBe(false)
  })

  test('a rotation of the encryption key re-encrypts the secret, and recovery codes stay valid', async (test) => {
    const opened = await openFactors(test, kind)
    const { store, clock } = opened
    const user = await newUser(opened)
    const secret = await opened.factors.createSecret()
    const keys = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)] as const
    const factors = (...ring: Buffer[]) =>
      new SecondFactors(store, new Encryption(new FixedKeys(ring)), () => clock.time)
    const older = await factors(keys[0]).setUp(user, { secret, code: codeAt(secret, clock.time) }, proof)
    const users = encryptedColumns.filter(({ table }) => table === 'users')
    const rotated = new Encryption(new FixedKeys([keys[1], keys[0]]))
    expect(await reencrypt(store, rotated, users)).toEqual({ values: 1, failures: [] })
    expect(await factors(keys[1]).useCode(older.user, codeAt(secret, clock.time + step))).toBe(true)
    expect(await factors(keys[1]).useRecoveryCode(older.user, older.codes[0] ?? '')).toBe(true)
  })

  test('a challenge proves the first factor for ten minutes, and in one credentials epoch', async (test) => {
    const opened = await openFactors(test, kind)
    const { factors, clock, users } = opened
    const { before, user } = await newUserWithFactor(opened)
    const challenge = factors.createChallenge({ user, how: 'password', byLink: false })
    expect(await factors.readChallenge(challenge)).toEqual({ user, how: 'password', byLink: false })
    for (const text of ['', 'forged', `${challenge.slice(0, -4)}AAAA`])
      expect(await factors.readChallenge(text)).toBeUndefined()
    expect(
      await factors.readChallenge(factors.createChallenge({ user: before, how: 'password', byLink: false })),
    ).toBeUndefined()
    clock.time += 10 * minute - 1
    expect(await factors.readChallenge(challenge)).toBeDefined()
    clock.time += 1
    expect(await factors.readChallenge(challenge)).toBeUndefined()
    const next = factors.createChallenge({ user, how: 'password', byLink: false })
    await users.changePassword(user, password, 'another engine')
    expect(await factors.readChallenge(next)).toBeUndefined()
  })

  test('a password alone, verified before a second factor was set up, opens no session after it', async (test) => {
    const opened = await openFactors(test, kind)
    const { before } = await newUserWithFactor(opened)
    await expect(isSignedIn(opened, before)).rejects.toThrow()
  })

  test('users remove it with their password and a code, and the operator for them, which ends their sessions', async (test) => {
    const opened = await openFactors(test, kind)
    const { factors, users, clock, sessions, auditLog } = opened
    const { user, secret, codes } = await newUserWithFactor(opened)
    const code = codeAt(secret, clock.time + step)
    await expect(factors.remove(user, { password: 'wrong', code })).rejects.toMatchObject({ member: 'currentPassword' })
    expect(await isSignedIn(opened, user)).toBe(true)
    const removed = await factors.remove(user, { password, code })
    expect([removed.hasSecondFactor, await sessions.list(user.id)]).toEqual([false, []])
    expect(await factors.useRecoveryCode(removed, codes[0] ?? '')).toBe(false)
    expect(await factors.useCode(removed, codeAt(secret, clock.time + step))).toBe(false)
    const again = await factors.setUp(removed, { secret, code: codeAt(secret, clock.time) }, proof)
    expect(await isSignedIn(opened, again.user)).toBe(true)
    expect(await users.removeSecondFactor(user.accountId, user.id, operator)).toBe(true)
    expect(await users.removeSecondFactor(user.accountId, user.id, operator)).toBe(false)
    expect(await users.removeSecondFactor(crypto.randomUUID(), user.id, operator)).toBe(false)
    expect([await users.get(user.id), await sessions.list(user.id)]).toMatchObject([{ hasSecondFactor: false }, []])
    const [entry] = await auditLog.list(user.accountId, { action: 'user.secondFactorRemoved', limit: 1 })
    expect(entry).toMatchObject({ by: operator, subject: { id: user.id } })
  })

  test('removing a user erases it', async (test) => {
    const opened = await openFactors(test, kind)
    const { user } = await newUserWithFactor(opened)
    await opened.store.write(({ query }) => {
      const another = { id: crypto.randomUUID(), account_id: user.accountId, name: 'Bo', role: 'admin', created_at: 1 }
      return query
        .insertInto('users')
        .values({ ...another, password_hash: 'a hash' })
        .execute()
    })
    expect(await opened.users.remove(user.accountId, user.id, operator)).toBe(true)
    const { query } = opened.store.read
    const row = await query.selectFrom('users').selectAll().where('id', '=', user.id).executeTakeFirstOrThrow()
    expect([row.totp_secret, row.password_hash]).toEqual([null, null])
    expect(await opened.factors.countRecoveryCodes(user.id)).toBe(0)
  })
})
