/** Dashboard sessions: they end with the user's credentials, when they are idle, and when the user ends them. */
import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { CredentialsChangedError, hashToken, type Session, Sessions } from '../../../src/domain/accounts/sessions.ts'
import type { User } from '../../../src/domain/accounts/user.ts'
import { Users } from '../../../src/domain/accounts/users.ts'
import { AuditLog } from '../../../src/domain/audit-log/audit-log.ts'
import { newAccount, openDomain, type Test } from '../../support/domain.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const hour = 3_600_000
const idle = 24 * hour
const client = { address: '10.0.0.7', userAgent: 'Test/1' }
const passwords = ['a difference engine', 'an analytical engine'] as const

async function openSessions(test: Test, kind: StoreKind, now = Date.now) {
  const domain = await openDomain(test, { kind })
  const { store } = domain
  return {
    ...domain,
    users: new Users(store, readConfig({})),
    auditLog: new AuditLog(store),
    sessions: new Sessions(store, idle, now),
  }
}

type Opened = Awaited<ReturnType<typeof openSessions>>

/** A user with the first of the passwords. */
async function newUser(opened: Opened): Promise<User & { email: string }> {
  const { users } = opened
  const { userId } = await newAccount(opened)
  const email = `${crypto.randomUUID()}@example.com`
  const user = await users.get(userId)
  if (!user) throw new Error('An account comes with a user.')
  await users.updateProfile(user, { name: 'Ada', email }, undefined)
  return { ...(await users.changePassword(user, undefined, passwords[0])), email }
}

const newToken = () => randomBytes(24).toString('base64url')

async function begin({ sessions }: Pick<Opened, 'sessions'>, user: User, token = newToken()): Promise<string> {
  await sessions.create(token, { user, byLink: false, client, proof: undefined })
  return token
}

