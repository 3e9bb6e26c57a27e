/** queueRemoteRun: every status that its document has. */
import { expect, test } from 'vitest'
import { queuedRunsMax } from '../support/service.ts'
import { refusesBadCredentials, refusesOtherScopes } from './alike-callers.ts'
import { asksToTryAgain, saysNothingOfFaults } from './alike-faults.ts'
import { limitsRequests } from './alike-limits.ts'
import {
  expectInvalid,
  refusesLargeBodies,
  refusesOtherBodies,
  refusesOtherMediaTypes,
  refusesWhatIsNotDocumented,
} from './alike-requests.ts'
import {
  knowsNoOtherBrowserContexts,
  refusesBrowserContexts,
  takesBrowserContexts,
  tellsRequestsApartByBrowserContext,
} from './browser-context-of-run.ts'
import { expectProblem } from './document.ts'
import { describeOperation } from './operation.ts'
import { send } from './requests.ts'

const path = { workflowId: 'greet' }
const body = { variableData: { name: 'Ada' } }
const later = 'delaySeconds=3600'

describeOperation(
  'queueRemoteRun',
  { worker: true },
  {
    200(subject) {
      test('answers with the finished run when it finishes within the time that Prefer names', async () => {
        const { key } = await subject.service.createAccount()
        const answer = await subject.called(key, { path, body, headers: { Prefer: 'wait=30' } })
        expect(answer.body).toMatchObject({ status: 'succeeded', output: { greeting: 'Hello, Ada!' } })
        expect(answer.headers.location).toBe(`/v1/execution/runs/${answer.body.id}`)
        expect(answer.headers['preference-applied']).toBe('wait=30')
        expect(answer.headers['idempotent-replayed']).toBeUndefined()
      })

      test('answers with a failed run just so: that it has failed is the answer', async () => {
        const { key } = await subject.service.createAccount()
        const betrayal = {
          path: { workflowId: 'betray' },
          body: { variableData: { token: 'very secret', fails: true } },
        }
        const answer = await subject.called(key, { ...betrayal, headers: { Prefer: 'wait=30' } })
        expect(answer.body).toMatchObject({ status: 'failed', error: { name: 'Error' } })
      })

      test('replays a finished run for the same Idempotency-Key', async () => {
        const { key } = await subject.service.createAccount()
        const filled = { path, body, headers: { Prefer: 'wait=30', 'Idempotency-Key': 'once' } }
        const first = await subject.called(key, filled)
        const second = await subject.called(key, filled)
        expect(second.body).toEqual(first.body)
        expect(first.headers['idempotent-replayed']).toBeUndefined()
        expect(second.headers['idempotent-replayed']).toBe('true')
      })
    },
    202(subject) {
      test('queues a run, and says where it is', async () => {
        const { key } = await subject.service.createAccount()
        const answer = await subject.called(key, { path, body, query: later })
        expect(answer.headers.location).toBe(`/v1/execution/runs/${answer.body.id}`)
        expect(answer.headers['preference-applied']).toBeUndefined()
        expect(answer.headers['idempotent-replayed']).toBeUndefined()
        const read = await send(subject.service, 'getRun', key, { path: { runId: answer.body.id } })
        expect(read.body).toEqual(answer.body)
      })

      test('fills in the defaults of the query and of the workflow', async () => {
        const { key } = await subject.service.createAccount()
        const words = { path: { workflowId: 'count-words' }, body: { variableData: { path: 'README.md' } } }
        const answer = await subject.called(key, { ...words, query: later })
        expect(answer.body).toMatchObject({ priority: 0, expiresAt: null, variableData: { path: 'README.md', top: 5 } })
      })

      test.each([
        ['delaySeconds=0&priority=10', { priority: 10, availableAt: null }],
        ['delaySeconds=31536000&priority=-10', { priority: -10, waitingFor: 'delay' }],
        ['delaySeconds=1&expiresInSeconds=2', { expiresAt: expect.any(String) }],
        ['expiresInSeconds=31536000', { waitingFor: 'worker' }],
      ])('takes ?%s', async (query, expected) => {
        const { key } = await subject.service.createAccount()
        const answer = await subject.called(key, { path, body, query })
        expect(answer.body).toMatchObject(expected)
      })

      test('masks each secret in the answer', async () => {
        const { key } = await subject.service.createAccount()
        const variableData = { name: 'Ada', token: 'very secret' }
        const answer = await subject.called(key, { path, body: { variableData }, query: later })
        expect(answer.body.variableData).toEqual({ name: 'Ada', token: '********' })
      })

      test('makes one run for the same Idempotency-Key, and says so', async () => {
        const { key } = await subject.service.createAccount()
        const filled = { path, body, query: later, headers: { 'Idempotency-Key': '!~'.repeat(64) } }
        const first = await subject.called(key, filled)
        const second = await subject.called(key, filled)
        expect(second.body).toEqual(first.body)
        expect(second.headers['idempotent-replayed']).toBe('true')
        expect((await send(subject.service, 'listRuns', key)).body.data).toHaveLength(1)
      })

      test('takes the same JSON for the same request, however its members are ordered', async () => {
        const { key } = await subject.service.createAccount()
        const filled = { path, query: later, headers: { 'Idempotency-Key': 'once' } }
        const first = await subject.called(key, { ...filled, body: { variableData: { name: 'Ada', times: 2 } } })
        const second = await subject.called(key, { ...filled, body: { variableData: { times: 2, name: 'Ada' } } })
        expect(second.body.id).toBe(first.body.id)
      })

      test('takes a request for the same one whose variables got a default', async () => {
        const { key } = await subject.service.createAccount()
        const withDefault = { path: { workflowId: 'count-words' }, body: { variableData: { path: 'README.md' } } }
        const filled = { ...withDefault, query: later, headers: { 'Idempotency-Key': 'once' } }
        const first = await subject.called(key, filled)
        const second = await subject.called(key, filled)
        expect(first.body.variableData).toEqual({ path: 'README.md', top: 5 })
        expect(second.body.id).toBe(first.body.id)
      })

      test('keeps the Idempotency-Keys of two accounts apart', async () => {
        const accounts = [await subject.service.createAccount(), await subject.service.createAccount()]
        const filled = { path, body, query: later, headers: { 'Idempotency-Key': 'once' } }
        const ids = await Promise.all(accounts.map(async ({ key }) => (await subject.called(key, filled)).body.id))
        expect(new Set(ids).size).toBe(2)
      })

      takesBrowserContexts(subject)

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
      ])('takes Prefer: %s for %s', async (prefer, applied) => {
        const { key } = await subject.service.createAccount()
        const answer = await subject.called(key, { path, body, query: later, headers: { Prefer: prefer } })
        expect(answer.headers['preference-applied']).toBe(applied)
        expect(answer.body.status).toBe('queued')
      })
    },
    400(subject) {
      refusesWhatIsNotDocumented(subject)

      refusesBrowserContexts(subject)

      test.each([
        ['no variableData', {}, [{ pointer: '/variableData', detail: 'is required' }]],
        ['another member', { ...body, note: 1 }, [{ pointer: '/note', detail: 'is not a documented member' }]],
        ['variableData that is a list', { variableData: [] }, [{ pointer: '/variableData', detail: 'must be object' }]],
        ['variableData that is null', { variableData: null }, [{ pointer: '/variableData', detail: 'must be object' }]],
        [
          'no variable that is required',
          { variableData: {} },
          [{ pointer: '/variableData/name', detail: 'is required' }],
        ],
        [
          'several wrong variables at once',
          { variableData: { name: '', times: 4, tags: ['a', 2], address: { street: 'x' } } },
          [
            { pointer: '/variableData/name', detail: 'must NOT have fewer than 1 characters' },
            { pointer: '/variableData/times', detail: 'must be <= 3' },
            { pointer: '/variableData/tags/1', detail: 'must be string' },
            { pointer: '/variableData/address/street', detail: 'is not in the schema' },
          ],
        ],
        [
          'the mask of a secret, as answers show it',
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
    401: refusesBadCredentials,
    403: refusesOtherScopes,
    404(subject) {
      knowsNoOtherBrowserContexts(subject)

      test.each(['no-such-workflow', 'GREET', 'constructor', '__proto__'])(
        'does not know the workflow %s',
        async (id) => {
          const { key } = await subject.service.createAccount()
          const answer = await subject.called(key, { path: { workflowId: id }, body })
          const detail = 'No such workflow in this account.'
          expectProblem(subject.operation, answer, { kind: 'not-found', title: 'Not found', status: 404, detail })
          expect((await send(subject.service, 'listRuns', key)).body.data).toEqual([])
        },
      )
    },
    406: refusesOtherMediaTypes,
    409(subject) {
      tellsRequestsApartByBrowserContext(subject)

      test.each([
        ['other variables', { body: { variableData: { name: 'Grace' } } }],
        ['another secret', { body: { variableData: { name: 'Ada', token: 'another secret' } } }],
        ['another workflow', { path: { workflowId: 'hold' }, body: { variableData: { file: 'none' } } }],
        ['another priority', { query: `${later}&priority=1` }],
        ['another delay', { query: 'delaySeconds=3601' }],
        ['an expiry', { query: `${later}&expiresInSeconds=7200` }],
      ])('refuses an Idempotency-Key that was used before, with %s', async (_, change) => {
        const { key } = await subject.service.createAccount()
        const first = { path, body: { variableData: { name: 'Ada', token: 'very secret' } }, query: later }
        const headers = { 'Idempotency-Key': 'once' }
        await send(subject.service, 'queueRemoteRun', key, { ...first, headers }).expect(202)
        expectProblem(subject.operation, await subject.called(key, { ...first, ...change, headers }), {
          kind: 'idempotency-conflict',
          title: 'Idempotency key reused',
          status: 409,
          detail: 'This Idempotency-Key was used with another request in the last 24 hours. Nothing was stored.',
          errors: [{ header: 'Idempotency-Key', detail: 'was used with another request' }],
        })
        expect((await send(subject.service, 'listRuns', key)).body.data).toHaveLength(1)
      })
    },
    413: refusesLargeBodies,
    415: refusesOtherBodies,
    429(subject) {
      limitsRequests(subject)

      test('refuses a run of an account that has as many in the queue as it may, but for a replay', async () => {
        const { key } = await subject.service.createAccount()
        const queue = (headers = {}) =>
          send(subject.service, 'queueRemoteRun', key, { path, body, query: later, headers })
        const headers = { 'Idempotency-Key': 'once' }
        const first = await queue(headers).expect(202)
        const queued = await Promise.all(Array.from({ length: queuedRunsMax + 9 }, () => queue()))
        expect(queued.filter(({ status }) => status === 202)).toHaveLength(queuedRunsMax - 1)
        const refused = await subject.called(key, { path, body, query: later })
        expectProblem(subject.operation, refused, {
          kind: 'too-many-queued-runs',
          title: 'Too many queued runs',
          status: 429,
          detail: `This account has reached its limit of ${queuedRunsMax} queued runs. Try again when some have started, or cancel some.`,
        })
        expect(refused.headers).toMatchObject({ 'retry-after': '5' })
        expect(refused.headers.ratelimit).toBeUndefined()
        const again = await queue(headers).expect(202)
        expect([again.body.id, again.headers['idempotent-replayed']]).toEqual([first.body.id, 'true'])
        await send(subject.service, 'cancelRun', key, { path: { runId: first.body.id } }).expect(200)
        await queue().expect(202)
      })
    },
    500: saysNothingOfFaults,
    503(subject) {
      asksToTryAgain(subject)

      test('stores nothing when another program holds the lock of the store for longer than a write waits', async () => {
        const { account, request } = await subject.caller()
        await subject.service.whileLocked(() => subject.answered(request))
        expect((await send(subject.service, 'listRuns', account.key)).body.data).toEqual([])
      })
    },
  },
)
