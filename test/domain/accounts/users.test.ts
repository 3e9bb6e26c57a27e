/** Users: passwords, e-mail addresses, the last admin, and removal. */
import { randomBytes } from 'node:crypto'
import { v7 as uuid } from 'uuid'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { NotAdminError } from '../../../src/domain/accounts/accounts.sql.ts'
import type { Role } from '../../../src/domain/accounts/roles.ts'
import { Sessions } from '../../../src/domain/accounts/sessions.ts'
import { SignInLinks } from '../../../src/domain/accounts/sign-in-links.ts'
import { toActor, type User, UserError } from '../../../src/domain/accounts/user.ts'
import { Users } from '../../../src/domain/accounts/users.ts'
import { ApiKeyError } from '../../../src/domain/api-keys/api-key.ts'
import { operator } from '../../../src/domain/audit-log/audit-log.ts'
import { openDomain, type Test } from '../../support/domain.ts'
import { beforeNextWrite } from '../../support/interleaving.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const password = 'a difference engine'

async function openUsers(test: Test, kind: StoreKind, location?: string) {
  const domain = await openDomain(test, { kind, ...(location !== undefined && { location }) })
  const { store } = domain
  return {
    ...domain,
    users: new Users(store, readConfig({})),
    links: new SignInLinks(store),
    sessions: new Sessions(store, 86_400_000),
  }
}

type Opened = Awaited<ReturnType<typeof openUsers>>

/** An account with its owner. */
async function newAccount({ accounts, links }: Opened): Promise<User> {
  const { id } = await accounts.create({ name: 'Test', scopesEnabled: false })
  const email = `${crypto.randomUUID()}@example.com`
  return links.accept((await links.createWelcomeLink(id)) ?? '', { name: 'Ada', email, password })
}

async function newUser({ links }: Opened, accountId: string, role: Role = 'developer', name = 'Bo'): Promise<User> {
  const token = await links.invite(accountId, { label: name, role }, operator)
  return links.accept(token, { name, email: `${crypto.randomUUID()}@example.com`, password })
}

async function newSession({ sessions }: Opened, user: User): Promise<string> {
  const token = randomBytes(24).toString('base64url')
  await sessions.create(token, { user, byLink: false, client: { address: '', userAgent: '' }, proof: undefined })
  return token
}

const clientOf = (account: string) => {
  const roles = JSON.stringify({ '*': 'viewer' })
  return { OIDC_CLIENT_ID: 'dashboard', OIDC_CLIENT_SECRET: 'secret', OIDC_ACCOUNT: account, OIDC_ROLES: roles }
}

const onlyAdmin = 'This user is the only admin. Make another user an admin first.'

