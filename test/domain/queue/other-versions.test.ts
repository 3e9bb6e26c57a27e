/** Claims that leave runs of other versions to other workers. */
import { describe, expect, test } from 'vitest'
import type { Claimable } from '../../../src/domain/queue/attempts.ts'
import { claimableOf, leaseSeconds } from '../../support/claims.ts'
import { type Domain, newAccount, openDomain, queueRun, type Test, workflow } from '../../support/domain.ts'
import { stores } from '../../support/store-kinds.ts'

/** Queues a run for each version, in this order, and returns their ids. */
async function queueVersions(domain: Domain, versions: readonly string[]): Promise<string[]> {
  const { principal } = await newAccount(domain)
  const ids: string[] = []
  for (const version of versions) {
    const { id } = await queueRun(domain, principal)
    const run = domain.store.write(({ query }) =>
      query.updateTable('runs').set({ workflow_version: version }).where('id', '=', id).execute(),
    )
    await run
    ids.push(id)
  }
  return ids
}

async function claim(
  domain: Domain,
  otherVersions: readonly string[],
  countMax: number,
  members: Partial<Claimable> = {},
) {
  const claimable = claimableOf([{ ...workflow(), ...members, otherVersions }])
  const claims = await domain.queue.claim('worker', claimable, countMax, leaseSeconds)
  return claims.map(({ runId }) => runId)
}

describe.each(stores)('runs of other versions ($name)', (kind) => {
  const open = (test: Test) => openDomain(test, { kind })

  test('stay in the queue, and do not keep those behind them from being claimed', async (test) => {
    const domain = await open(test)
    const [first, second, third, fourth, fifth] = await queueVersions(domain, ['1.0', '2.0', '1.1 "b"', '2.1', '2.0'])
    const old = ['1.0', '1.1 "b"']
    expect(await claim(domain, old, 1)).toEqual([second])
    expect(await claim(domain, old, 10)).toEqual([fourth, fifth])
    expect(await claim(domain, old, 10)).toEqual([])
    expect(await claim(domain, ['2.0', '2.1'], 10)).toEqual([first, third])
  })

  test('with a limit or a throttle stay there, too', async (test) => {
    const domain = await open(test)
    const ids = await queueVersions(domain, ['1.0', '2.0', '1.0', '2.0'])
    const concurrency = { limit: 1, per: 'workflow' } as const
    expect(await claim(domain, ['1.0'], 10, { concurrency })).toEqual([ids[1]])
    expect(await claim(domain, ['1.0'], 10, { concurrency })).toEqual([])
    const throttle = { limit: 5, periodSeconds: 60, per: 'account' } as const
    expect(await claim(domain, ['1.0'], 10, { throttle })).toEqual([ids[3]])
    expect(await claim(domain, [], 10, { throttle })).toEqual([ids[0], ids[2]])
  })

  test('that go on after a wait, and for which a throttle does not count, stay there, too', async (test) => {
    const domain = await open(test)
    const throttle = { limit: 1, periodSeconds: 60, per: 'account' } as const
    const ids = await queueVersions(domain, ['2.0', '2.0', '1.0', '2.0'])
    expect(await claim(domain, ['1.0'], 1, { throttle })).toEqual([ids[0]])
    await domain.store.write(({ query }) =>
      query.updateTable('runs').set({ continues: 1 }).where('id', 'in', ids.slice(2)).execute(),
    )
    expect(await claim(domain, ['1.0'], 10, { throttle })).toEqual([ids[3]])
    expect(await claim(domain, ['1.0'], 10, { throttle })).toEqual([])
    expect(await claim(domain, [], 10, { throttle })).toEqual([ids[2]])
  })
})
