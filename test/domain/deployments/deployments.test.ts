/** Deployments in the store: which one is current for an account, in every process, and what a rollback restores. */

import { randomUUID } from 'node:crypto'
import type { KyselyPlugin } from 'kysely'
import { v7 as uuid } from 'uuid'
import { describe, expect, test, vi } from 'vitest'
import { operator } from '../../../src/domain/audit-log/audit-log.ts'
import { Deployments } from '../../../src/domain/deployments/deployments.ts'
import { describeChanges } from '../../../src/domain/deployments/evolution.ts'
import type { Snapshot } from '../../../src/domain/deployments/snapshot.ts'
import { insertRuns, type NewRun } from '../../../src/domain/queue/enqueue-batcher.ts'
import { Runs } from '../../../src/domain/run-api/runs.ts'
import { Cursors } from '../../../src/storage/cursors.ts'
import { createManualClock } from '../../support/claims.ts'
import { newAccount, openDomain, openStore, type Test, workflow } from '../../support/domain.ts'
import { beforeNextWrite } from '../../support/interleaving.ts'
import { newRunRow } from '../../support/run-rows.ts'
import { type StoreKind, stores } from '../../support/store-kinds.ts'

const daySeconds = 24 * 60 * 60

/** A snapshot with one module for each workflow, by ID and version. */
function snapshotOf(versions: Record<string, string>): Snapshot {
  const ids = Object.keys(versions).sort()
  return {
    files: ids.map((id) => ({ path: `${id}.js`, content: `export default ${JSON.stringify([id, versions[id]])}` })),
    externals: [],
    workflows: ids.map((id) => ({ ...workflow({ id, version: versions[id] as string }), module: `${id}.js` })),
  }
}

async function openDeployments(test: Test, kind: StoreKind) {
  const domain = await openDomain(test, { kind })
  const deployments = await openIn(test, domain.store)
  const deploy = (versions: Record<string, string>, accountId: string | null = null) =>
    deployments.deploy(snapshotOf(versions), { accountId, by: operator, directory: '/workflows' })
  return { domain, deployments, deploy, ...(await newAccount(domain)) }
}

async function openIn(test: Test, store: ConstructorParameters<typeof Deployments>[0]): Promise<Deployments> {
  const deployments = await new Deployments(store).open()
  test.onTestFinished(() => deployments.close())
  return deployments
}

/** The versions that an account sees, by workflow. */
function versions(deployments: Deployments, accountId: string): Record<string, string> {
  return Object.fromEntries(
    deployments
      .current(accountId)
      .list()
      .map(({ id, version }) => [id, version]),
  )
}

