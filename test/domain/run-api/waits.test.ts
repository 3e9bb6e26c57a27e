/** The waits of a run that its page shows. */
import { v7 as uuid } from 'uuid'
import { describe, expect, test } from 'vitest'
import type { WaitKind, WaitStatus } from '../../../src/storage/tables/run-tables.ts'
import { newAccount, openDomain, queueRun } from '../../support/domain.ts'
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
