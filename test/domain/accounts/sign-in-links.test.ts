/** Welcome links, invitations and sign-in links work once, even when used concurrently. */
import { describe, expect, test } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { LinkExpiredError, linkMilliseconds, SignInLinks } from '../../../src/domain/accounts/sign-in-links.ts'
import { UserError } from '../../../src/domain/accounts/user.ts'
import { Users } from '../../../src/domain/accounts/users.ts'
import { operator } from '../../../src/domain/audit-log/audit-log.ts'
import { openDomain, type Test } from '../../support/domain.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

async function openLinks(
  test: Test,
  kind: StoreKind,
  { location, now = Date.now }: { location?: string; now?: () => number } = {},
) {
  const domain = await openDomain(test, { kind, now, ...(location !== undefined && { location }) })
  return { ...domain, links: new SignInLinks(domain.store, now), users: new Users(domain.store, readConfig({})) }
}

const ada = { name: 'Ada', email: 'ada@example.com', password: 'a difference engine' }

/** Counts the attempts that succeed; the others must fail with `LinkExpiredError`. */
async function successes(attempts: Promise<unknown>[]): Promise<number> {
  const results = await Promise.allSettled(attempts)
  const refusals = results.filter((result) => result.status === 'rejected')
  for (const { reason } of refusals) expect(reason).toBeInstanceOf(LinkExpiredError)
  return results.length - refusals.length
}

