/** Environments of an account: what each has apart, what they share, promotion, and removal. */
import { describe, expect, test } from 'vitest'
import { deleteAccount } from '../../../src/domain/accounts/account-deletion.ts'
import { NotAdminError } from '../../../src/domain/accounts/accounts.sql.ts'
import { Environments } from '../../../src/domain/accounts/environments.ts'
import { operator } from '../../../src/domain/audit-log/audit-log.ts'
import { Deployments } from '../../../src/domain/deployments/deployments.ts'
import { promote, readPromotable } from '../../../src/domain/deployments/promotion.ts'
import { snapshotId } from '../../../src/domain/deployments/snapshot.ts'
import { Contents } from '../../../src/storage/blobs/contents.ts'
import { type Domain, newAccount, newUser, openDomain, queueRun, type Test } from '../../support/domain.ts'
import { writtenSnapshot } from '../../support/snapshots.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

async function open(test: Test, kind: StoreKind) {
  const domain = await openDomain(test, { kind })
  return { domain, account: await newAccount(domain) }
}

/** Adds an environment with a key of the account's admin. */
async function addEnvironment(
  domain: Domain,
  { accountId, userId }: { accountId: string; userId: string },
  name: string,
) {
  const environment = await domain.environments.add(accountId, { name }, operator)
  const draft = { userId, name: 'Key', scopes: null, expiresAt: null }
  const key = await domain.apiKeys.create({ ...draft, accountId: environment.id }, operator)
  return { environment, key, principal: { accountId: environment.id, apiKeyId: key.id } }
}

const names = async ({ environments }: Domain, accountId: string) =>
  (await environments.list(accountId)).map(({ environment }) => environment)

const snapshot = (version: string, more: object = {}) =>
  writtenSnapshot({ order: { version, variables: { type: 'object', properties: {}, ...more }, module: version } })

