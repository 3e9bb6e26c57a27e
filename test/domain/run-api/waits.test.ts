/** The waits that lists and the page of a run show. */
import { v7 as uuid } from 'uuid'
import { describe, expect, test, vi } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { Users } from '../../../src/domain/accounts/users.ts'
import { operator } from '../../../src/domain/audit-log/audit-log.ts'
import { hideRun } from '../../../src/storage/runs/run-maintenance.ts'
import type { WaitKind, WaitStatus } from '../../../src/storage/tables/run-tables.ts'
import { newAccount, newUser, openDomain, queueRun, workflow } from '../../support/domain.ts'
import { stores } from '../../support/store-kinds.ts'

describe.each(stores)('the latest waits of a run ($name)', (kind) => {
  test('have every question first, then what else is open, then what has ended last', async (test) => {
    const domain = await openDomain(test, { kind })
    const { principal, accountId } = await newAccount(domain)
    const { id } = await queueRun(domain, principal)
    const wait = (name: string, kind: WaitKind, status: WaitStatus) => ({
      ...{ id: uuid(), run_id: id, name, account_id: accountId, workflow_id: 'anything', kind, status, reached_at: 1 },
      ...{ delivered: 0 as const, is_detached: 0 as const },
    })
    const ended = ['a', 'b', 'c'].map((name) => wait(name, 'sleep', 'completed'))
    const open = [wait('d', 'run', 'open'), wait('e', 'run', 'open'), wait('f', 'answer', 'open')]
    await domain.store.write(({ query }) =>
      query
        .insertInto('run_waits')
        .values([...ended, ...open])
        .execute(),
    )
    const names = async (max: number) => (await domain.waits.latestOfRun({ id }, max)).map(({ name }) => name).join('')
    expect(await Promise.all([1, 2, 3, 4, 10].map(names))).toEqual(['f', 'df', 'def', 'cdef', 'abcdef'])
  })
})

test.for(stores)('waits of a run that is being erased are in no list ($name)', async (kind, test) => {
  const domain = await openDomain(test, { kind })
  const { principal, accountId } = await newAccount(domain)
  const runs = [await queueRun(domain, principal), await queueRun(domain, principal), await queueRun(domain, principal)]
  const rows = runs.map(({ id: run_id }) => ({
    ...{ id: uuid(), run_id, name: 'pause', account_id: accountId, workflow_id: 'anything', kind: 'sleep' as const },
    ...{ status: 'completed' as const, reached_at: 1, delivered: 1 as const, is_detached: 0 as const },
  }))
  await domain.store.write(({ query }) => query.insertInto('run_waits').values(rows).execute())
  const [first, erased, last] = runs.map(({ id }) => id) as [string, string, string]
  const list = async (limit: number, cursor?: string) => {
    const page = await domain.waits.list(accountId, { limit, cursor })
    return { runs: page?.waits.map(({ runId }) => runId), cursor: page?.nextCursor ?? undefined }
  }
  expect((await list(10)).runs).toEqual([first, erased, last])
  // As deletion does first, before it erases the rest in further transactions.
  await domain.store.write((tx) => tx.all(hideRun, [erased]))
  expect((await list(10)).runs).toEqual([first, last])
  const page = await list(1)
  expect(page.runs).toEqual([first])
  expect(await list(1, page.cursor)).toEqual({ runs: [last], cursor: undefined })
  expect(await domain.waits.findPageOfRun(accountId, erased, { limit: 10 })).toBe(undefined)
})

test.for(stores)('a link ends when the member who has created it may answer no longer ($name)', async (kind, test) => {
  const waits = { approval: { title: 'Send it?', description: '', schema: { type: 'object' } } }
  const domain = await openDomain(test, { kind, workflows: [workflow({ waits })] })
  const { principal, accountId } = await newAccount(domain)
  const { id } = await queueRun(domain, principal)
  const member = { kind: 'user', id: await newUser(domain, accountId), name: 'Bo' } as const
  const link = await domain.waits.createLink(accountId, id, 'approval', 3600, member)
  if (!('token' in link)) throw new Error(link.kind)
  const stateOf = async () => (await domain.waits.openLink(link.token))?.state
  const users = new Users(domain.store, readConfig({}))
  const states = [await stateOf()]
  for (const role of ['viewer', 'operator'] as const) {
    await users.changeRole(accountId, member.id, role, operator)
    states.push(await stateOf())
  }
  await users.remove(accountId, member.id, operator)
  expect([...states, await stateOf()]).toEqual(['open', 'expired', 'open', 'expired'])
})

test.for(stores)(
  'a wait is listed for its account, takes one answer, and masks its secrets ($name)',
  async (kind, test) => {
    const schema = { type: 'object', properties: { code: { type: 'string', writeOnly: true } } }
    const waits = { approval: { title: 'Code?', description: '', schema } }
    const domain = await openDomain(test, { kind, workflows: [workflow({ waits })] })
    const { principal, accountId, userId } = await newAccount(domain, { scopesEnabled: true })
    const foreign = await newAccount(domain)
    const [{ id }, { id: late }] = [await queueRun(domain, principal), await queueRun(domain, principal)]
    const answer = (runId: string, code: string) =>
      domain.waits.answer(accountId, runId, 'approval', { code }, { ...principal, address: null })
    const notify = vi.spyOn(domain.store, 'notify')
    expect(await answer(id, 'canary-code')).toMatchObject({ kind: 'answered' })
    for (const topic of ['queue', 'runs']) expect(notify).toHaveBeenCalledWith(topic)
    const list = async (of: string) => (await domain.waits.list(of, { limit: 10 }))?.waits.map(({ value }) => value)
    expect(await list(accountId)).toEqual([{ code: '********' }])
    expect(await list(foreign.accountId)).toEqual([])
    const link = (runId: string) => domain.waits.createLink(accountId, runId, 'approval', 60, principal)
    expect(await link(id)).toEqual({ kind: 'otherAnswer' })
    await answer(late, 'another-code')
    const over = { status: 'timedOut', value: null } as const
    await domain.store.write(({ query }) =>
      query.updateTable('run_waits').set(over).where('run_id', '=', late).execute(),
    )
    expect(await link(late)).toEqual({ kind: 'ended' })
    const draft = { accountId, userId, name: 'Reader', expiresAt: null }
    const mayAnswer = async (scopes: string[]) => {
      const key = await domain.apiKeys.create({ ...draft, scopes: scopes as never }, operator)
      return domain.waits.mayAnswer({ apiKeyId: key.id })
    }
    expect([await mayAnswer(['runs:read']), await mayAnswer(['waits:write'])]).toEqual([false, true])
  },
)