describe.each(stores)('deployments ($name)', (kind) => {
  test('the last one of the installation is current, in other processes within a second, and its files are read back', async (test) => {
    const { domain, deployments, deploy, accountId } = await openDeployments(test, kind)
    const other = await openIn(test, await openStore(test, domain.location, kind))
    expect(versions(deployments, accountId)).toEqual({})
    const { deployment: first } = await deploy({ a: '1', b: '1' })
    expect(versions(deployments, accountId)).toEqual({ a: '1', b: '1' })
    await vi.waitUntil(() => other.current(accountId).deploymentOf('a') === first.id, { timeout: 1000 })
    const { deployment: second, previous } = await deploy({ a: '2' })
    expect(previous).toEqual(first)
    expect(versions(deployments, accountId)).toEqual({ a: '2' })
    await vi.waitUntil(() => other.current(accountId).deploymentOf('a') === second.id, { timeout: 1000 })
    const { files, externals } = snapshotOf({ a: '1', b: '1' })
    expect(await other.readFiles(first.id)).toEqual({ files, externals, directory: '/workflows' })
    expect((await other.findWorkflows(first.id))?.get('b')).toMatchObject({ version: '1' })
    await domain.store.write((tx) => tx.all('UPDATE deployments SET workflows = ? WHERE id = ?', ['[]', second.id]))
    await expect((await openIn(test, domain.store)).readFiles(second.id)).rejects.toThrow(
      /not those that were deployed/,
    )
  })

  test('deploying the same content again changes nothing, unless something else is current', async (test) => {
    const { deployments, deploy } = await openDeployments(test, kind)
    expect(await deploy({ a: '1' })).toMatchObject({ activated: true, previous: undefined })
    expect(await deploy({ a: '1' })).toMatchObject({ activated: false })
    await deploy({ a: '2' })
    await deployments.rollback(null, operator)
    const options = { accountId: null, by: operator, directory: '/workflows' }
    const start = (snapshot: Snapshot) => deployments.deploy(snapshot, { ...options, unless: 'lastDeployed' })
    expect(await start(snapshotOf({ a: '2' }))).toMatchObject({ activated: false })
    expect(deployments.installation.get('a')).toMatchObject({ version: '1' })
    expect(await deploy({ a: '2' })).toMatchObject({ activated: true })
    expect(deployments.installation.get('a')).toMatchObject({ version: '2' })
  })

  test('is compared with what another process has deployed in the meantime', async (test) => {
    const { domain, deployments, deploy } = await openDeployments(test, kind)
    const other = await openIn(test, await openStore(test, domain.location, kind))
    const deployMeanwhile = (versions: Record<string, string>) =>
      beforeNextWrite(domain.store, () =>
        other.deploy(snapshotOf(versions), { accountId: null, by: operator, directory: '/other' }),
      )
    deployMeanwhile({ a: '1' })
    const same = await deploy({ a: '1' })
    expect(same.activated).toBe(false)
    expect(await deployments.readFiles(same.deployment.id)).toMatchObject({ directory: '/other' })
    deployMeanwhile({ a: '2' })
    const { activated, previous } = await deploy({ a: '3' })
    expect(activated).toBe(true)
    expect(previous?.workflows).toMatchObject([{ id: 'a', version: '2' }])
    const activations = await domain.store.read.query.selectFrom('deployment_activations').selectAll().execute()
    expect(activations).toHaveLength(3)
  })

  test('a start does not deploy again what was rolled back, also after the retention of the deployment', async (test) => {
    const clock = createManualClock()
    const domain = await openDomain(test, { kind, now: clock.now })
    const deployments = new Deployments(domain.store, undefined, clock.now)
    const options = { accountId: null, by: operator, directory: '/workflows' }
    for (const version of ['1', '2']) await deployments.deploy(snapshotOf({ a: version }), options)
    await deployments.rollback(null, operator)
    clock.advance(100 * daySeconds)
    while ((await domain.maintenance.once()) < 1000);
    const started = await deployments.deploy(snapshotOf({ a: '2' }), { ...options, unless: 'lastDeployed' })
    expect(started.activated).toBe(false)
    expect(deployments.installation.get('a')).toMatchObject({ version: '1' })
  })

  test("the concurrency limit of an account's own workflow counts none of another account's runs", async (test) => {
    const { domain, deployments, deploy, accountId } = await openDeployments(test, kind)
    const other = await newAccount(domain)
    await deploy({ a: '1' })
    const limited = snapshotOf({ a: '2' })
    limited.workflows = limited.workflows.map((each) => ({
      ...each,
      concurrency: { limit: 1, per: 'workflow' as const },
    }))
    await deployments.deploy(limited, { accountId, by: operator, directory: '/workflows' })
    const { store, encryption, artifacts } = domain
    const runs = new Runs({ store, encryption, artifacts, cursors: new Cursors(encryption), workflows: deployments })
    const [theirs, own, second] = [other.accountId, accountId, accountId].map((each) =>
      newRunRow(each, { workflow_id: 'a' }),
    ) as [NewRun, NewRun, NewRun]
    await store.write((tx) => insertRuns(tx, [theirs]))
    expect(await domain.queue.claim('worker', deployments.claimable(), 1, 60)).toMatchObject([{ runId: theirs.id }])
    await store.write((tx) => insertRuns(tx, [own, second]))
    expect(await runs.get(accountId, own.id)).toMatchObject({ waitingFor: 'worker' })
    expect(await domain.queue.claim('worker', deployments.claimable(), 1, 60)).toMatchObject([{ runId: own.id }])
    expect(await runs.get(accountId, second.id)).toMatchObject({ waitingFor: 'concurrencyLimit' })
  })

  test('a run that is purged while a worker looks up its removed workflow does not keep others waiting', async (test) => {
    const { domain, deployments, deploy, accountId } = await openDeployments(test, kind)
    const { deployment } = await deploy({ a: '1', b: '1' })
    await deploy({ a: '2' })
    const row = newRunRow(accountId, { workflow_id: 'b', deployment_id: deployment.id })
    await domain.store.write((tx) => insertRuns(tx, [row]))
    const claimable = deployments.claimable()
    await claimable.load([{ id: uuid(), account_id: accountId, workflow_id: 'b' }])
    expect(await domain.queue.claim('worker', claimable, 1, 60)).toMatchObject([{ runId: row.id }])
  })

  test('notices an activation that was committed after one with a higher ID', async (test) => {
    const { domain, deploy, accountId } = await openDeployments(test, kind)
    await deploy({ b: '1' }, accountId)
    await deploy({ a: '1' })
    const execute = (sql: string, values: (string | number | null)[] = []) =>
      domain.store.write((tx) => tx.all<Record<string, string | number | null>>(sql, values))
    const [row = {}] = await execute('SELECT * FROM deployment_activations WHERE account_id = ?', [accountId])
    await execute('DELETE FROM deployment_activations WHERE account_id = ?', [accountId])
    const other = await openIn(test, domain.store)
    expect(other.current(accountId).get('b')).toBeUndefined()
    const columns = Object.keys(row)
    const override = kind.name === 'postgres' ? 'OVERRIDING SYSTEM VALUE' : ''
    await execute(
      `INSERT INTO deployment_activations (${columns}) ${override} VALUES (${columns.map(() => '?')})`,
      Object.values(row),
    )
    await other.refresh()
    expect(other.current(accountId).get('b')).toMatchObject({ version: '1' })
  })

  test('a rollback makes the one before current, and another the one before that', async (test) => {
    const { deployments, deploy, accountId } = await openDeployments(test, kind)
    expect(await deployments.rollback(null, operator)).toBeUndefined()
    for (const version of ['1', '2', '3']) await deploy({ a: version })
    // A deployment for one account changes nothing for the others.
    for (const version of ['8', '9']) await deploy({ a: version }, accountId)
    const rolledBack = async () => (await deployments.rollback(null, operator))?.workflows[0]?.version
    expect([await rolledBack(), await rolledBack(), await rolledBack()]).toEqual(['2', '1', undefined])
    await deploy({ a: '4' })
    expect(await rolledBack()).toBe('1')
  })

  test('what breaks callers is compared with the deployment that it replaces, also if that came during the check', async (test) => {
    const { domain, deployments, accountId } = await openDeployments(test, kind)
    const requiring = (version: string, ...required: string[]) => {
      const variables = { type: 'object', properties: { name: {} }, required } as const
      const { workflows, ...content } = snapshotOf({ a: version })
      return { ...content, workflows: workflows.map((each) => ({ ...each, variables })) } as unknown as Snapshot
    }
    const options = { accountId, by: operator, directory: null, allowBreaking: false }
    await deployments.deployChecked(requiring('1.0.0', 'name'), options)
    const next = requiring('1.2.0', 'name')
    beforeNextWrite(domain.store, () => deployments.deploy(requiring('1.1.0'), options))
    const refused = await deployments.deployChecked(next, options)
    expect([refused.result, refused.breaking]).toMatchObject([undefined, [{ before: '1.1.0', after: '1.2.0' }]])
    const allowed = await deployments.deployChecked(next, { ...options, allowBreaking: true })
    expect(allowed).toMatchObject({ breaking: [{ id: 'a' }], result: { activated: true } })
  })

  test('activating returns to any deployment of the account, after which a rollback returns to the one before', async (test) => {
    const { domain, deployments, deploy, accountId } = await openDeployments(test, kind)
    const [one, two] = [await deploy({ a: '1' }, accountId), await deploy({ a: '2' }, accountId)]
    const options = { by: operator, allowBreaking: false }
    const activate = async (id: string) => (await deployments.activate(accountId, id, options))?.result
    expect(await activate(one.deployment.id)).toMatchObject({ activated: true, previous: { id: two.deployment.id } })
    expect(versions(deployments, accountId)).toEqual({ a: '1' })
    expect(await activate(one.deployment.id)).toMatchObject({ activated: false })
    // It was rolled back, so that it is deployed again.
    await activate(two.deployment.id)
    expect(await deployments.rollback(accountId, operator)).toMatchObject({ id: one.deployment.id })
    const other = await newAccount(domain)
    expect(await deployments.activate(other.accountId, one.deployment.id, options)).toBeUndefined()
  })

  test("an account returns from its first deployment to the installation's, which it then follows", async (test) => {
    const { deployments, deploy, accountId } = await openDeployments(test, kind)
    const ofAll = (await deploy({ a: '1', b: '1' })).deployment.id
    const [first, change] = [await deploy({ b: '2', c: '2' }, accountId), (id: string) => ({ workflowId: id })]
    expect(first.previous?.id).toBe(ofAll)
    expect(first.changes).toEqual([
      { ...change('b'), before: '1', after: '2', fallsBack: false },
      { ...change('c'), before: null, after: '2', fallsBack: false },
    ])
    const { changes } = await deploy({ d: '3' }, accountId)
    expect([...describeChanges(changes)]).toEqual([
      '  d 3 is new',
      '  b 2 → 1, of the deployment for all accounts',
      '  c 2 is removed; its queued runs are still executed',
    ])
    const rollBack = async () => (await deployments.rollback(accountId, operator))?.id
    expect(await rollBack()).toBe(first.deployment.id)
    expect(await rollBack()).toBe(ofAll)
    expect(await rollBack()).toBeUndefined()
    const next = (await deploy({ a: '9' })).deployment.id
    expect(versions(deployments, accountId)).toEqual({ a: '9' })
    expect(await rollBack()).toBeUndefined()
    await deploy({ b: '2', c: '2' }, accountId)
    expect(versions(deployments, accountId)).toEqual({ a: '9', b: '2', c: '2' })
    const activate = (id: string) => deployments.activate(accountId, id, { by: operator, allowBreaking: false })
    expect(await activate(ofAll)).toBeUndefined()
    expect((await activate(next))?.result?.changes.map(({ after }) => after)).toEqual([null, null])
    expect(versions(deployments, accountId)).toEqual({ a: '9' })
  })

  test("an account sees the installation's workflows, and its own in place of those of the same ID", async (test) => {
    const { domain, deployments, deploy, accountId } = await openDeployments(test, kind)
    const other = await newAccount(domain)
    await deploy({ a: '1', b: '1' })
    const { deployment: own } = await deploy({ b: '2', c: '2' }, accountId)
    expect(versions(deployments, accountId)).toEqual({ a: '1', b: '2', c: '2' })
    expect(versions(deployments, other.accountId)).toEqual({ a: '1', b: '1' })
    expect(deployments.current(accountId).deploymentOf('b')).toBe(own.id)
    await deploy({ a: '3' })
    expect(versions(deployments, accountId)).toEqual({ a: '3', b: '2', c: '2' })
    const entries = async (id: string) =>
      (
        await domain.store.read.all('SELECT action FROM audit_log WHERE account_id = ? AND action LIKE ?', [
          id,
          'workflows%',
        ])
      ).length
    expect([await entries(accountId), await entries(other.accountId)]).toEqual([3, 2])
  })

  test('the audit entries of all accounts are written by one statement, since nothing else can be written meanwhile', async (test) => {
    const { domain } = await openDeployments(test, kind)
    const ids = (await Promise.all(Array.from({ length: 20 }, () => newAccount(domain)))).map((each) => each.accountId)
    let inserts = 0
    const counted: KyselyPlugin = {
      transformQuery: ({ node }) => {
        if (node.kind === 'InsertQueryNode' && JSON.stringify(node.into).includes('"audit_log"')) inserts += 1
        return node
      },
      transformResult: async ({ result }) => result,
    }
    const { store } = domain
    const write: typeof store.write = (work, options) =>
      store.write((tx) => work({ ...tx, query: tx.query.withPlugin(counted) }), options)
    const deployments = new Deployments({ ...store, write })
    await deployments.deploy(snapshotOf({ a: '1' }), { accountId: null, by: operator, directory: '/workflows' })
    const action = "SELECT account_id FROM audit_log WHERE action = 'workflows.deployed'"
    const recorded = (await store.read.all<{ account_id: string }>(action, [])).map(({ account_id }) => account_id)
    expect(recorded).toEqual(expect.arrayContaining(ids))
    expect(inserts).toBe(1)
  })

  test('are loaded while a thread compiles their large schemas, unless the process checks no values', async (test) => {
    const domain = await openDomain(test, { kind })
    const names = Array.from({ length: 150 }, (_, index) => `${randomUUID()}-${index}`)
    const variables = { type: 'object', properties: Object.fromEntries(names.map((name) => [name, {}])) } as const
    const { workflows, ...files } = snapshotOf({ a: '1' })
    const snapshot = { ...files, workflows: workflows.map((each) => ({ ...each, variables })) }
    const options = { accountId: null, by: operator, directory: '/workflows' }
    const countThreads = async (validates: boolean) => {
      let threads = 0
      const count = () => {
        threads += 1
      }
      process.on('worker', count)
      const deployments = new Deployments(domain.store, undefined, undefined, { validates })
      await deployments.refresh()
      await deployments.current(randomUUID()).compiling('a')
      process.off('worker', count)
      return threads
    }
    await new Deployments(domain.store, undefined, undefined, { validates: false }).deploy(snapshot, options)
    expect([await countThreads(false), await countThreads(true)]).toEqual([0, 1])
  })

  test('are deleted when their retention has passed since another took their place, and no unfinished run is pinned', async (test) => {
    const clock = createManualClock()
    const domain = await openDomain(test, { kind, now: clock.now })
    const deployments = new Deployments(domain.store, undefined, clock.now)
    const options = { accountId: null, by: operator, directory: '/workflows' }
    const deploy = async (version: string) =>
      (await deployments.deploy(snapshotOf({ a: version }), options)).deployment.id
    const [unused, pinned] = [await deploy('1'), await deploy('2')]
    const { accountId } = await newAccount(domain)
    const row = newRunRow(accountId, { deployment_id: pinned, id: uuid({ msecs: clock.now() }) })
    await domain.store.write((tx) => insertRuns(tx, [row]))
    clock.advance(3600)
    const current = await deploy('3')
    const left = async () => {
      while ((await domain.maintenance.once()) < 1000);
      const rows = await domain.store.read.all<{ id: string }>('SELECT id FROM deployments ORDER BY created_at', [])
      return rows.map(({ id }) => [unused, pinned, current].indexOf(id))
    }
    clock.advance(90 * daySeconds - 7200)
    expect(await left()).toEqual([0, 1, 2])
    clock.advance(3600)
    expect(await left()).toEqual([1, 2])
    clock.advance(10 * daySeconds)
    expect(await left()).toEqual([1, 2])
    await domain.runs.cancel(accountId, row.id)
    clock.advance(60)
    expect(await left()).toEqual([2])
    expect(await deployments.rollback(null, operator)).toBeUndefined()
  })
})
