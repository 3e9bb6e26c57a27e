/** Links that work once: whoever comes, how often and from how many processes, one user comes of each at most. */
import { describe, expect, test } from 'vitest'
import { LinkExpired, linkMilliseconds, SignInLinks } from '../../src/domain/accounts/sign-in-links.ts'
import { UserError } from '../../src/domain/accounts/user.ts'
import { Users } from '../../src/domain/accounts/users.ts'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { openDomain, type Test } from '../support/store.ts'
import { type StoreKind, stores } from '../support/stores.ts'

async function openLinks(
  test: Test,
  kind: StoreKind,
  { place, now = Date.now }: { place?: string; now?: () => number } = {},
) {
  const domain = await openDomain(test, { kind, now, ...(place !== undefined && { place }) })
  return { ...domain, links: new SignInLinks(domain.store, now), users: new Users(domain.store) }
}

const ada = { name: 'Ada', email: 'ada@example.com', password: 'a difference engine' }

/** How many of the attempts succeeded; the others have found that the link has ended. */
async function successes(attempts: Promise<unknown>[]): Promise<number> {
  const results = await Promise.allSettled(attempts)
  const refusals = results.filter((result) => result.status === 'rejected')
  for (const { reason } of refusals) expect(reason).toBeInstanceOf(LinkExpired)
  return results.length - refusals.length
}

