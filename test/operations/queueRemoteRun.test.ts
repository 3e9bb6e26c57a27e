/** Tests queueRemoteRun by documented status. */
import { expect, test } from 'vitest'
import { queuedRunsMax } from '../support/service.ts'
import {
  testBrowserContext,
  testBrowserContextConflict,
  testInvalidBrowserContext,
  testUnknownBrowserContext,
} from './browser-context-tests.ts'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { expectInvalid, fillStorage } from './guards.ts'
import { send } from './requests.ts'

const path = { workflowId: 'greet' }
const body = { variableData: { name: 'Ada' } }
const later = 'delaySeconds=3600'

describeOperation(
  'queueRemoteRun',
  { worker: true },
  {
    200(subject) {
      test('returns the finished run when it finishes within the preferred wait', async () => {
        const { key } = await subject.service.createAccount()
        const response = await subject.call(key, { path, body, headers: { Prefer: 'wait=30' } })
        expect(response.body).toMatchObject({ status: 'succeeded', output: { greeting: 'Hello, Ada!' } })
        expect(response.headers.location).toBe(`/v1/execution/runs/${response.body.id}`)
        expect(response.headers['preference-applied']).toBe('wait=30')
        expect(response.headers['idempotent-replayed']).toBeUndefined()
      })

      test('returns a failed run with 200', async () => {
        const { key } = await subject.service.createAccount()
        const failing = {
          path: { workflowId: 'betray' },
          body: { variableData: { token: 'very secret', fails: true } },
        }
        const response = await subject.call(key, { ...failing, headers: { Prefer: 'wait=30' } })
        expect(response.body).toMatchObject({ status: 'failed', error: { name: 'Error' } })
      })

      test('replays a finished run for the same Idempotency-Key', async () => {
        const { key } = await subject.service.createAccount()
        const filled = { path, body, headers: { Prefer: 'wait=30', 'Idempotency-Key': 'once' } }
        const first = await subject.call(key, filled)
        const second = await subject.call(key, filled)
        expect(second.body).toEqual(first.body)
        expect(first.headers['idempotent-replayed']).toBeUndefined()
        expect(second.headers['idempotent-replayed']).toBe('true')
        const third = await subject.call(key, { ...filled, headers: { 'Idempotency-Key': 'once' } })
        expect([third.status, third.body]).toEqual([200, first.body])
      })
    },
    202(subject) {
      test('queues a run and returns its location', async () => {
        const { key } = await subject.service.createAccount()
        const response = await subject.call(key, { path, body, query: later })
        expect(response.headers.location).toBe(`/v1/execution/runs/${response.body.id}`)
        expect(response.headers['preference-applied']).toBeUndefined()
        expect(response.headers['idempotent-replayed']).toBeUndefined()
        const read = await send(subject.service, 'getRun', key, { path: { runId: response.body.id } })
        expect(read.body).toEqual(response.body)
      })

      test('keeps the tags of the query', async () => {
        const { key } = await subject.service.createAccount()
        const tags = ['customer:42', 'Site/www.example.com', 'a@b', 'env=prod', 'x_y-z']
        const query = `${later}&${tags.map((tag) => `tag=${encodeURIComponent(tag)}`).join('&')}`
        expect((await subject.call(key, { path, body, query })).body.tags).toEqual(tags)
      })

      test('fills in the defaults of the query and the workflow', async () => {
        const { key } = await subject.service.createAccount()
        const words = { path: { workflowId: 'count-words' }, body: { variableData: { path: 'README.md' } } }
        const response = await subject.call(key, { ...words, query: later })
        expect(response.body).toMatchObject({
          priority: 0,
          expiresAt: null,
          variableData: { path: 'README.md', top: 5 },
        })
      })

      test.each([
        ['delaySeconds=0&priority=10', { priority: 10, availableAt: null }],
        ['delaySeconds=31536000&priority=-10', { priority: -10, waitingFor: 'delay' }],
        ['delaySeconds=1&expiresInSeconds=2', { expiresAt: expect.any(String) }],
        ['expiresInSeconds=31536000', { waitingFor: 'worker' }],
      ])('accepts ?%s', async (query, expected) => {
        const { key } = await subject.service.createAccount()
        const response = await subject.call(key, { path, body, query })
        expect(response.body).toMatchObject(expected)
      })

      test('masks secrets in the response', async () => {
        const { key } = await subject.service.createAccount()
        const variableData = { name: 'Ada', token: 'very secret' }
        const response = await subject.call(key, { path, body: { variableData }, query: later })
        expect(response.body.variableData).toEqual({ name: 'Ada', token: '********' })
      })

      test('creates one run for the same Idempotency-Key', async () => {
        const { key } = await subject.service.createAccount()
        const filled = { path, body, query: later, headers: { 'Idempotency-Key': '!~'.repeat(64) } }
        const first = await subject.call(key, filled)
        const second = await subject.call(key, filled)
        expect(second.body).toEqual(first.body)
        expect(second.headers['idempotent-replayed']).toBe('true')
        expect((await send(subject.service, 'listRuns', key)).body.data).toHaveLength(1)
      })

      test('the order of members does not matter for an Idempotency-Key', async () => {
        const { key } = await subject.service.createAccount()
        const filled = { path, query: later, headers: { 'Idempotency-Key': 'once' } }
        const first = await subject.call(key, { ...filled, body: { variableData: { name: 'Ada', times: 2 } } })
        const second = await subject.call(key, { ...filled, body: { variableData: { times: 2, name: 'Ada' } } })
        expect(second.body.id).toBe(first.body.id)
      })

      test('defaults of variables do not matter for an Idempotency-Key', async () => {
        const { key } = await subject.service.createAccount()
        const withDefault = { path: { workflowId: 'count-words' }, body: { variableData: { path: 'README.md' } } }
        const filled = { ...withDefault, query: later, headers: { 'Idempotency-Key': 'once' } }
        const first = await subject.call(key, filled)
        const second = await subject.call(key, filled)
        expect(first.body.variableData).toEqual({ path: 'README.md', top: 5 })
        expect(second.body.id).toBe(first.body.id)
      })

      testBrowserContext(subject)

      test.each([
        ['wait=0', 'wait=0'],
        ['respond-async, wait=0', 'wait=0'],
        ['foo; bar="baz, wait=9", Wait = 0', 'wait=0'],
        ['wait="0"', 'wait=0'],
        ['wait', undefined],
        ['wait=', undefined],
        ['wait=-1', undefined],
        ['wait=1.5', undefined],
        ['wait=soon', undefined],
        ['return=minimal', undefined],
        ['nowait=5', undefined],
        [',;=', undefined],
      ])('applies Prefer: %s as %s', async (prefer, applied) => {
        const { key } = await subject.service.createAccount()
        const response = await subject.call(key, { path, body, query: later, headers: { Prefer: prefer } })
        expect(response.headers['preference-applied']).toBe(applied)
        expect(response.body.status).toBe('queued')
      })
    },
    400(subject) {
      testInvalidBrowserContext(subject)

      test.each([
        ['concurrencyKey=a%20b', 'concurrencyKey', /must match pattern/],
        ['concurrencyKey=a', 'concurrencyKey', /^requires a workflow with a limit or rate per key; this one has none$/],
        ['tag=a%20b', 'tag', /must match pattern/],
        ['tag=', 'tag', /must NOT have fewer than 1 characters/],
        [`tag=${'x'.repeat(65)}`, 'tag', /must NOT have more than 64 characters/],
        ['tag=a&tag=a', 'tag', /must NOT have duplicate items/],
        [Array.from({ length: 11 }, (_, index) => `tag=${index}`).join('&'), 'tag', /must NOT have more than 10 items/],
      ])('refuses ?%s', async (query, parameter, detail) => {
        const { key } = await subject.service.createAccount()
        const { body: problem } = await subject.call(key, { path, body, query })
        expect(problem.errors[0]).toEqual({ parameter, detail: expect.stringMatching(detail) })
      })

      test.each([
        ['no variableData', {}, [{ pointer: '/variableData', detail: 'is required' }]],
        ['another member', { ...body, note: 1 }, [{ pointer: '/note', detail: 'is not a documented member' }]],
        ['variableData that is a list', { variableData: [] }, [{ pointer: '/variableData', detail: 'must be object' }]],
        ['variableData that is null', { variableData: null }, [{ pointer: '/variableData', detail: 'must be object' }]],
        ['a missing variable', { variableData: {} }, [{ pointer: '/variableData/name', detail: 'is required' }]],
        [
          'several invalid variables',
          { variableData: { name: '', times: 4, tags: ['a', 2], address: { street: 'x' } } },
          [
            { pointer: '/variableData/name', detail: 'must NOT have fewer than 1 characters' },
            { pointer: '/variableData/times', detail: 'must be <= 3' },
            { pointer: '/variableData/tags/1', detail: 'must be string' },
            { pointer: '/variableData/address/street', detail: 'is not in the schema' },
          ],
        ],
        [
          'the mask of a secret',
          { variableData: { name: 'Ada', token: '********' } },
          [{ pointer: '/variableData/token', detail: 'is the mask of a secret, not its value' }],
        ],
      ])('refuses a body with %s', async (_, wrong, errors) => {
        const change = expect.arrayContaining(errors) as unknown as unknown[]
        await expectInvalid(subject, (request) => ({ ...request, body: JSON.stringify(wrong) }), change)
      })

      test.each(['expiresInSeconds=5&delaySeconds=5', 'expiresInSeconds=1&delaySeconds=5'])(
        'refuses ?%s',
        async (query) => {
          const errors = [{ parameter: 'expiresInSeconds', detail: 'must be longer than delaySeconds' }]
          await expectInvalid(
            subject,
            (request) => ({ ...request, path: request.path.replace(/\?.*/, `?${query}`) }),
            errors,
          )
        },
      )
    },
    401(subject) {
      test('a waiting request ends when its key is deleted, and its run goes on', async () => {
        const account = await subject.service.createAccount()
        const { id, value } = await account.createKey()
        const hold = { path: { workflowId: 'hold' }, body: { variableData: { file: 'none' } } }
        const waiting = subject.call(value, { ...hold, headers: { Prefer: 'wait=30' } })
        const runs = async () => (await send(subject.service, 'listRuns', account.key)).body.data
        await expect.poll(runs, { interval: 500 }).toMatchObject([{ status: 'running' }])
        await account.deleteKey(id)
        expect((await waiting).text).toBe('Unauthorized')
        expect(await runs()).toMatchObject([{ status: 'running', cancelRequested: false }])
      })
    },
    403(subject) {
      const queries = ['browserContextId=', 'browserContext%49d=', 'priority=1&browserContextId=x&browserContextId=']
      test.each(queries)('refuses a key without browser-contexts:use: ?%s…', async (query) => {
        const account = await subject.service.createAccount({ scopesEnabled: true })
        const others = ['browser-contexts:read', 'browser-contexts:state', 'browser-contexts:write']
        const { value } = await account.createKey({ scopes: ['runs:write', ...others] })
        const filled = { path, body, query: query + crypto.randomUUID() }
        expect((await subject.call(value, filled)).text).toBe('Forbidden')
      })
    },
    404(subject) {
      testUnknownBrowserContext(subject)

      test.each(['no-such-workflow', 'GREET', 'constructor', '__proto__'])(
        'the workflow %s is not found',
        async (id) => {
          const { key } = await subject.service.createAccount()
          const response = await subject.call(key, { path: { workflowId: id }, body })
          const detail = 'No such workflow in this account.'
          expectProblem(subject.operation, response, { kind: 'not-found', title: 'Not found', status: 404, detail })
          expect((await send(subject.service, 'listRuns', key)).body.data).toEqual([])
        },
      )
    },
    409(subject) {
      testBrowserContextConflict(subject)

      test.each([
        ['other variables', { body: { variableData: { name: 'Grace' } } }],
        ['another secret', { body: { variableData: { name: 'Ada', token: 'another secret' } } }],
        ['another workflow', { path: { workflowId: 'hold' }, body: { variableData: { file: 'none' } } }],
        ['another priority', { query: `${later}&priority=1` }],
        ['another delay', { query: 'delaySeconds=3601' }],
        ['an expiry', { query: `${later}&expiresInSeconds=7200` }],
      ])('refuses a used Idempotency-Key with %s', async (_, change) => {
        const { key } = await subject.service.createAccount()
        const first = { path, body: { variableData: { name: 'Ada', token: 'very secret' } }, query: later }
        const headers = { 'Idempotency-Key': 'once' }
        await send(subject.service, 'queueRemoteRun', key, { ...first, headers }).expect(202)
        expectProblem(subject.operation, await subject.call(key, { ...first, ...change, headers }), {
          kind: 'idempotency-conflict',
          title: 'Idempotency key reused',
          status: 409,
          detail: 'This Idempotency-Key was used with another request in the last 24 hours. Nothing was stored.',
          errors: [{ header: 'Idempotency-Key', detail: 'was used with another request' }],
        })
        expect((await send(subject.service, 'listRuns', key)).body.data).toHaveLength(1)
      })

      test('refuses the Idempotency-Key of a deleted run, so that it does not run a second time', async () => {
        const { key } = await subject.service.createAccount()
        const repeated = { path, body, query: later, headers: { 'Idempotency-Key': 'once' } }
        const { body: run } = await send(subject.service, 'queueRemoteRun', key, repeated).expect(202)
        await send(subject.service, 'cancelRun', key, { path: { runId: run.id } }).expect(200)
        await send(subject.service, 'deleteRun', key, { path: { runId: run.id } }).expect(204)
        expectProblem(subject.operation, await subject.call(key, repeated), {
          kind: 'idempotency-conflict',
          title: 'Idempotency key reused',
          status: 409,
          detail: expect.stringContaining('Use another key to queue another run.'),
          errors: [{ header: 'Idempotency-Key', detail: 'was used for a run that has been deleted' }],
        })
        expect((await send(subject.service, 'listRuns', key)).body.data).toEqual([])
      })
    },
    429(subject) {
      test('refuses a run beyond the limit of queued runs, except a replay', async () => {
        const { key } = await subject.service.createAccount()
        const queue = (headers = {}) =>
          send(subject.service, 'queueRemoteRun', key, { path, body, query: later, headers })
        const headers = { 'Idempotency-Key': 'once' }
        const first = await queue(headers).expect(202)
        const queued = await Promise.all(Array.from({ length: queuedRunsMax + 9 }, () => queue()))
        expect(queued.filter(({ status }) => status === 202)).toHaveLength(queuedRunsMax - 1)
        const refused = await subject.call(key, { path, body, query: later })
        expectProblem(subject.operation, refused, {
          kind: 'too-many-queued-runs',
          title: 'Too many queued runs',
          status: 429,
          detail: `This account has reached its limit of ${queuedRunsMax} queued runs. Try again when some have started, or cancel some.`,
        })
        expect(refused.headers).toMatchObject({ 'retry-after': '5' })
        const again = await queue(headers).expect(202)
        expect([again.body.id, again.headers['idempotent-replayed']]).toEqual([first.body.id, 'true'])
        await send(subject.service, 'cancelRun', key, { path: { runId: first.body.id } }).expect(200)
        await queue().expect(202)
      })
    },
    503(subject) {
      test('stores nothing when another program locks the store for longer than a write waits', async () => {
        const { account, request } = await subject.caller()
        await subject.service.whileLocked(() => subject.send(request))
        expect((await send(subject.service, 'listRuns', account.key)).body.data).toEqual([])
      })
    },
    507(subject) {
      test('returns the run of a repeated request', async () => {
        const account = await subject.service.createAccount()
        const repeated = { path, body, query: later, headers: { 'Idempotency-Key': 'once' } }
        const first = await send(subject.service, 'queueRemoteRun', account.key, repeated).expect(202)
        await fillStorage(subject, account)
        await subject.call(account.key, { ...repeated, headers: { 'Idempotency-Key': 'another' } })
        const again = await send(subject.service, 'queueRemoteRun', account.key, repeated).expect(202)
        expect(again.body.id).toBe(first.body.id)
      })
    },
  },
)