describe.each(stores)('on the store "$name"', (kind) => {
  test('an account has one environment without a name until another one is added, and again when that is removed', async (test) => {
    const { domain, account } = await open(test, kind)
    expect(await names(domain, account.accountId)).toEqual([null])
    expect(await domain.environments.find(account.accountId, 'production')).toBeUndefined()
    await domain.environments.add(account.accountId, { name: 'staging' }, operator)
    await domain.environments.add(account.accountId, { name: 'dev', first: 'unused' }, operator)
    expect(await names(domain, account.accountId)).toEqual(['production', 'dev', 'staging'])
    for (const name of ['staging', 'dev'])
      expect(await domain.environments.remove(account.accountId, name, operator)).toMatchObject({
        environment: name,
        left: 0,
      })
    expect(await names(domain, account.accountId)).toEqual([null])
    const actions = (await domain.auditLog.list(account.accountId, { limit: 20 })).map(({ action }) => action)
    expect(actions.slice(0, 6)).toEqual([
      ...['environment.removed', 'environment.removalStarted', 'environment.removed', 'environment.removalStarted'],
      ...['environment.added', 'environment.added'],
    ])
  })

  test('wrong names, names that are taken, and environments beyond the limit are refused', async (test) => {
    const { domain, account } = await open(test, kind)
    const environments = new Environments(domain.store, new Contents(domain.store), 2)
    const add = (name: string, first?: string) => environments.add(account.accountId, { name, first }, operator)
    for (const name of ['', 'Staging', '1st', '-a', 'a b', 'a'.repeat(33), 'é', 'a\n'])
      await expect(add(name)).rejects.toMatchObject({ member: 'name', message: /lower-case letters/ })
    await expect(add('staging', 'Live')).rejects.toMatchObject({ member: 'first' })
    await expect(add('production')).rejects.toMatchObject({ member: 'name', message: /already/ })
    await expect(add('live', 'live')).rejects.toMatchObject({ member: 'name' })
    const both = await Promise.allSettled([add('staging', 'live'), add('dev', 'live')])
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    await expect(add('more')).rejects.toThrow('The account has 2 environments, which is the limit.')
    await expect(environments.remove(account.accountId, 'live', operator)).rejects.toThrow('the account itself')
    expect(await environments.remove(account.accountId, 'unknown', operator)).toBeUndefined()
    const [, other] = await environments.list(account.accountId)
    await expect(environments.add(other?.id ?? '', { name: 'nested' }, operator)).rejects.toThrow('no such account')
  })

  test('only admins add and remove environments', async (test) => {
    const { domain, account } = await open(test, kind)
    const by = { kind: 'user', id: await newUser(domain, account.accountId), name: 'Another' } as const
    const { environments } = domain
    await expect(environments.add(account.accountId, { name: 'staging' }, by)).rejects.toThrow(NotAdminError)
    await environments.add(account.accountId, { name: 'staging' }, { ...by, id: account.userId })
    await expect(environments.remove(account.accountId, 'staging', by)).rejects.toThrow(NotAdminError)
    expect(await names(domain, account.accountId)).toEqual(['production', 'staging'])
  })

  test('a key belongs to one environment, and sees nothing of the others', async (test) => {
    const { domain, account } = await open(test, kind)
    const { environment, key, principal } = await addEnvironment(domain, account, 'staging')
    expect((await domain.apiKeys.authenticate(key.value))?.principal).toEqual({ ...principal, environment: 'staging' })
    const first = { ...account.principal, environment: 'production' }
    expect((await domain.apiKeys.authenticate(account.key.value))?.principal).toEqual(first)
    const runs = [(await queueRun(domain, account.principal)).id, (await queueRun(domain, principal)).id]
    for (const [index, accountId] of [account.accountId, environment.id].entries()) {
      expect((await domain.runs.list(accountId, { limit: 10 }))?.runs.map(({ id }) => id)).toEqual([runs[index]])
      expect(await domain.runs.get(accountId, runs[1 - index] ?? '')).toBeUndefined()
      expect(await domain.apiKeys.list(accountId)).toHaveLength(1)
    }
    await domain.accountValues.put(environment.id, 'secret', 'TOKEN', 'of staging', operator)
    expect(await domain.accountValues.listAll(account.accountId, 'secret')).toEqual([])
    expect(await domain.apiKeys.delete(account.accountId, key.id, operator)).toBe(false)
    expect((await domain.users.names(environment.id)).get(account.userId)).toBe('Admin')
  })

  test('limits of keys hold in each environment, and every key ends with its user', async (test) => {
    const { domain, account } = await open(test, kind)
    const { environment } = await addEnvironment(domain, account, 'staging')
    const userId = await newUser(domain, account.accountId)
    const draft = { userId, name: 'Key', scopes: null, expiresAt: null }
    const create = (accountId: string) => domain.apiKeys.create({ ...draft, accountId }, operator)
    for (const accountId of [account.accountId, environment.id]) {
      const created = await Promise.allSettled(Array.from({ length: 6 }, () => create(accountId)))
      expect(created.filter(({ status }) => status === 'fulfilled')).toHaveLength(4)
    }
    const stranger = await newAccount(domain)
    await expect(create(stranger.accountId)).rejects.toThrow('removed from the account')
    await domain.users.remove(account.accountId, userId, operator)
    for (const accountId of [account.accountId, environment.id]) {
      expect(await domain.apiKeys.list(accountId)).toHaveLength(1)
      const deleted = await domain.auditLog.list(accountId, { action: 'apiKey.deleted', limit: 10 })
      expect(deleted).toHaveLength(4)
    }
  })

  test('the name and switches of the account are those of its environments', async (test) => {
    const { domain, account } = await open(test, kind)
    const { environment } = await addEnvironment(domain, account, 'staging')
    const settings = { name: 'Renamed', scopesEnabled: true, secondFactorRequired: true }
    await domain.accounts.update(account.accountId, settings, operator)
    expect(await domain.accounts.get(environment.id)).toMatchObject({ ...settings, ownerId: account.accountId })
    const later = await addEnvironment(domain, account, 'later')
    expect(later.environment).toMatchObject(settings)
    const stranger = await newAccount(domain)
    expect(await names(domain, stranger.accountId)).toEqual([null])
  })

  test('a promotion deploys the same content in another environment, unless that breaks callers', async (test) => {
    const { domain, account } = await open(test, kind)
    const { environment, principal } = await addEnvironment(domain, account, 'staging')
    const deployments = await new Deployments(domain.store).open()
    test.onTestFinished(() => deployments.close())
    const [staging, production] = [environment.id, account.accountId]
    const promoteTo = async (accountId: string, allowBreaking = false) => {
      const promotable = await readPromotable(deployments, staging)
      if (!promotable) throw new Error('There is nothing to promote.')
      return promote(deployments, promotable, { from: 'staging', accountId, by: operator, allowBreaking })
    }
    expect(await readPromotable(deployments, staging)).toBeUndefined()
    const deployed = { accountId: staging, by: operator, directory: '/workflows' }
    const { deployment } = await deployments.deploy(snapshot('1.0.0'), deployed)
    expect(deployments.current(production).get('order')).toBeUndefined()
    expect(await readPromotable(deployments, production, deployment.id)).toBeUndefined()

    const first = await promoteTo(production)
    expect(first).toMatchObject({ breaking: [], result: { activated: true } })
    expect(first.result?.deployment.id).toBe(snapshotId(snapshot('1.0.0'), production))
    const copied = await readPromotable(deployments, production)
    expect(copied).toMatchObject({ contentHash: snapshotId(snapshot('1.0.0'), null), directory: '/workflows' })
    expect((await promoteTo(production)).result).toMatchObject({ activated: false })
    const [entry] = await domain.auditLog.list(production, { action: 'workflows.deployed', limit: 1 })
    expect(entry?.details).toMatchObject({ promotedFrom: 'staging' })

    // Callers of staging accept what breaks those of production.
    const breaking = snapshot('1.1.0', { required: ['size'] })
    await deployments.deploy(breaking, deployed)
    const refused = await promoteTo(production)
    expect(refused.result).toBeUndefined()
    expect(refused.breaking).toMatchObject([{ id: 'order', before: '1.0.0', after: '1.1.0' }])
    expect(deployments.current(production).get('order')?.version).toBe('1.0.0')
    expect((await promoteTo(production, true)).result).toMatchObject({ activated: true })
    expect(deployments.current(production).get('order')?.version).toBe('1.1.0')
    expect(principal.accountId).not.toBe(production)
  })

  test('the removal of an environment leaves nothing of it, and the others as they are', async (test) => {
    const { domain, account } = await open(test, kind)
    const { environment, key, principal } = await addEnvironment(domain, account, 'staging')
    const { id: kept } = await queueRun(domain, account.principal)
    await queueRun(domain, principal)
    const receipt = await domain.environments.remove(account.accountId, 'staging', operator)
    expect(receipt).toMatchObject({
      accountId: environment.id,
      deleted: { runs: 1, api_keys: 1, accounts: 1 },
      left: 0,
    })
    expect(await domain.apiKeys.authenticate(key.value)).toBeUndefined()
    expect(await domain.accounts.get(environment.id)).toBeUndefined()
    expect((await domain.apiKeys.authenticate(account.key.value))?.principal).toEqual(account.principal)
    expect(await domain.runs.get(account.accountId, kept)).toBeDefined()
  })

  test('the deletion of an account deletes its environments', async (test) => {
    const { domain, account } = await open(test, kind)
    const { environment, principal } = await addEnvironment(domain, account, 'staging')
    await queueRun(domain, principal)
    const deleted = await domain.accounts.get(account.accountId)
    if (!deleted) throw new Error('There is no account.')
    const receipt = await deleteAccount(domain.store, deleted, new Contents(domain.store))
    expect(receipt).toMatchObject({ accountId: account.accountId, left: 0 })
    expect(receipt.environments).toMatchObject([
      { accountId: environment.id, environment: 'staging', deleted: { runs: 1 } },
    ])
    for (const id of [account.accountId, environment.id]) expect(await domain.accounts.get(id)).toBeUndefined()
  })

  test('with 50 environments, a key is looked up by one statement, which reads two rows', async (test) => {
    const { domain, account } = await open(test, kind)
    const environments = new Environments(domain.store, new Contents(domain.store), 50)
    for (let count = 1; count < 50; count++) await environments.add(account.accountId, { name: `e${count}` }, operator)
    expect(await environments.list(account.accountId)).toHaveLength(50)
    const { read } = domain.store
    const statements: string[] = []
    const all = read.all.bind(read)
    read.all = ((...given: Parameters<typeof all>) => {
      statements.push(String(given[0]))
      return all(...given)
    }) as typeof read.all
    const caller = await domain.apiKeys.authenticate(account.key.value)
    read.all = all
    expect(caller?.principal.environment).toBe('production')
    expect(statements).toHaveLength(1)
  })
})