describe.each(stores)('sign-in links ($name)', (kind) => {
  test('stand nowhere in what is stored, nor do the passwords that are chosen by them', async (test) => {
    const { place, accounts, links } = await openLinks(test, kind)
    const { id } = await accounts.create({ name: 'canary-account', scopesEnabled: false })
    const used = (await links.welcome(id)) ?? ''
    const user = await links.accept(used, ada)
    const open = [await links.invite(id, { label: 'Bo', role: 'member' }, operator), await links.signIn(user, operator)]
    const contents = await kind.contents(place)
    expect(contents.includes('canary-account')).toBe(true)
    for (const token of [used, ...open]) {
      expect(token).toMatch(/^[\w-]{32}$/)
      expect(contents.includes(token)).toBe(false)
      expect(contents.includes(Buffer.from(token, 'base64url'))).toBe(false)
    }
    expect(contents.includes(ada.password)).toBe(false)
  })

  describe('that welcome', () => {
    test('make the user who came with the account its owner, once', async (test) => {
      const { accounts, links, users } = await openLinks(test, kind)
      const { id } = await accounts.create({ name: 'Test', scopesEnabled: false })
      const userId = await accounts.ownerOf(id)
      const token = (await links.welcome(id)) ?? ''
      expect(await links.find(token)).toMatchObject({ kind: 'welcome', accountId: id, userId })
      expect(await links.accept(token, ada)).toMatchObject({ id: userId, role: 'owner', email: ada.email })
      expect(await users.list(id)).toMatchObject([{ id: userId, name: 'Ada', email: ada.email, role: 'owner' }])
      expect(await users.withPassword(' ADA@example.com ', ada.password)).toMatchObject({ id: userId })
      await expect(links.accept(token, { ...ada, email: 'eve@example.com' })).rejects.toBeInstanceOf(LinkExpired)
      expect(await links.find(token)).toBeUndefined()
      expect(await links.welcome(id)).toBeUndefined()
      expect(await links.first()).toBeUndefined()
    })

    test.for([1, 2, 3])('are used by one of many who come at the same moment (round %i)', async (_, test) => {
      const one = await openLinks(test, kind)
      const two = await openLinks(test, kind, { place: one.place })
      const { id } = await one.accounts.create({ name: 'Test', scopesEnabled: false })
      const token = (await one.links.welcome(id)) ?? ''
      const attempts = Array.from({ length: 8 }, (_, index) =>
        (index % 2 ? one : two).links.accept(token, { ...ada, name: `User ${index}`, email: `${index}@example.com` }),
      )
      expect(await successes(attempts)).toBe(1)
      expect(await one.users.list(id)).toHaveLength(1)
    })

    test('end when another one is made, and lead into the first account alone', async (test) => {
      const { accounts, links } = await openLinks(test, kind)
      expect(await links.first()).toBeUndefined()
      const first = await accounts.create({ name: 'First', scopesEnabled: false })
      await accounts.create({ name: 'Second', scopesEnabled: false })
      const [old = '', young = ''] = [await links.first(), await links.first()]
      expect(await links.find(old)).toBeUndefined()
      await expect(links.accept(old, ada)).rejects.toBeInstanceOf(LinkExpired)
      expect(await links.find(young)).toMatchObject({ accountId: first.id })
      await links.accept(young, ada)
    })

    test('end when their user has said otherwise who they are', async (test) => {
      const { accounts, links, users } = await openLinks(test, kind)
      const { id } = await accounts.create({ name: 'Test', scopesEnabled: false })
      const token = (await links.welcome(id)) ?? ''
      const [owner] = await users.list(id)
      if (!owner) throw new Error('An account comes with a user.')
      const signedIn = await links.use(await links.signIn(owner, operator))
      await users.describe(signedIn, { name: 'Ada', email: ada.email }, undefined)
      expect(await links.find(token)).toBeUndefined()
      await expect(links.accept(token, { ...ada, email: 'eve@example.com' })).rejects.toBeInstanceOf(LinkExpired)
      expect(await users.list(id)).toMatchObject([{ name: 'Ada', email: ada.email }])
    })
  })

  describe('that invite', () => {
    test('make one user with the role that was given, however many come at the same moment', async (test) => {
      const one = await openLinks(test, kind)
      const two = await openLinks(test, kind, { place: one.place })
      const { id } = await one.accounts.create({ name: 'Test', scopesEnabled: false })
      for (const role of ['owner', 'member'] as const) {
        const token = await one.links.invite(id, { label: 'Somebody', role }, operator)
        const attempts = Array.from({ length: 6 }, (_, index) =>
          (index % 2 ? one : two).links.accept(token, { ...ada, name: role, email: `${role}${index}@example.com` }),
        )
        expect(await successes(attempts)).toBe(1)
        const made = (await one.users.list(id)).filter(({ name }) => name === role)
        expect(made.map((user) => user.role)).toEqual([role])
      }
      expect(await one.links.invitations(id)).toEqual([])
    })

    test('are still good after a form that was refused, and leave nothing of it', async (test) => {
      const { accounts, links, users } = await openLinks(test, kind)
      const { id } = await accounts.create({ name: 'Test', scopesEnabled: false })
      await links.accept((await links.welcome(id)) ?? '', ada)
      const token = await links.invite(id, { label: 'Bo', role: 'member' }, operator)
      const refused = async (given: Partial<typeof ada>, member: string) => {
        const attempt = links.accept(token, { ...ada, email: 'bo@example.com', ...given })
        await expect(attempt).rejects.toBeInstanceOf(UserError)
        await expect(attempt).rejects.toMatchObject({ member })
      }
      await refused({ email: 'ADA@example.com' }, 'email')
      await refused({ email: 'nobody' }, 'email')
      await refused({ name: ' ' }, 'name')
      await refused({ password: 'too short' }, 'password')
      expect(await users.list(id)).toHaveLength(1)
      expect(await links.accept(token, { ...ada, email: 'bo@example.com' })).toMatchObject({ role: 'member' })
    })

    test('end at their hour, and when they are withdrawn by their own account', async (test) => {
      let at = Date.now()
      const { accounts, links } = await openLinks(test, kind, { now: () => at })
      const { id } = await accounts.create({ name: 'Test', scopesEnabled: false })
      const other = await accounts.create({ name: 'Other', scopesEnabled: false })
      const invite = (label: string) => links.invite(id, { label, role: 'member' }, operator)
      const [late, withdrawn] = [await invite('late'), await invite('withdrawn')]
      const linkId = (await links.find(withdrawn))?.id ?? ''
      expect((await links.invitations(id)).map(({ label }) => label)).toEqual(['withdrawn', 'late'])
      expect(await links.invitations(other.id)).toEqual([])
      expect(await links.withdraw(other.id, linkId, operator)).toBe(false)
      expect(await links.withdraw(id, linkId, operator)).toBe(true)
      expect(await links.withdraw(id, linkId, operator)).toBe(false)
      await expect(links.accept(withdrawn, ada)).rejects.toBeInstanceOf(LinkExpired)
      at += linkMilliseconds.invitation - 1
      expect(await links.find(late)).toBeDefined()
      at += 1
      expect(await links.find(late)).toBeUndefined()
      expect(await links.invitations(id)).toEqual([])
      await expect(links.accept(late, ada)).rejects.toBeInstanceOf(LinkExpired)
    })
  })

  describe('that sign in', () => {
    test('work once, one at a time, for a day, and never for a user who was removed', async (test) => {
      let at = Date.now()
      const { accounts, links, users } = await openLinks(test, kind, { now: () => at })
      const { id } = await accounts.create({ name: 'Test', scopesEnabled: false })
      await links.accept((await links.welcome(id)) ?? '', ada)
      const invitation = await links.invite(id, { label: 'Bo', role: 'member' }, operator)
      const bo = await links.accept(invitation, { ...ada, name: 'Bo', email: 'bo@example.com' })
      const [old, young] = [await links.signIn(bo, operator), await links.signIn(bo, operator)]
      await expect(links.use(old)).rejects.toBeInstanceOf(LinkExpired)
      expect(await successes([links.use(young), links.use(young), links.use(young)])).toBe(1)
      const late = await links.signIn(bo, operator)
      at += linkMilliseconds.signIn
      await expect(links.use(late)).rejects.toBeInstanceOf(LinkExpired)
      const last = await links.signIn(bo, operator)
      await users.remove(id, bo.id, operator)
      expect(await links.find(last)).toBeUndefined()
      await expect(links.use(last)).rejects.toBeInstanceOf(LinkExpired)
    })

    test('are used as what they are alone', async (test) => {
      const { accounts, links } = await openLinks(test, kind)
      const { id } = await accounts.create({ name: 'Test', scopesEnabled: false })
      const user = await links.accept((await links.welcome(id)) ?? '', ada)
      const signIn = await links.signIn(user, operator)
      const invitation = await links.invite(id, { label: 'Bo', role: 'owner' }, operator)
      await expect(links.accept(signIn, { ...ada, email: 'eve@example.com' })).rejects.toBeInstanceOf(LinkExpired)
      await expect(links.use(invitation)).rejects.toBeInstanceOf(LinkExpired)
      const unclaimed = await accounts.create({ name: 'Unclaimed', scopesEnabled: false })
      const welcome = (await links.welcome(unclaimed.id)) ?? ''
      await expect(links.use(welcome)).rejects.toBeInstanceOf(LinkExpired)
      expect(await links.find(welcome)).toBeDefined()
      for (const nothing of ['', 'none', signIn.slice(1), `${signIn}A`, signIn.toUpperCase()]) {
        await expect(links.use(nothing)).rejects.toBeInstanceOf(LinkExpired)
      }
      expect(await links.use(signIn)).toMatchObject({ id: user.id })
    })
  })

  test('are forgotten a month after they have expired, when another one is made', async (test) => {
    let at = Date.now()
    const { store, accounts, links } = await openLinks(test, kind, { now: () => at })
    const { id } = await accounts.create({ name: 'Test', scopesEnabled: false })
    const invite = (label: string) => links.invite(id, { label, role: 'member' }, operator)
    const kept = async () => (await store.read.query.selectFrom('sign_in_links').select('label').execute()).length
    await invite('Ada')
    await links.accept(await invite('Bo'), { ...ada, name: 'Bo', email: 'bo-then@example.com' })
    at += linkMilliseconds.invitation + 30 * 24 * 60 * 60 * 1000 - 1
    await invite('Cy')
    expect(await kept()).toBe(3)
    at += 1
    await invite('Di')
    expect(await kept()).toBe(2)
  })
})
