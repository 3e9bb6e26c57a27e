/** Keys that are restricted to workflows, and workers, which belong to the key that has registered them. */

import { gunzipSync } from 'node:zlib'
import request from 'supertest'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { restrictableScopes, restrictTo } from '../../src/domain/api-keys/workflow-restriction.ts'
import type { Snapshot } from '../../src/domain/deployments/snapshot.ts'
import { startTestService, type TestAccount, type TestService } from '../support/service.ts'
import { queueRemote, remoteWorkflow } from './canary-account.ts'
import { expectProblem, type OperationId, operationOf, operations } from './document.ts'
import { newWorker } from './example-runs.ts'
import { type Filled, leasedRun, queueRun, registerWorker, send } from './requests.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ worker: false })
})
afterAll(() => service?.stop())

const scopes = [...restrictableScopes]

/** An account with a worker of two workflows, and a key that is restricted to one of them. */
async function newAccount() {
  const account = await service.createAccount()
  await registerWorker(service, account, { workflows: [remoteWorkflow('mine'), remoteWorkflow('theirs')] })
  const key = await account.createKey({ scopes, workflowIds: ['mine', 'approve'] })
  const call = (id: OperationId, filled: Filled = {}) => send(service, id, key.value, filled)
  return { account, key, call }
}

function registerWith(key: string, workerId: string, members: object = {}) {
  return send(service, 'registerWorker', key, { path: { workerId }, body: { ...newWorker, ...members } })
}

const register = async (account: TestAccount, key: string, members: object) =>
  registerWorker(service, { ...account, key }, members as Record<string, unknown>)