describe.each(stores)('sessions ($name)', (kind) => {
  test('a session is found by its token, which the store does not contain', async (test) => {
    const opened = await openSessions(test, kind)
    const { sessions } = opened
    const user = await newUser(opened)
    const token = await begin(opened, user)
    expect(await sessions.get(token)).toMatchObject({ ...client, userId: user.id, byLink: false })
    expect(await sessions.get(hashToken(token).toString('base64url'))).toBeUndefined()
    expect(await sessions.get('')).toBeUndefined()
    const contents = await kind.contents(opened.location)
    expect(contents.includes(client.address)).toBe(true)
    expect(contents.includes(token)).toBe(false)
    expect(contents.includes(Buffer.from(token, 'base64url'))).toBe(false)
  })

  test('a session that has ended is refused by every process', async (test) => {
    const opened = await openSessions(test, kind)
    const { sessions } = opened
    const user = await newUser(opened)
    const other = new Sessions((await openDomain(test, { kind, location: opened.location })).store, idle)
    const [ended, kept] = [await begin(opened, user), await begin(opened, user)]
    await sessions.end(ended)
    expect(await other.get(ended)).toBeUndefined()
    expect(await sessions.get(ended)).toBeUndefined()
    expect(await other.get(kept)).toBeDefined()
    await sessions.end(ended)
  })

  test('no session outlives the password that it was opened with', async (test) => {
    const opened = await openSessions(test, kind)
    const { sessions, users } = opened
    const { email } = await newUser(opened)
    // Eight sign-ins have verified the old password, and are at every stage when it changes.
    const proofs = await Promise.all(Array.from({ length: 8 }, () => users.authenticate(email, passwords[0])))
    const signedIn = proofs.filter((user) => user !== undefined)
    expect(signedIn).toHaveLength(8)
    const tokens = signedIn.map(newToken)
    const attempt = (index: number) => begin(opened, signedIn[index] as User, tokens[index])
    await attempt(0)
    const change = users.changePassword(signedIn[0] as User, passwords[0], passwords[1])
    const overlapping = Promise.allSettled([1, 2, 3, 4].map(attempt))
    const changed = await change
    await overlapping
    for (const late of [5, 6, 7]) await expect(attempt(late)).rejects.toThrow(CredentialsChangedError)
    for (const token of tokens) expect(await sessions.get(token)).toBeUndefined()
    expect(await sessions.list(changed.id)).toEqual([])
    expect(await sessions.get(await begin(opened, changed))).toBeDefined()
  })

  test('of two changes of the password that overlap, one succeeds', async (test) => {
    const opened = await openSessions(test, kind)
    const user = await newUser(opened)
    const changes = ['the first new engine', 'the second new engine'].map((each) =>
      opened.users.changePassword(user, passwords[0], each),
    )
    const results = await Promise.allSettled(changes)
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    const refused = results.find((result) => result.status === 'rejected')
    expect(refused?.reason.message).toMatch(/^(Your password or second factor was just changed|The current password)/)
  })

  test('a session of an earlier epoch is invalid, even if its row exists', async (test) => {
    const opened = await openSessions(test, kind)
    const user = await newUser(opened)
    const token = await begin(opened, user)
    await opened.store.write(({ query }) =>
      query
        .updateTable('users')
        .set({ credentials_epoch: user.credentialsEpoch + 1 })
        .where('id', '=', user.id)
        .execute(),
    )
    expect(await opened.sessions.get(token)).toBeUndefined()
    expect(await opened.sessions.list(user.id)).toEqual([])
  })

  test('a session ends after a week, or when it was not used for the idle limit', async (test) => {
    let time = Date.now()
    const opened = await openSessions(test, kind, () => time)
    const { sessions } = opened
    const user = await newUser(opened)
    const [used, unused] = [await begin(opened, user), await begin(opened, user)]
    const use = async () => {
      const session = await sessions.get(used)
      await sessions.recordUse(session as Session, { address: '10.0.0.8', userAgent: 'x'.repeat(1000) })
    }
    time += idle - 1
    expect(await sessions.get(unused)).toBeDefined()
    await use()
    time += 1
    expect(await sessions.get(unused)).toBeUndefined()
    const [listed, ...others] = await sessions.list(user.id)
    expect([listed?.lastUsedAt, listed?.address, listed?.userAgent.length, others]).toEqual([
      time - 1,
      '10.0.0.8',
      300,
      [],
    ])
    // A use within a minute of the last one is not written.
    time += 58_000
    await use()
    expect((await sessions.get(used))?.lastUsedAt).toBe(listed?.lastUsedAt)
    for (let day = 1; day < 7; day += 1) {
      await use()
      time += idle - 60_000
    }
    const { expiresAt = 0 } = (await sessions.get(used)) ?? {}
    await use()
    time = expiresAt - 1
    expect(await sessions.get(used)).toBeDefined()
    time += 1
    expect(await sessions.get(used)).toBeUndefined()
    const rows = () => opened.store.read.query.selectFrom('sessions').select('hash').execute()
    expect(await rows()).toHaveLength(2)
    const next = await begin(opened, user)
    expect((await rows()).map(({ hash }) => Buffer.from(hash))).toEqual([hashToken(next)])
  })

  test('users end their own sessions, one or all', async (test) => {
    const opened = await openSessions(test, kind)
    const { sessions } = opened
    const [ada, eve] = [await newUser(opened), await newUser(opened)]
    const [first, second] = [await begin(opened, ada), await begin(opened, ada)]
    const { id = '' } = (await sessions.get(first)) ?? {}
    expect(await sessions.endById(eve, id)).toBe(false)
    expect(await sessions.endById(ada, id)).toBe(true)
    expect(await sessions.endById(ada, id)).toBe(false)
    expect([await sessions.get(first), (await sessions.get(second))?.userId]).toEqual([undefined, ada.id])
    const other = await begin(opened, eve)
    await sessions.endAll(ada)
    expect(await sessions.get(second)).toBeUndefined()
    // Nor does a sign-in that had begun before.
    await expect(begin(opened, ada)).rejects.toThrow(CredentialsChangedError)
    expect(await sessions.get(other)).toBeDefined()
    const entries = await opened.auditLog.list(ada.accountId, { actorId: ada.id, limit: 10 })
    expect(entries.map(({ action }) => action)).toEqual(
      expect.arrayContaining(['user.sessionEnded', 'user.signedOutEverywhere']),
    )
  })

  test('a removed user gets no session', async (test) => {
    const opened = await openSessions(test, kind)
    const user = await newUser(opened)
    await opened.store.write(({ query }) =>
      query.updateTable('users').set({ removed_at: 1 }).where('id', '=', user.id).execute(),
    )
    await expect(begin(opened, user)).rejects.toThrow(CredentialsChangedError)
  })

  test('creating a session with an existing token changes nothing', async (test) => {
    const opened = await openSessions(test, kind)
    const [ada, eve] = [await newUser(opened), await newUser(opened)]
    const token = await begin(opened, ada)
    await expect(begin(opened, eve, token)).rejects.toThrow()
    expect(await opened.sessions.get(token)).toMatchObject({ userId: ada.id })
  })
})
