/** getRun: every status that its document has. */
import { expect, test } from 'vitest'
import { hidesOtherAccounts, refusesBadCredentials, refusesOtherScopes } from './alike-callers.ts'
import { asksToTryAgain, saysNothingOfFaults } from './alike-faults.ts'
import { limitsRequests } from './alike-limits.ts'
import { refusesOtherMediaTypes, refusesWhatIsNotDocumented } from './alike-requests.ts'
import { describeOperation } from './operation.ts'
import { createContext, queueRun } from './requests.ts'

describeOperation(
  'getRun',
  { worker: true },
  {
    200(subject) {
      test('shows a run as it was queued, with its secret masked', async () => {
        const account = await subject.service.createAccount()
        const variableData = { name: 'Ada', token: 'a secret' }
        const query = 'delaySeconds=3600&expiresInSeconds=7200&priority=-3'
        const runId = await queueRun(subject.service, account, { query, body: { variableData } })
        const { body } = await subject.called(account.key, { path: { runId } })
        const createdAt = Date.parse(body.createdAt)
        expect(body).toEqual({
          id: runId,
          workflowId: 'greet',
          workflowVersion: '1.0.0',
          status: 'queued',
          reason: null,
          waitingFor: 'delay',
          cancelRequested: false,
          priority: -3,
          attempts: 0,
          variableData: { name: 'Ada', token: '********' },
          output: null,
          error: null,
          progress: null,
          browserContextId: null,
          persistContext: null,
          artifacts: [],
          createdAt: new Date(createdAt).toISOString(),
          availableAt: new Date(createdAt + 3_600_000).toISOString(),
          expiresAt: new Date(createdAt + 7_200_000).toISOString(),
          startedAt: null,
          finishedAt: null,
        })
      })

      test('shows what a run has returned, and its last progress', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account, { query: '', headers: { Prefer: 'wait=30' } })
        const { body } = await subject.called(account.key, { path: { runId } })
        expect(body).toMatchObject({
          status: 'succeeded',
          waitingFor: null,
          attempts: 1,
          output: { greeting: 'Hello, Ada!' },
          progress: { percent: 50, message: 'Halfway' },
        })
        expect(Date.parse(body.finishedAt)).toBeGreaterThanOrEqual(Date.parse(body.startedAt))
      })

      test('shows why a run has failed, with its secrets masked', async () => {
        const account = await subject.service.createAccount()
        const workflow = { path: { workflowId: 'betray' }, query: '', headers: { Prefer: 'wait=30' } }
        const body = { variableData: { token: 'very secret', fails: true } }
        const runId = await queueRun(subject.service, account, { ...workflow, body })
        const answer = await subject.called(account.key, { path: { runId } })
        expect(answer.body).toMatchObject({
          status: 'failed',
          reason: 'workflowFailed',
          attempts: 2,
          error: { name: 'Error', message: 'The secrets are ******** and undefined.' },
        })
      })

      test('lists the artifacts that a run has made, and the browser context that it was queued with', async () => {
        const account = await subject.service.createAccount()
        const browserContextId = await createContext(subject.service, account)
        const query = `browserContextId=${browserContextId}`
        const print = { path: { workflowId: 'print' }, body: { variableData: {} }, headers: { Prefer: 'wait=30' } }
        const runId = await queueRun(subject.service, account, { ...print, query })
        const { body } = await subject.called(account.key, { path: { runId } })
        expect(body).toMatchObject({ status: 'succeeded', browserContextId, persistContext: 'onSuccess' })
        expect(body.artifacts).toMatchObject([{ name: 'hello.txt', mediaType: 'text/plain', sizeBytes: 5 }])
      })

      test('takes the id in upper case too (RFC 9562, section 4)', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        const { body } = await subject.called(account.key, { path: { runId: runId.toUpperCase() } })
        expect(body.id).toBe(runId)
      })
    },
    400: refusesWhatIsNotDocumented,
    401: refusesBadCredentials,
    403: refusesOtherScopes,
    404: hidesOtherAccounts,
    406: refusesOtherMediaTypes,
    429: limitsRequests,
    500: saysNothingOfFaults,
    503: asksToTryAgain,
  },
)