describe('a key that is restricted to workflows', () => {
  test('queues and reads runs of its workflows, and gets 403 for others, whether or not they exist', async () => {
    const { account, call } = await newAccount()
    const variableData = { orderId: 'A' }
    const queue = (workflowId: string) => call('queueRemoteRun', { path: { workflowId }, body: { variableData } })
    const { body: run } = await queue('mine').expect(202)
    await call('getRun', { path: { runId: run.id } }).expect(200)
    await call('getWorkflow', { path: { workflowId: 'mine' } }).expect(200)
    for (const workflowId of ['theirs', 'greet', 'unknown', 'MINE', '%6dine%2f']) {
      expect([workflowId, (await queue(workflowId)).status]).toEqual([workflowId, 403])
      await call('getWorkflow', { path: { workflowId } }).expect(403, 'Forbidden')
    }
    const others = [await queueRemote(service, account, 'theirs', 'B'), crypto.randomUUID()]
    for (const runId of others) {
      const notFound = { kind: 'not-found', title: 'Not found', status: 404, detail: 'No such run in this account.' }
      expectProblem(operationOf('getRun'), await call('getRun', { path: { runId } }), notFound)
      await call('cancelRun', { path: { runId } }).expect(404)
      await call('listRunWaits', { path: { runId } }).expect(404)
    }
  })

  test('lists runs and waits of one of its workflows only', async () => {
    const { account, call } = await newAccount()
    const runId = await queueRemote(service, account, 'mine', 'A')
    await queueRemote(service, account, 'theirs', 'B')
    const { body } = await call('listRuns', { query: 'workflowId=mine' }).expect(200)
    expect(body.data.map(({ id }: { id: string }) => id)).toEqual([runId])
    await call('listWaits', { query: 'workflowId=approve' }).expect(200)
    for (const query of [
      '',
      'status=queued',
      'workflowId=theirs',
      `parentRunId=${runId}`,
      'workflowId=mine&workflowId=theirs',
    ])
      expect([query, (await call('listRuns', { query })).status]).toEqual([
        query,
        query.startsWith('workflowId=mine') ? 400 : 403,
      ])
  })

  test('registers and claims for its workflows only, deployed ones included', async () => {
    const { account, key, call } = await newAccount()
    const workerId = crypto.randomUUID()
    const other = await registerWith(key.value, workerId, {
      workflows: [remoteWorkflow('mine'), remoteWorkflow('theirs')],
    })
    expect([other.status, other.text]).toEqual([403, 'Forbidden'])
    const registered = await registerWith(key.value, workerId, { workflows: [remoteWorkflow('mine')], deployed: true })
    expect(registered.status).toBe(200)
    const claimable = [
      await queueRemote(service, account, 'mine', 'A'),
      await queueRun(service, account, { path: { workflowId: 'approve' }, query: '', body: { variableData: {} } }),
    ]
    await queueRun(service, account, { query: '' })
    await queueRemote(service, account, 'theirs', 'B')
    const claim = { path: { workerId }, body: { countMax: 10 } }
    const { body } = await call('claimRuns', claim).expect(200)
    expect(body.data.map(({ runId }: { runId: string }) => runId).sort()).toEqual(claimable.sort())
    const executing = body.data.map(({ runId, attempt }: { runId: string; attempt: number }) => ({ runId, attempt }))
    await call('claimRuns', { ...claim, body: { countMax: 10, executing } }).expect(204)
  })

  test('calls no other workflow, and none with a browser context, from a run', async () => {
    const { account, key, call } = await newAccount()
    const workerId = await register(account, key.value, { workflows: [remoteWorkflow('mine')] })
    const runId = await queueRemote(service, account, 'mine', 'A')
    await call('claimRuns', { path: { workerId }, body: { countMax: 1 } }).expect(200)
    const options = { browserContextId: crypto.randomUUID() }
    const calls = [
      { name: 'theirs', workflowId: 'theirs' },
      { name: 'context', workflowId: 'approve', options },
      { name: 'own', workflowId: 'approve' },
    ]
    const waits = calls.map((each) => ({ kind: 'run', variableData: {}, ...each }))
    const body = { waits, names: calls.map(({ name }) => name) }
    const { body: result } = await call('suspendAttempt', { path: { runId, attempt: '1' }, body }).expect(200)
    const refused = (name: string, id: string, reason: string) => ({
      ...{ name, errorName: 'CallRefused' },
      message: `The call of workflow ${id} is refused: the API key of the worker ${reason}.`,
    })
    expect(result).toMatchObject({
      suspended: false,
      refused: [
        refused('theirs', 'theirs', 'is restricted to other workflows'),
        refused('context', 'approve', 'lacks the scope browser-contexts:use'),
      ],
    })
    const { body: children } = await send(service, 'listRuns', account.key, { query: `parentRunId=${runId}` })
    expect(children.data.map(({ workflowId }: { workflowId: string }) => workflowId)).toEqual(['approve'])
  })

  test('is refused by everything else that its host serves', async () => {
    const { key } = await newAccount()
    const authorization = { Authorization: `Bearer ${key.value}` }
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    const mcp = request(service.executionUrl)
      .post('/mcp')
      .set({ ...authorization, Accept: 'application/json, text/event-stream' })
    await mcp.send(message).expect(403, 'Forbidden')
    await request(service.executionUrl).get('/docs/workflows/').set(authorization).expect(403, 'Forbidden')
  })

  test('may send the requests of these operations, whose scopes are those that it may have', () => {
    const permits = restrictTo(['mine'])
    const values = (operation: (typeof operations)[number], place: string) =>
      Object.fromEntries(operation.parameters.filter((each) => each.in === place).map(({ name }) => [name, 'mine']))
    const open = operations.filter((operation) =>
      permits(operation as never, { path: values(operation, 'path'), query: values(operation, 'query'), errors: [] }),
    )
    expect(
      open
        .filter(({ scopes: [scope] }) => scope !== 'runs:execute')
        .map(({ id }) => id)
        .sort(),
    ).toEqual([
      ...['cancelRun', 'completeWait', 'createWaitLink', 'deleteRun', 'getRun', 'getRunArtifact', 'getWorkflow'],
      ...['listRunWaits', 'listRuns', 'listWaits', 'queueRemoteRun', 'rerunRun', 'streamRunEvents'],
    ])
    expect([...new Set(open.flatMap((operation) => operation.scopes))].sort()).toEqual(scopes.toSorted())
  })
})

