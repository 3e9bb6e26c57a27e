/** The audit log has an entry for every change of an account and for no refused one. */
import { describe, expect, test } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { Sessions } from '../../../src/domain/accounts/sessions.ts'
import { SignInLinks } from '../../../src/domain/accounts/sign-in-links.ts'
import type { User } from '../../../src/domain/accounts/user.ts'
import { Users } from '../../../src/domain/accounts/users.ts'
import { type Action, type Actor, AuditLog, operator, recordAudit } from '../../../src/domain/audit-log/audit-log.ts'
import { openDomain, type Test } from '../../support/domain.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const password = 'a difference engine'

async function openLog(test: Test, kind: StoreKind) {
  const domain = await openDomain(test, { kind })
  const { store } = domain
  return {
    ...domain,
    users: new Users(store, readConfig({})),
    links: new SignInLinks(store),
    auditLog: new AuditLog(store),
  }
}

type Opened = Awaited<ReturnType<typeof openLog>>

async function newOwner({ accounts, links }: Opened): Promise<{ ada: User; by: Actor; accountId: string }> {
  const { id } = await accounts.create({ name: 'Test', scopesEnabled: false })
  const email = `${crypto.randomUUID()}@example.com`
  const ada = await links.accept((await links.createWelcomeLink(id)) ?? '', { name: 'Ada', email, password })
  return { ada, by: { kind: 'user', id: ada.id, name: ada.name }, accountId: id }
}

async function signIn({ store }: Opened, user: User, how: 'password' | 'link'): Promise<void> {
  const session = { user, byLink: false, client: { address: '10.0.0.7', userAgent: '' }, proof: { how } }
  await new Sessions(store, 86_400_000).create(crypto.randomUUID(), session)
}

async function list({ auditLog }: Opened, accountId: string) {
  return (await auditLog.list(accountId, { limit: 100 })).reverse()
}

/** Adds entries and returns their IDs, oldest first. */
async function fill({ store, auditLog }: Opened, accountId: string, count: number): Promise<string[]> {
  const entry = (index: number) => ({ action: 'user.signedIn', by: operator, details: { index } }) as const
  await store.write(async (tx) => {
    for (let index = 0; index < count; index += 1) await recordAudit(tx, accountId, entry(index))
  })
  return (await auditLog.list(accountId, { limit: count })).map(({ id }) => id).reverse()
}

