/** Tests of queueRemoteRun with a browser context. */
import { expect, test } from 'vitest'
import type { Subject } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { createContext, leaseContext, queueRun, send } from './requests.ts'

const path = { workflowId: 'greet' }
const body = { variableData: { name: 'Ada' } }
const print = { path: { workflowId: 'print' }, body: { variableData: {} } }
const later = 'delaySeconds=3600'

export function testBrowserContext(subject: Subject): void {
  test('accepts a browser context, which is persisted on success by default', async () => {
    const account = await subject.service.createAccount()
    const id = await createContext(subject.service, account)
    const queue = (query: string) => subject.call(account.key, { ...print, query: `${later}&${query}` })
    const named = await queue(`browserContextId=${id.toUpperCase()}`)
    expect(named.body).toMatchObject({ browserContextId: id, persistContext: 'onSuccess', artifacts: [] })
    const read = await send(subject.service, 'getRun', account.key, { path: { runId: named.body.id } })
    expect(read.body).toEqual(named.body)
    for (const persistContext of ['never', 'onSuccess', 'always']) {
      const { body } = await queue(`browserContextId=${id}&persistContext=${persistContext}`)
      expect(body).toMatchObject({ browserContextId: id, persistContext })
    }
    const without = await queue('persistContext=always')
    expect(without.body).toMatchObject({ browserContextId: null, persistContext: null })
  })

  test('a run waits for its browser context while another run has the lease', async () => {
    const account = await subject.service.createAccount()
    const id = await createContext(subject.service, account)
    const holder = await queueRun(subject.service, account)
    await leaseContext(subject.service, id, holder)
    const response = await subject.call(account.key, { ...print, query: `browserContextId=${id}` })
    expect(response.body).toMatchObject({ status: 'queued', waitingFor: 'browserContext', waitingForDetail: null })
    const read = await send(subject.service, 'getRun', account.key, { path: { runId: response.body.id } })
    const message = `Run ${holder} uses the browser context.`
    const waitingForDetail = { kind: 'browserContext', name: holder, message }
    expect(read.body).toEqual({ ...response.body, waitingForDetail })
    await leaseContext(subject.service, id, null)
  })

  test('the id of a browser context in upper case is the same request', async () => {
    const account = await subject.service.createAccount()
    const id = await createContext(subject.service, account)
    const queue = (written: string) =>
      subject.call(account.key, {
        ...print,
        query: `${later}&browserContextId=${written}`,
        headers: { 'Idempotency-Key': 'once' },
      })
    const first = await queue(id)
    expect((await queue(id.toUpperCase())).body).toEqual(first.body)
  })
}

export function testInvalidBrowserContext(subject: Subject): void {
  test('refuses a browser context for a workflow without a browser', async () => {
    const { account } = await subject.caller()
    const id = await createContext(subject.service, account)
    const errors = [
      { parameter: 'browserContextId', detail: 'requires a workflow that uses a browser; this one does not' },
    ]
    const response = await subject.call(account.key, { path, body, query: `browserContextId=${id}` })
    expectProblem(subject.operation, response, {
      kind: 'invalid-request',
      title: 'Invalid request',
      status: 400,
      errors,
    })
  })

  test.each([
    ['browserContextId', 'browserContextId=1'],
    ['persistContext', `browserContextId=${crypto.randomUUID()}&persistContext=sometimes`],
  ])('refuses an invalid %s', async (name, query) => {
    const { key } = await subject.service.createAccount()
    const response = await subject.call(key, { ...print, query })
    const errors: unknown = expect.arrayContaining([{ parameter: name, detail: expect.any(String) }])
    expectProblem(subject.operation, response, {
      kind: 'invalid-request',
      title: 'Invalid request',
      status: 400,
      errors,
    })
  })
}

export function testUnknownBrowserContext(subject: Subject): void {
  test.each(['unknown', 'foreign', 'deleted'])('a browser context that is %s is not found', async (which) => {
    const { account } = await subject.caller()
    const owner = which === 'foreign' ? await subject.service.createAccount() : account
    const id = await createContext(subject.service, owner)
    if (which === 'deleted') {
      const unknownContext = { path: { browserContextId: id } }
      await send(subject.service, 'deleteBrowserContext', owner.key, unknownContext).expect(204)
    }
    const query = `browserContextId=${which === 'unknown' ? crypto.randomUUID() : id}`
    const headers = { 'Idempotency-Key': 'once' }
    expectProblem(subject.operation, await subject.call(account.key, { ...print, query, headers }), {
      kind: 'not-found',
      title: 'Not found',
      status: 404,
      detail: 'No such browser context in this account.',
      errors: [{ parameter: 'browserContextId', detail: 'names no browser context of this account' }],
    })
    expect((await send(subject.service, 'listRuns', account.key)).body.data).toEqual([])
    // The key can still be used.
    await send(subject.service, 'queueRemoteRun', account.key, { path, body, headers }).expect(202)
  })
}

export function testBrowserContextConflict(subject: Subject): void {
  test.each(['persistContext=never', 'other'])(
    'refuses a used Idempotency-Key with another browser context or persistContext (%s)',
    async (change) => {
      const account = await subject.service.createAccount()
      const [one, other] = [
        await createContext(subject.service, account),
        await createContext(subject.service, account),
      ]
      const headers = { 'Idempotency-Key': 'once' }
      const query = (id: string) => `${later}&browserContextId=${id}`
      await send(subject.service, 'queueRemoteRun', account.key, { ...print, query: query(one), headers }).expect(202)
      const changed = change === 'other' ? query(other) : `${query(one)}&${change}`
      const response = await subject.call(account.key, { ...print, query: changed, headers })
      expectProblem(subject.operation, response, {
        kind: 'idempotency-conflict',
        title: 'Idempotency key reused',
        status: 409,
        errors: [{ header: 'Idempotency-Key', detail: 'was used with another request' }],
      })
    },
  )
}
