/** What an attempt gets of its account is read when it may have changed, and not otherwise. */
import { describe, expect, test, vi } from 'vitest'
import { valuesMax } from '../../../src/domain/account-values/account-values.ts'
import { DeclaredValuesReader } from '../../../src/domain/account-values/declared-values.ts'
import { operator } from '../../../src/domain/audit-log/audit-log.ts'
import type { Store, Transaction } from '../../../src/storage/store.ts'
import { claimOne } from '../../support/claims.ts'
import { newAccount, openDomain, queueRun, type Test, workflow } from '../../support/domain.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

async function open(test: Test, kind: StoreKind) {
  const domain = await openDomain(test, { kind, workflows: [workflow({ secrets: ['TOKEN'] })] })
  const { accountId, principal } = await newAccount(domain)
  let reads = 0
  const all: Transaction['all'] = (statement, values) => {
    reads += 1
    return domain.store.read.all(statement, values)
  }
  const store: Pick<Store, 'read'> = { read: { ...domain.store.read, all } }
  const reader = new DeclaredValuesReader(store, domain.encryption, undefined)
  /** The secret of a new attempt, and the number of statements that reading it took. */
  const start = async () => {
    await queueRun(domain, principal)
    const claim = await claimOne(domain)
    const before = reads
    const read = await reader.read(claim, domain.workflows)
    return [read.kind === 'values' ? read.values.secrets.TOKEN : read.wait.detail, reads - before]
  }
  const put = (value: string) => domain.accountValues.put(accountId, 'secret', 'TOKEN', value, operator)
  return { domain, accountId, principal, reader, start, put }
}

describe.each(stores)('a declared secret ($name)', (kind) => {
  test('is read once after each change', async (test) => {
    const { domain, accountId, start, put } = await open(test, kind)
    await put('first-token')
    expect([await start(), await start()]).toEqual([
      ['first-token', 1],
      ['first-token', 0],
    ])
    await put('second-token')
    expect([await start(), await start()]).toEqual([
      ['second-token', 1],
      ['second-token', 0],
    ])
    await domain.accountValues.delete(accountId, 'secret', 'TOKEN', operator)
    expect(await start()).toEqual(['The secret TOKEN is missing.', 1])
    await put('third-token')
    expect(await start()).toEqual(['third-token', 1])
  })

  test('is that of its own account, although another one has as many versions', async (test) => {
    const { domain, reader, start, put } = await open(test, kind)
    await put('first-token')
    const other = await newAccount(domain)
    await domain.accountValues.put(other.accountId, 'secret', 'TOKEN', 'token-of-another', operator)
    expect(await start()).toEqual(['first-token', 1])
    await queueRun(domain, other.principal)
    const read = await reader.read(await claimOne(domain), domain.workflows)
    expect(read).toMatchObject({ values: { secrets: { TOKEN: 'token-of-another' } } })
  })

  test('is read for a claim that a worker outside of the service repeats', async (test) => {
    const { domain, reader, start, put } = await open(test, kind)
    await put('first-token')
    await start()
    await put('second-token')
    const [run] = await domain.store.read.query.selectFrom('runs').selectAll().execute()
    const claim = { accountId: run?.account_id ?? '', workflowId: 'anything' }
    expect(await reader.read(claim, domain.workflows)).toMatchObject({ values: { secrets: { TOKEN: 'second-token' } } })
  })

  test('is read from an external store for each attempt, since nothing says when it changes', async (test) => {
    const { domain, principal } = await open(test, kind)
    const given = ['first-token', 'second-token']
    const external = { read: async () => new Map([['TOKEN', given.shift() ?? '']]) }
    const reader = new DeclaredValuesReader(domain.store, domain.encryption, external)
    for (const TOKEN of ['first-token', 'second-token']) {
      await queueRun(domain, principal)
      expect(await reader.read(await claimOne(domain), domain.workflows)).toMatchObject({
        values: { secrets: { TOKEN } },
      })
    }
  })

  test('is listed, counted and deleted for its own account only', async (test) => {
    const { domain, accountId, put } = await open(test, kind)
    const other = await newAccount(domain)
    const { accountValues, store } = domain
    await put('first-token')
    expect(await accountValues.listAll(other.accountId, 'secret')).toEqual([])
    await accountValues.put(other.accountId, 'secret', 'TOKEN', 'token-of-another', operator)
    const [row] = await store.read.query.selectFrom('account_values').selectAll().execute()
    if (!row) throw new Error('No value is stored.')
    const others = Array.from({ length: valuesMax - 1 }, (_, index) => ({
      ...row,
      account_id: accountId,
      name: `N${index}`,
    }))
    await store.write(({ query }) => query.insertInto('account_values').values(others).execute())
    expect(await put('second-token')).toMatchObject({ version: 2 })
    expect(await accountValues.put(accountId, 'secret', 'MORE', 'one-too-many', operator)).toBeUndefined()
    expect(await accountValues.put(other.accountId, 'secret', 'MORE', 'another-one', operator)).toMatchObject({
      version: 1,
    })
    expect(await accountValues.delete(accountId, 'secret', 'TOKEN', operator)).toBe(true)
    const left = await accountValues.listAll(other.accountId, 'secret')
    expect(left.map(({ name }) => name)).toEqual(['MORE', 'TOKEN'])
  })

  test('wakes the runs that wait for it, and says so to workers and followers', async (test) => {
    const { domain, principal, reader, put } = await open(test, kind)
    const { id } = await queueRun(domain, principal)
    const claim = await claimOne(domain)
    const read = await reader.read(claim, domain.workflows)
    if (read.kind !== 'missing') throw new Error('The secret is not missing.')
    await domain.queue.waitForValue(claim, read.wait)
    const notify = vi.spyOn(domain.store, 'notify')
    await put('first-token')
    for (const topic of ['queue', 'runs']) expect(notify).toHaveBeenCalledWith(topic)
    expect((await claimOne(domain)).runId).toBe(id)
  })
})