describe.each(stores)('the audit log ($name)', (kind) => {
  test('changes to API keys are recorded with actor, subject and details', async (test) => {
    const opened = await openLog(test, kind)
    const { apiKeys } = opened
    const { ada, by, accountId } = await newOwner(opened)
    const draft = { accountId, userId: ada.id, scopes: null, expiresAt: null }
    const key = await apiKeys.create({ ...draft, name: 'import' }, by)
    await apiKeys.rename(accountId, key.id, 'nightly import', by)
    await apiKeys.rename(accountId, key.id, 'nightly import', by)
    const next = await apiKeys.rotate(accountId, key.id, crypto.randomUUID(), by)
    await apiKeys.delete(accountId, next?.id ?? '', operator)
    const entries = (await list(opened, accountId)).filter(({ action }) => action.startsWith('apiKey.'))
    const named = { id: key.id, name: 'nightly import' }
    const successor = { id: next?.id, name: 'nightly import' }
    expect(entries).toMatchObject([
      { action: 'apiKey.created', by, subject: { id: key.id, name: 'import' }, details: { prefix: key.prefix } },
      { action: 'apiKey.renamed', by, subject: named, details: { from: 'import', to: 'nightly import' } },
      { action: 'apiKey.deleted', by, subject: named, details: { replacedBy: next?.id, prefix: key.prefix } },
      { action: 'apiKey.rotated', by, subject: successor, details: { replaces: key.id, prefix: next?.prefix } },
      { action: 'apiKey.deleted', by: operator, subject: successor, details: { prefix: next?.prefix } },
    ])
  })

  test('changes to users and the account are recorded', async (test) => {
    const opened = await openLog(test, kind)
    const { accounts, apiKeys, links, users } = opened
    const { ada, by, accountId } = await newOwner(opened)
    const token = await links.invite(accountId, { label: 'Bo the Builder', role: 'developer' }, by)
    const bo = await links.accept(token, { name: 'Bo', email: `${crypto.randomUUID()}@example.com`, password })
    const subject = { id: bo.id, name: 'Bo' }
    const byBo = { kind: 'user', ...subject } as const
    await links.invite(accountId, { label: 'Cy', role: 'admin' }, by)
    const invitation = (await links.listInvitations(accountId))[0]?.id ?? ''
    await links.withdrawInvitation(accountId, invitation, by)
    await users.changeRole(accountId, bo.id, 'admin', by)
    await links.createSignInLink(bo, by)
    await signIn(opened, bo, 'link')
    await users.changePassword(bo, undefined, 'another engine')
    const key = { accountId, userId: bo.id, name: 'His', scopes: null, expiresAt: null }
    const { id } = await apiKeys.create(key, byBo)
    await users.remove(accountId, bo.id, by)
    const settings = { name: 'Renamed', scopesEnabled: false, secondFactorRequired: false }
    await accounts.update(accountId, { ...settings, scopesEnabled: true }, by)
    await accounts.update(accountId, settings, by)
    await accounts.update(accountId, settings, by)
    await accounts.update(accountId, { ...settings, secondFactorRequired: true }, by)
    await accounts.update(accountId, settings, by)
    expect(await list(opened, accountId)).toMatchObject([
      { action: 'user.joined', by: { id: ada.id }, details: { how: 'welcome', role: 'admin' } },
      { action: 'user.invited', by, subject: { name: 'Bo the Builder' }, details: { role: 'developer' } },
      { action: 'user.joined', by: byBo, details: { how: 'invitation', role: 'developer' } },
      { action: 'user.invited', by, subject: { id: invitation, name: 'Cy' }, details: { role: 'admin' } },
      { action: 'user.invitationWithdrawn', by, subject: { id: invitation, name: 'Cy' } },
      { action: 'user.roleChanged', by, subject, details: { from: 'developer', to: 'admin' } },
      { action: 'user.signInLinkMade', by, subject },
      { action: 'user.signedIn', by: byBo, details: { how: 'link', address: '10.0.0.7' } },
      { action: 'user.passwordChanged', by: byBo },
      { action: 'apiKey.created', by: byBo },
      { action: 'apiKey.deleted', by, subject: { id, name: 'His' }, details: { withUser: bo.id } },
      { action: 'user.removed', by, subject },
      { action: 'account.renamed', by, details: { from: 'Test', to: 'Renamed' } },
      { action: 'account.scopesEnabled', by },
      { action: 'account.scopesDisabled', by },
      { action: 'account.secondFactorRequired', by },
      { action: 'account.secondFactorOptional', by },
    ])
  })

  test('refused changes are not recorded', async (test) => {
    const opened = await openLog(test, kind)
    const { apiKeys, links, users } = opened
    const { ada, by, accountId } = await newOwner(opened)
    const before = await list(opened, accountId)
    const key = { accountId, userId: ada.id, name: 'Key', scopes: ['runs:read'], expiresAt: null }
    const refusedChanges = [
      apiKeys.create(key, by),
      apiKeys.create({ ...key, scopes: null, name: '' }, by),
      apiKeys.rename(accountId, crypto.randomUUID(), 'Name', by),
      apiKeys.rotate(accountId, crypto.randomUUID(), crypto.randomUUID(), by),
      apiKeys.delete(accountId, crypto.randomUUID(), by),
      users.remove(accountId, ada.id, by),
      users.changeRole(accountId, ada.id, 'developer', by),
      users.changePassword(ada, 'wrong', 'another engine'),
      links.withdrawInvitation(accountId, crypto.randomUUID(), by),
      links.useSignInLink('none'),
    ]
    await Promise.allSettled(refusedChanges)
    expect(await list(opened, accountId)).toEqual(before)
  })

  test('pages list every entry once, newest first', async (test) => {
    const opened = await openLog(test, kind)
    const { id } = await opened.accounts.create({ name: 'Test', scopesEnabled: false })
    const ids = await fill(opened, id, 1201)
    const all: string[] = []
    for await (const entry of opened.auditLog.all(id, {})) all.push(entry.id)
    expect(all).toEqual(ids.toReversed())
    const newest = await opened.auditLog.list(id, { limit: 2 })
    expect(newest.map(({ details }) => details.index)).toEqual([1200, 1199])
    const next = await opened.auditLog.list(id, { limit: 2, before: newest[1]?.id })
    expect(next.map(({ details }) => details.index)).toEqual([1198, 1197])
    expect(await opened.auditLog.list(id, { limit: 2, before: ids[0] })).toEqual([])
  })

  test('entries can be filtered by action and actor, and belong to one account', async (test) => {
    const opened = await openLog(test, kind)
    const { auditLog } = opened
    const [one, other] = [await newOwner(opened), await newOwner(opened)]
    await signIn(opened, one.ada, 'password')
    await signIn(opened, other.ada, 'password')
    const listIds = async (filter: { action?: Action; actorId?: string }) =>
      (await auditLog.list(one.accountId, { ...filter, limit: 10 })).map(({ action, by }) => [action, by.id])
    expect(await listIds({})).toHaveLength(2)
    expect(await listIds({ action: 'user.signedIn' })).toEqual([['user.signedIn', one.ada.id]])
    expect(await listIds({ actorId: one.ada.id })).toHaveLength(2)
    expect(await listIds({ actorId: one.ada.id, action: 'user.removed' })).toEqual([])
    expect(await listIds({ actorId: other.ada.id })).toEqual([])
    const all: string[] = []
    for await (const { action } of auditLog.all(one.accountId, { action: 'user.joined' })) all.push(action)
    expect(all).toEqual(['user.joined'])
  })
})