describe.each(stores)('sign-in links ($name)', (kind) => {
  test('the store contains neither tokens nor the passwords chosen through links', async (test) => {
    const { location, accounts, links } = await openLinks(test, kind)
    const { id } = await accounts.create({ name: 'canary-account', scopesEnabled: false })
    const used = (await links.createWelcomeLink(id)) ?? ''
    const user = await links.accept(used, ada)
    const open = [
      await links.invite(id, { label: 'Bo', role: 'developer' }, operator),
      await links.createSignInLink(user, operator),
    ]
    const contents = await kind.contents(location)
    expect(contents.includes('canary-account')).toBe(true)
    for (const token of [used, ...open]) {
      expect(token).toMatch(/^[\w-]{32}$/)
      expect(contents.includes(token)).toBe(false)
      expect(contents.includes(Buffer.from(token, 'base64url'))).toBe(false)
    }
    expect(contents.includes(ada.password)).toBe(false)
  })

  describe('welcome links', () => {
    test('a welcome link sets up the first user as owner, once', async (test) => {
      const { accounts, links, users } = await openLinks(test, kind)
      const { id } = await accounts.create({ name: 'Test', scopesEnabled: false })
      const userId = await accounts.findAdminId(id)
      const token = (await links.createWelcomeLink(id)) ?? ''
      expect(await links.find(token)).toMatchObject({ kind: 'welcome', accountId: id, userId })
      expect(await links.accept(token, ada)).toMatchObject({ id: userId, role: 'admin', email: ada.email })
      expect(await users.list(id)).toMatchObject([{ id: userId, name: 'Ada', email: ada.email, role: 'admin' }])
      expect(await users.authenticate(' ADA@example.com ', ada.password)).toMatchObject({ id: userId })
      await expect(links.accept(token, { ...ada, email: 'eve@example.com' })).rejects.toBeInstanceOf(LinkExpiredError)
      expect(await links.find(token)).toBeUndefined()
      expect(await links.createWelcomeLink(id)).toBeUndefined()
      expect(await links.createFirstWelcomeLink()).toBeUndefined()
    })

    test.for([1, 2, 3])('one of eight concurrent uses of a welcome link succeeds (round %i)', async (_, test) => {
      const one = await openLinks(test, kind)
      const two = await openLinks(test, kind, { location: one.location })
      const { id } = await one.accounts.create({ name: 'Test', scopesEnabled: false })
      const token = (await one.links.createWelcomeLink(id)) ?? ''
      const attempts = Array.from({ length: 8 }, (_, index) =>
        (index % 2 ? one : two).links.accept(token, { ...ada, name: `User ${index}`, email: `${index}@example.com` }),
      )
      expect(await successes(attempts)).toBe(1)
      expect(await one.users.list(id)).toHaveLength(1)
    })

    test('a new welcome link replaces the previous one, and the first start creates one for the first account only', async (test) => {
      const { accounts, links } = await openLinks(test, kind)
      expect(await links.createFirstWelcomeLink()).toBeUndefined()
      const first = await accounts.create({ name: 'First', scopesEnabled: false })
      await accounts.create({ name: 'Second', scopesEnabled: false })
      const [replaced = '', latest = ''] = [await links.createFirstWelcomeLink(), await links.createFirstWelcomeLink()]
      expect(await links.find(replaced)).toBeUndefined()
      await expect(links.accept(replaced, ada)).rejects.toBeInstanceOf(LinkExpiredError)
      expect(await links.find(latest)).toMatchObject({ accountId: first.id })
      await links.accept(latest, ada)
    })

    test('a welcome link ends when its user sets an e-mail address in the profile', async (test) => {
      const { accounts, links, users } = await openLinks(test, kind)
      const { id } = await accounts.create({ name: 'Test', scopesEnabled: false })
      const token = (await links.createWelcomeLink(id)) ?? ''
      const [owner] = await users.list(id)
      if (!owner) throw new Error('An account comes with a user.')
      const signedIn = await links.useSignInLink(await links.createSignInLink(owner, operator))
      await users.updateProfile(signedIn, { name: 'Ada', email: ada.email }, undefined)
      expect(await links.find(token)).toBeUndefined()
      await expect(links.accept(token, { ...ada, email: 'eve@example.com' })).rejects.toBeInstanceOf(LinkExpiredError)
      expect(await users.list(id)).toMatchObject([{ name: 'Ada', email: ada.email }])
    })
  })

  describe('invitations', () => {
    test('concurrent uses of an invitation create one user with the invited role', async (test) => {
      const one = await openLinks(test, kind)
      const two = await openLinks(test, kind, { location: one.location })
      const { id } = await one.accounts.create({ name: 'Test', scopesEnabled: false })
      for (const role of ['admin', 'developer'] as const) {
        const token = await one.links.invite(id, { label: 'Somebody', role }, operator)
        const attempts = Array.from({ length: 6 }, (_, index) =>
          (index % 2 ? one : two).links.accept(token, { ...ada, name: role, email: `${role}${index}@example.com` }),
        )
        expect(await successes(attempts)).toBe(1)
        const created = (await one.users.list(id)).filter(({ name }) => name === role)
        expect(created.map((user) => user.role)).toEqual([role])
      }
      expect(await one.links.listInvitations(id)).toEqual([])
    })

    test('an invitation still works after a rejected form, which creates no user', async (test) => {
      const { accounts, links, users } = await openLinks(test, kind)
      const { id } = await accounts.create({ name: 'Test', scopesEnabled: false })
      await links.accept((await links.createWelcomeLink(id)) ?? '', ada)
      const token = await links.invite(id, { label: 'Bo', role: 'developer' }, operator)
      const expectRejected = async (changes: Partial<typeof ada>, member: string) => {
        const attempt = links.accept(token, { ...ada, email: 'bo@example.com', ...changes })
        await expect(attempt).rejects.toBeInstanceOf(UserError)
        await expect(attempt).rejects.toMatchObject({ member })
      }
      await expectRejected({ email: 'ADA@example.com' }, 'email')
      await expectRejected({ email: 'nobody' }, 'email')
      await expectRejected({ name: ' ' }, 'name')
      await expectRejected({ password: 'too short' }, 'password')
      expect(await users.list(id)).toHaveLength(1)
      expect(await links.accept(token, { ...ada, email: 'bo@example.com' })).toMatchObject({ role: 'developer' })
    })

    test('an invitation ends when it expires or when its own account withdraws it', async (test) => {
      let time = Date.now()
      const { accounts, links } = await openLinks(test, kind, { now: () => time })
      const { id } = await accounts.create({ name: 'Test', scopesEnabled: false })
      const other = await accounts.create({ name: 'Other', scopesEnabled: false })
      const invite = (label: string) => links.invite(id, { label, role: 'developer' }, operator)
      const [expiring, withdrawn] = [await invite('late'), await invite('withdrawn')]
      const linkId = (await links.find(withdrawn))?.id ?? ''
      expect((await links.listInvitations(id)).map(({ label }) => label)).toEqual(['withdrawn', 'late'])
      expect(await links.listInvitations(other.id)).toEqual([])
      expect(await links.withdrawInvitation(other.id, linkId, operator)).toBe(false)
      expect(await links.withdrawInvitation(id, linkId, operator)).toBe(true)
      expect(await links.withdrawInvitation(id, linkId, operator)).toBe(false)
      await expect(links.accept(withdrawn, ada)).rejects.toBeInstanceOf(LinkExpiredError)
      time += linkMilliseconds.invitation - 1
      expect(await links.find(expiring)).toBeDefined()
      time += 1
      expect(await links.find(expiring)).toBeUndefined()
      expect(await links.listInvitations(id)).toEqual([])
      await expect(links.accept(expiring, ada)).rejects.toBeInstanceOf(LinkExpiredError)
    })
  })

  describe('sign-in links', () => {
    test('a sign-in link works once within a day, replaces earlier ones, and ends when the user is removed', async (test) => {
      let time = Date.now()
      const { accounts, links, users } = await openLinks(test, kind, { now: () => time })
      const { id } = await accounts.create({ name: 'Test', scopesEnabled: false })
      await links.accept((await links.createWelcomeLink(id)) ?? '', ada)
      const invitation = await links.invite(id, { label: 'Bo', role: 'developer' }, operator)
      const bo = await links.accept(invitation, { ...ada, name: 'Bo', email: 'bo@example.com' })
      const [replaced, latest] = [
        await links.createSignInLink(bo, operator),
        await links.createSignInLink(bo, operator),
      ]
      await expect(links.useSignInLink(replaced)).rejects.toBeInstanceOf(LinkExpiredError)
      expect(
        await successes([links.useSignInLink(latest), links.useSignInLink(latest), links.useSignInLink(latest)]),
      ).toBe(1)
      const expiring = await links.createSignInLink(bo, operator)
      time += linkMilliseconds.signIn
      await expect(links.useSignInLink(expiring)).rejects.toBeInstanceOf(LinkExpiredError)
      const last = await links.createSignInLink(bo, operator)
      await users.remove(id, bo.id, operator)
      expect(await links.find(last)).toBeUndefined()
      await expect(links.useSignInLink(last)).rejects.toBeInstanceOf(LinkExpiredError)
    })

    test('a link of one kind cannot be used as another kind', async (test) => {
      const { accounts, links } = await openLinks(test, kind)
      const { id } = await accounts.create({ name: 'Test', scopesEnabled: false })
      const user = await links.accept((await links.createWelcomeLink(id)) ?? '', ada)
      const signIn = await links.createSignInLink(user, operator)
      const invitation = await links.invite(id, { label: 'Bo', role: 'admin' }, operator)
      await expect(links.accept(signIn, { ...ada, email: 'eve@example.com' })).rejects.toBeInstanceOf(LinkExpiredError)
      await expect(links.useSignInLink(invitation)).rejects.toBeInstanceOf(LinkExpiredError)
      const unclaimed = await accounts.create({ name: 'Unclaimed', scopesEnabled: false })
      const welcome = (await links.createWelcomeLink(unclaimed.id)) ?? ''
      await expect(links.useSignInLink(welcome)).rejects.toBeInstanceOf(LinkExpiredError)
      expect(await links.find(welcome)).toBeDefined()
      for (const invalidToken of ['', 'none', signIn.slice(1), `${signIn}A`, signIn.toUpperCase()]) {
        await expect(links.useSignInLink(invalidToken)).rejects.toBeInstanceOf(LinkExpiredError)
      }
      expect(await links.useSignInLink(signIn)).toMatchObject({ id: user.id })
    })
  })

  test('a link is deleted 30 days after it has expired, when another one is created', async (test) => {
    let time = Date.now()
    const { store, accounts, links } = await openLinks(test, kind, { now: () => time })
    const { id } = await accounts.create({ name: 'Test', scopesEnabled: false })
    const invite = (label: string) => links.invite(id, { label, role: 'developer' }, operator)
    const countStored = async () =>
      (await store.read.query.selectFrom('sign_in_links').select('label').execute()).length
    await invite('Ada')
    await links.accept(await invite('Bo'), { ...ada, name: 'Bo', email: 'bo-then@example.com' })
    time += linkMilliseconds.invitation + 30 * 24 * 60 * 60 * 1000 - 1
    await invite('Cy')
    expect(await countStored()).toBe(3)
    time += 1
    await invite('Di')
    expect(await countStored()).toBe(2)
  })
})