describe('a worker', () => {
  test('exists for the key that has registered it only', async () => {
    const account = await service.createAccount()
    const workerId = await registerWorker(service, account)
    const runId = await queueRun(service, account, {
      path: { workflowId: 'send-invoice' },
      query: '',
      body: { variableData: { orderId: 'A' } },
    })
    await send(service, 'claimRuns', account.key, { path: { workerId }, body: { countMax: 1 } }).expect(200)
    const other = await account.createKey({ scopes: ['runs:execute'] })
    const call = (id: OperationId, filled: Filled) => send(service, id, other.value, filled)
    await call('claimRuns', { path: { workerId }, body: { countMax: 1 } }).expect(404)
    await call('renewLeases', { path: { workerId }, body: { leases: [{ runId, attempt: 1 }] } }).expect(404)
    await call('deleteWorker', { path: { workerId } }).expect(404)
    const completed = { path: { runId, attempt: '1' }, body: { outcome: 'succeeded', output: { invoice: 'I' } } }
    await call('completeAttempt', completed).expect(409)
    await call('handBackAttempt', { path: completed.path, body: {} }).expect(409)
    const workflows = [remoteWorkflow('another')]
    expectProblem(operationOf('registerWorker'), await registerWith(other.value, workerId, { workflows }), {
      ...{ kind: 'worker-conflict', title: 'Worker conflict', status: 409 },
      detail: 'Another API key has registered this worker. Use a new id. Nothing was stored.',
    })
    await send(service, 'getWorkflow', account.key, { path: { workflowId: 'another' } }).expect(404)
    await send(service, 'completeAttempt', account.key, completed).expect(200)
  })

  test('that has ended leaves its id to another key, and its runs to the queue', async () => {
    const account = await service.createAccount()
    const workerId = await registerWorker(service, account, { workflows: [remoteWorkflow('theirs')] })
    const runId = await queueRemote(service, account, 'theirs', 'A')
    await send(service, 'claimRuns', account.key, { path: { workerId }, body: { countMax: 1 } }).expect(200)
    await service.change('UPDATE workers SET alive_until = ? WHERE account_id = ?', Date.now() - 1, account.id)
    const other = await account.createKey({ scopes: ['runs:execute'], workflowIds: ['mine'] })
    expect((await registerWith(other.value, workerId, { workflows: [remoteWorkflow('mine')] })).status).toBe(200)
    await send(service, 'claimRuns', other.value, { path: { workerId }, body: { countMax: 1 } }).expect(204)
    const { body } = await send(service, 'getRun', account.key, { path: { runId } }).expect(200)
    expect(body).toMatchObject({ status: 'queued', attempts: 1 })
    await send(service, 'claimRuns', account.key, { path: { workerId }, body: { countMax: 1 } }).expect(404)
  })

  test('reads the code of a deployment while it executes one of its runs, and another account never does', async () => {
    const [account, stranger] = [await service.createAccount(), await service.createAccount()]
    const runId = await leasedRun(service, account)
    const { body } = await send(service, 'getRun', account.key, { path: { runId } }).expect(200)
    const read = (key: string) =>
      send(service, 'getDeploymentBundle', key, { path: { deploymentId: body.deploymentId } })
    await read(account.key).expect(200)
    await read((await account.createKey({ scopes: ['runs:execute'] })).value).expect(404)
    await read(stranger.key).expect(404)
    await send(service, 'completeAttempt', account.key, {
      path: { runId, attempt: '1' },
      body: { outcome: 'succeeded', output: { greeting: 'Hi' } },
    }).expect(200)
    await read(account.key).expect(404)
  })

  test('reads the code of its own workflows only', async () => {
    const account = await service.createAccount()
    const { value: key } = await account.createKey({ scopes, workflowIds: ['greet'] })
    const read = async (reader: TestAccount) => {
      const runId = await leasedRun(service, reader)
      const run = await send(service, 'getRun', reader.key, { path: { runId } }).expect(200)
      const path = { deploymentId: run.body.deploymentId }
      const { body } = await send(service, 'getDeploymentBundle', reader.key, { path }).expect(200).buffer(true)
      const { workflows, files }: Snapshot = JSON.parse(gunzipSync(body).toString())
      return { ids: workflows.map(({ id }) => id), paths: files.map((file) => file.path) }
    }
    const [all, own] = [await read(account), await read({ ...account, key })]
    expect(own.ids).toEqual(['greet'])
    expect(own.paths).toContain('greet.js')
    expect(own.paths.filter((path) => !path.includes('/'))).toEqual(['greet.js', 'greet.js.map'])
    expect(all.paths).toEqual(expect.arrayContaining(own.paths))
    expect(all.ids.length).toBeGreaterThan(1)
  })
})