describe.each(stores)('users ($name)', (kind) => {
  test('are listed for their own account, and changed by its admins alone', async (test) => {
    const opened = await openUsers(test, kind)
    const { users } = opened
    const [mine, theirs] = [await newAccount(opened), await newAccount(opened)]
    const member = await newUser(opened, mine.accountId)
    expect((await users.list(mine.accountId)).map(({ id }) => id)).toEqual([mine.id, member.id].sort())
    const change = users.changeRole(mine.accountId, member.id, 'admin', toActor(theirs))
    await expect(change).rejects.toThrow(NotAdminError)
    expect((await users.get(member.id))?.role).toBe('developer')
  })

  test('a lowered role limits API keys in every process at once, and a higher one gives the scopes back', async (test) => {
    const one = await openUsers(test, kind)
    const two = await openUsers(test, kind, one.location)
    const { accountId } = await newAccount(one)
    const bo = await newUser(one, accountId)
    const draft = { accountId, userId: bo.id, name: 'Key', scopes: null, expiresAt: null }
    const { value, id } = await one.apiKeys.create(draft, operator)
    const scopes = async () => (await two.apiKeys.authenticate(value))?.scopes
    expect(await scopes()).toBeNull()
    await one.users.changeRole(accountId, bo.id, 'operator', operator)
    expect(await scopes()).toEqual(expect.arrayContaining(['runs:write', 'runs:read', 'waits:write']))
    expect(await scopes()).not.toEqual(expect.arrayContaining(['schedules:write']))
    await one.users.changeRole(accountId, bo.id, 'viewer', operator)
    expect((await scopes())?.filter((scope) => !scope.endsWith(':read'))).toEqual([])
    expect((await two.apiKeys.authenticateToken(id))?.scopes).toEqual(await scopes())
    await one.users.changeRole(accountId, bo.id, 'developer', operator)
    expect(await scopes()).toBeNull()
  })

  test('a key has no scope that the role of its creator does not permit', async (test) => {
    const one = await openUsers(test, kind)
    const { id: accountId } = await one.accounts.create({ name: 'Test', scopesEnabled: true })
    const bo = await newUser(one, accountId, 'operator')
    const draft = { accountId, userId: bo.id, name: 'Key', expiresAt: null }
    const refused = one.apiKeys.create({ ...draft, scopes: ['runs:write', 'schedules:write'] }, operator)
    await expect(refused).rejects.toThrow('The role operator does not permit the scope schedules:write.')
    await one.apiKeys.create({ ...draft, scopes: ['runs:write'] }, operator)
  })

  test('a password that is changed while it is checked permits no change', async (test) => {
    const opened = await openUsers(test, kind)
    const { users, store } = opened
    const user = await newAccount(opened)
    beforeNextWrite(store, () => users.changePassword(user, password, 'an analytical engine'))
    await expect(users.changePassword(user, password, 'a tide predictor')).rejects.toThrow(UserError)
    expect(await users.authenticate(user.email ?? '', 'an analytical engine')).toMatchObject({ id: user.id })
  })

  test('a user signs in with the e-mail address in any case and the exact password', async (test) => {
    const opened = await openUsers(test, kind)
    const { users } = opened
    const { id, email } = await newAccount(opened)
    const known = email ?? ''
    expect(await users.authenticate(` ${known.toUpperCase()} `, password)).toMatchObject({ id })
    for (const wrongPassword of ['', ` ${password}`, password.toUpperCase(), password.slice(1), `${password}\0`]) {
      expect(await users.authenticate(known, wrongPassword)).toBeUndefined()
    }
    expect(await users.authenticate('nobody@example.com', password)).toBeUndefined()
    expect(await users.authenticate('', '')).toBeUndefined()
  })

  test('a user without a password cannot sign in with one', async (test) => {
    const { accounts, users } = await openUsers(test, kind)
    const { id } = await accounts.create({ name: 'Test', scopesEnabled: false })
    const [owner] = await users.list(id)
    if (!owner) throw new Error('An account comes with a user.')
    await users.updateProfile(owner, { name: 'Ada', email: 'ada@example.com' }, undefined)
    for (const guess of ['', 'null', 'undefined', password]) {
      expect(await users.authenticate('ada@example.com', guess)).toBeUndefined()
    }
  })

  test('a password matches in any Unicode normalisation form', async (test) => {
    const opened = await openUsers(test, kind)
    const user = await newAccount(opened)
    await opened.users.changePassword(user, undefined, 'Cafe\u0301 für \u00c5ngstr\u00f6m')
    expect(await opened.users.authenticate(user.email ?? '', 'Caf\u00e9 fu\u0308r A\u030angstro\u0308m')).toBeDefined()
  })

  test('changing the password requires the current one and ends the sessions and links of this user only', async (test) => {
    const opened = await openUsers(test, kind)
    const { users, sessions } = opened
    const ada = await newAccount(opened)
    const bo = await newUser(opened, ada.accountId)
    const [firstSession, secondSession] = [await newSession(opened, ada), await newSession(opened, ada)]
    const sessionOfBo = await newSession(opened, bo)
    const change = (current: string, next: string) => users.changePassword(ada, current, next)
    await expect(change('not this one', 'another engine')).rejects.toMatchObject({ member: 'currentPassword' })
    for (const weakPassword of ['short', 'aaaaaaaaaaaaaaaa', 'x'.repeat(201)]) {
      await expect(change(password, weakPassword)).rejects.toMatchObject({ member: 'password' })
    }
    expect(await sessions.get(secondSession)).toBeDefined()
    const token = await opened.links.createSignInLink(ada, operator)
    await change(password, 'another engine')
    expect(await opened.links.find(token)).toBeUndefined()
    for (const ended of [firstSession, secondSession]) expect(await sessions.get(ended)).toBeUndefined()
    expect(await sessions.get(sessionOfBo)).toBeDefined()
    expect(await users.authenticate(ada.email ?? '', password)).toBeUndefined()
    expect(await users.authenticate(ada.email ?? '', 'another engine')).toBeDefined()
  })

  test('of concurrent changes to the same e-mail address, in any account, one succeeds', async (test) => {
    const one = await openUsers(test, kind)
    const two = await openUsers(test, kind, one.location)
    const [ada, eve] = [await newAccount(one), await newAccount(one)]
    const bo = await newUser(one, ada.accountId)
    const email = 'wanted@example.com'
    const results = await Promise.allSettled([
      one.users.updateProfile(ada, { name: 'Ada', email }, undefined),
      two.users.updateProfile(eve, { name: 'Eve', email: email.toUpperCase() }, undefined),
      one.users.updateProfile(bo, { name: 'Bo', email }, undefined),
    ])
    const refused = results.filter((result) => result.status === 'rejected')
    expect(refused).toHaveLength(2)
    for (const { reason } of refused) expect(reason).toMatchObject({ member: 'email' })
    await one.users.updateProfile(ada, { name: 'Ada Lovelace', email: ada.email ?? '' }, undefined)
    expect(await one.users.get(ada.id)).toMatchObject({ name: 'Ada Lovelace', email: ada.email })
  })

  describe('the only admin', () => {
    test('cannot be removed or made a member', async (test) => {
      const opened = await openUsers(test, kind)
      const { users } = opened
      const { id, accountId } = await newAccount(opened)
      const bo = await newUser(opened, accountId)
      await expect(users.remove(accountId, id, operator)).rejects.toThrow(new UserError(onlyAdmin))
      await expect(users.changeRole(accountId, id, 'developer', operator)).rejects.toThrow(onlyAdmin)
      expect(await users.changeRole(accountId, id, 'admin', operator)).toBe(true)
      expect(await users.changeRole(accountId, bo.id, 'admin', operator)).toBe(true)
      expect(await users.changeRole(accountId, id, 'developer', operator)).toBe(true)
      await expect(users.remove(accountId, bo.id, operator)).rejects.toThrow(onlyAdmin)
      expect(await users.remove(accountId, id, operator)).toBe(true)
    })

    test('is one who can sign in by the settings as they are now', async (test) => {
      const opened = await openUsers(test, kind)
      const { id, accountId } = await newAccount(opened)
      const bo = await newUser(opened, accountId, 'admin')
      const issuer = 'https://login.example.com'
      const identity = { identity_issuer: issuer, identity_subject: 'bo', password_hash: null }
      await opened.store.write(({ query }) =>
        query.updateTable('users').set(identity).where('id', '=', bo.id).execute(),
      )
      const usersWith = (settings: object) => new Users(opened.store, readConfig({ ...settings }))
      const refused = async (users: Users, userId: string) =>
        expect(users.changeRole(accountId, userId, 'viewer', operator)).rejects.toThrow(onlyAdmin)
      // The identity provider is gone, and has been replaced by another one.
      await refused(usersWith({}), id)
      const provider = { OIDC_ISSUER: issuer, ...clientOf(accountId) }
      await refused(usersWith({ ...provider, OIDC_ISSUER: 'https://other.example.com' }), id)
      await refused(usersWith({ ...provider, PASSWORD_SIGN_IN: 'off' }), bo.id)
      expect(await usersWith(provider).changeRole(accountId, bo.id, 'viewer', operator)).toBe(true)
    })

    test('who lost the role can no longer act as an owner, in requests that had begun before', async (test) => {
      const opened = await openUsers(test, kind)
      const { users, links, accounts } = opened
      const ada = await newAccount(opened)
      const { accountId } = ada
      const bo = await newUser(opened, accountId, 'admin')
      const by = toActor(bo)
      const token = await links.invite(accountId, { label: 'Cy', role: 'admin' }, by)
      expect(await links.find(token)).toBeDefined()
      await users.changeRole(accountId, bo.id, 'developer', toActor(ada))
      const invitation = { id: crypto.randomUUID(), label: 'Di', role: 'admin' } as const
      const settings = { name: 'His', scopesEnabled: true, secondFactorRequired: false }
      const late = [
        () => links.invite(accountId, invitation, by),
        () => links.createSignInLink(ada, by),
        () => links.withdrawInvitation(accountId, invitation.id, by),
        () => users.changeRole(accountId, bo.id, 'admin', by),
        () => users.remove(accountId, ada.id, by),
        () => accounts.update(accountId, settings, by),
      ]
      for (const act of late) await expect(act()).rejects.toThrow(NotAdminError)
      expect(await links.find(token)).toBeUndefined()
      expect(await users.list(accountId)).toMatchObject([{ role: 'admin' }, { role: 'developer' }])
    })

    test.for([1, 2, 3, 4])('remains when two owners remove each other concurrently (round %i)', async (round, test) => {
      const one = await openUsers(test, kind)
      const two = await openUsers(test, kind, one.location)
      const ada = await newAccount(one)
      const { accountId } = ada
      const bo = await newUser(one, accountId, 'admin')
      const demote = ({ users }: Opened, id: string, isRemoval: boolean) =>
        isRemoval ? users.remove(accountId, id, operator) : users.changeRole(accountId, id, 'developer', operator)
      const other = round > 2 ? one : two
      const results = await Promise.allSettled([demote(one, ada.id, round % 2 === 0), demote(other, bo.id, true)])
      expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
      expect((await one.users.list(accountId)).filter(({ role }) => role === 'admin')).toHaveLength(1)
    })
  })

  describe('removing a user', () => {
    test('revokes sessions, links, keys and the password in every process', async (test) => {
      const one = await openUsers(test, kind)
      const two = await openUsers(test, kind, one.location)
      const ada = await newAccount(one)
      const { accountId } = ada
      const bo = await newUser(one, accountId, 'admin')
      const draft = { accountId, name: 'Key', scopes: null, expiresAt: null }
      const [keyOfAda, keyOfBo] = [
        await one.apiKeys.create({ ...draft, userId: ada.id }, operator),
        await one.apiKeys.create({ ...draft, userId: bo.id }, operator),
      ]
      const session = await newSession(one, bo)
      const link = await one.links.createSignInLink(bo, operator)
      expect(await two.apiKeys.authenticate(keyOfBo.value)).toBeDefined()
      expect(await one.users.remove(accountId, bo.id, operator)).toBe(true)
      for (const { apiKeys, users, sessions, links } of [two, one]) {
        expect(await apiKeys.authenticate(keyOfBo.value)).toBeUndefined()
        expect(await sessions.get(session)).toBeUndefined()
        expect(await links.find(link)).toBeUndefined()
        expect(await users.get(bo.id)).toBeUndefined()
        expect(await users.authenticate(bo.email ?? '', password)).toBeUndefined()
        expect((await users.list(accountId)).map(({ id }) => id)).toEqual([ada.id])
        expect(await apiKeys.authenticate(keyOfAda.value)).toBeDefined()
      }
      expect((await one.users.names(accountId)).get(bo.id)).toBe('Bo')
      expect(await one.users.remove(accountId, bo.id, operator)).toBe(false)
      expect(await one.users.changeRole(accountId, bo.id, 'admin', operator)).toBe(false)
    })

    test.each(['removed', 'made a developer'])('ends the links they created (when %s)', async (how) => {
      const opened = await openUsers({ onTestFinished }, kind)
      const { users, links } = opened
      const ada = await newAccount(opened)
      const mallory = await newUser(opened, ada.accountId, 'admin')
      const actor = toActor(mallory)
      const tokens = [
        await links.createSignInLink(ada, actor),
        await links.invite(ada.accountId, { label: 'Another', role: 'admin' }, actor),
      ]
      const kept = await links.invite(ada.accountId, { label: 'Bo', role: 'developer' }, toActor(ada))
      if (how === 'removed') await users.remove(ada.accountId, mallory.id, operator)
      else await users.changeRole(ada.accountId, mallory.id, 'developer', operator)
      for (const token of tokens) expect(await links.find(token)).toBeUndefined()
      expect(await links.find(kept)).toBeDefined()
    })

    test('prevents a concurrent rotation from creating a key', async (test) => {
      const one = await openUsers(test, kind)
      const two = await openUsers(test, kind, one.location)
      const { accountId } = await newAccount(one)
      const bo = await newUser(one, accountId)
      const draft = { accountId, userId: bo.id, name: 'Key', scopes: null, expiresAt: null }
      const { id } = await one.apiKeys.create(draft, operator)
      await Promise.all([
        two.users.remove(accountId, bo.id, operator),
        one.apiKeys.rotate(accountId, id, uuid(), operator),
        two.apiKeys.rotate(accountId, id, uuid(), operator),
      ])
      expect(await one.apiKeys.list(accountId)).toEqual([])
    })

    test('frees the e-mail address', async (test) => {
      const opened = await openUsers(test, kind)
      const { users, links } = opened
      const { accountId } = await newAccount(opened)
      const bo = await newUser(opened, accountId)
      await users.remove(accountId, bo.id, operator)
      const token = await links.invite(accountId, { label: 'Bo', role: 'developer' }, operator)
      const again = await links.accept(token, { name: 'Bo', email: bo.email ?? '', password })
      expect(again.id).not.toBe(bo.id)
      expect(await users.authenticate(bo.email ?? '', password)).toMatchObject({ id: again.id })
    })

    test('prevents a concurrent request from creating a key', async (test) => {
      const one = await openUsers(test, kind)
      const two = await openUsers(test, kind, one.location)
      const { accountId } = await newAccount(one)
      const bo = await newUser(one, accountId)
      const key = { accountId, userId: bo.id, name: 'Key', scopes: null, expiresAt: null }
      const attempts = [one, two, one].map(({ apiKeys }) => apiKeys.create(key, operator))
      const [, ...made] = await Promise.allSettled([two.users.remove(accountId, bo.id, operator), ...attempts])
      for (const each of made) if (each.status === 'rejected') expect(each.reason).toBeInstanceOf(ApiKeyError)
      await expect(one.apiKeys.create(key, operator)).rejects.toMatchObject({ about: 'holder' })
      expect(await one.apiKeys.list(accountId)).toEqual([])
    })

    test('is limited to users of the own account', async (test) => {
      const opened = await openUsers(test, kind)
      const { users } = opened
      const [ada, eve] = [await newAccount(opened), await newAccount(opened)]
      const bo = await newUser(opened, ada.accountId)
      expect(await users.remove(eve.accountId, bo.id, operator)).toBe(false)
      expect(await users.changeRole(eve.accountId, bo.id, 'admin', operator)).toBe(false)
      expect(await users.remove(eve.accountId, 'nobody', operator)).toBe(false)
      expect(await users.get(bo.id)).toMatchObject({ role: 'developer' })
    })
  })
})
