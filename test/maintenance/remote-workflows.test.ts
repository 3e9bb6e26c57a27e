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
    const ended: string[] = []
    const register = async (id: string, signal: AbortSignal) => {
      const { kind } = await workflows.register(by, [{ id, version: '1', variables: { type: 'object' } }], signal)
      ended.push(id)
      return kind
    }
    const { signal } = new AbortController()
    const first = register('w0', signal)
    const second = register('w1', signal)
    const waiting = Array.from({ length: 38 }, (_, index) => register(`w${index + 2}`, gone.signal))
    const dropped = Promise.allSettled(waiting)
    expect(await register('w40', signal)).toBe('busy')
    expect(ended).toEqual(['w40'])
    gone.abort()
    expect(await Promise.all([first, second])).toEqual(['registered', 'registered'])
    expect(ended).toEqual(['w40', 'w0', 'w1'])
    expect(new Set((await dropped).map(({ status }) => status))).toEqual(new Set(['rejected']))
    expect(await register('w40', signal)).toBe('registered')
  })
})
