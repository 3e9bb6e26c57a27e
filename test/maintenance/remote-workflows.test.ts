/** Retention of workflows that workers outside of the service have registered. */
import { describe, expect, test } from 'vitest'
import { unseenRemoteWorkflows } from '../../src/domain/deployments/deployments.sql.ts'
import { Deployments } from '../../src/domain/deployments/deployments.ts'
import { RemoteWorkflows } from '../../src/domain/remote-workers/remote-workflows.ts'
import { openDomain } from '../support/domain.ts'
import { stores } from '../support/store-kinds.ts'

const retentionDays = 30
const dayMilliseconds = 24 * 60 * 60 * 1000

describe.each(stores)('workflows of workers ($name)', (kind) => {
  test('are purged when no worker has registered them for the retention period', async (test) => {
    let time = Date.now()
    const now = () => time
    const { store, accounts } = await openDomain(test, { kind, now })
    const accountId = (await accounts.create({ name: 'Test', scopesEnabled: false })).id
    const deployments = await new Deployments(store, undefined, now).open()
    test.onTestFinished(() => deployments.close())
    const workflows = new RemoteWorkflows(store, deployments, now)
    const register = async (version: string) => {
      const sent = [{ id: 'invoice', version, variables: { type: 'object' } }]
      const registered = await workflows.register(
        { accountId, apiKeyId: crypto.randomUUID() },
        sent,
        AbortSignal.timeout(60_000),
      )
      if (registered.kind !== 'registered') throw new Error(JSON.stringify(registered))
      return registered.workflows
    }
    const stored = async () => {
      const rows = await store.read.query.selectFrom('deployments').select('id').where('is_remote', '=', 1).execute()
      return rows.map(({ id }) => id)
    }
    const target = unseenRemoteWorkflows(retentionDays, now)
    const purge = async () => {
      while (await target.next(store.read)) await store.write((tx) => target.remove(tx))
      await deployments.refresh()
      return deployments.current(accountId).get('invoice')?.version
    }
    await register('1.0.0')
    const [second] = await register('2.0.0')
    time += retentionDays * dayMilliseconds
    await register('2.0.0')
    expect(await purge()).toBe('2.0.0')
    expect(await stored()).toEqual([second?.deploymentId])
    // A worker that has run for longer than the retention period.
    time += retentionDays * dayMilliseconds
    const worker = { host: '', slots: 1, started_at: 0, alive_until: time + 1 }
    const own = { id: `${accountId}/1`, account_id: accountId, workflows: JSON.stringify([second]) }
    await store.write(({ query }) =>
      query
        .insertInto('workers')
        .values({ ...worker, ...own })
        .execute(),
    )
    expect(await purge()).toBe('2.0.0')
    await store.write(({ query }) => query.deleteFrom('workers').execute())
    expect(await purge()).toBeUndefined()
    expect(await stored()).toEqual([])
    expect(await register('1.0.0')).toMatchObject([{ id: 'invoice', version: '1.0.0' }])
    expect(deployments.current(accountId).get('invoice')?.version).toBe('1.0.0')
  })

  test('new definitions are checked in turn, and an account has a limit of those that wait', async (test) => {
    const { store, accounts } = await openDomain(test, { kind })
    const accountId = (await accounts.create({ name: 'Test', scopesEnabled: false })).id
    const deployments = await new Deployments(store).open()
    test.onTestFinished(() => deployments.close())
    const workflows = new RemoteWorkflows(store, deployments, Date.now)
    const by = { accountId, apiKeyId: crypto.randomUUID() }
    const gone = new AbortController()
    const register = async (id: string, signal: AbortSignal) => {
      // Equal definitions of another account are not checked again.
      const sent = [{ id, version: '1', description: accountId, variables: { type: 'object' } }]
      return (await workflows.register(by, sent, signal)).kind
    }
    const sent = Array.from({ length: 41 }, (_, index) => register(`w${index}`, gone.signal))
    const all = Promise.allSettled(sent)
    // Before the first one is checked.
    expect(await Promise.race(sent)).toBe('busy')
    gone.abort()
    const kinds = Map.groupBy(await all, (each) => (each.status === 'fulfilled' ? each.value : 'dropped'))
    expect(kinds.get('busy')).toHaveLength(1)
    expect(kinds.get('dropped')?.length).toBeGreaterThanOrEqual(39)
    const { signal } = new AbortController()
    expect(await register('w41', signal)).toBe('registered')
  })
})
