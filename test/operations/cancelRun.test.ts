/** cancelRun: every status that its document has. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { until } from '../support/service.ts'
import { hidesOtherAccounts, refusesBadCredentials, refusesOtherScopes } from './alike-callers.ts'
import { asksToTryAgain, saysNothingOfFaults } from './alike-faults.ts'
import { limitsRequests } from './alike-limits.ts'
import { refusesOtherMediaTypes, refusesWhatIsNotDocumented } from './alike-requests.ts'
import { describeOperation } from './operation.ts'
import { queueRun, send } from './requests.ts'

describeOperation(
  'cancelRun',
  { worker: true },
  {
    200(subject) {
      test('ends a queued run at once', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        const { body } = await subject.called(account.key, { path: { runId } })
        expect(body).toMatchObject({
          id: runId,
          status: 'cancelled',
          reason: 'cancelRequested',
          waitingFor: null,
          cancelRequested: true,
          attempts: 0,
          startedAt: null,
          finishedAt: expect.any(String),
        })
      })

      test('changes nothing when it is repeated', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        const first = await subject.called(account.key, { path: { runId } })
        const second = await subject.called(account.key, { path: { runId } })
        const events = await send(subject.service, 'streamRunEvents', account.key, { path: { runId } })
        expect(second.body).toEqual(first.body)
        expect(events.text.match(/"status":"cancelled"/g)).toHaveLength(1)
      })

      test('asks a running run to end, which it then does', async () => {
        const account = await subject.service.createAccount()
        const file = join(subject.service.dataDirectory, 'never')
        const hold = { path: { workflowId: 'hold' }, query: '', body: { variableData: { file } } }
        const runId = await queueRun(subject.service, account, hold)
        const read = async () => (await send(subject.service, 'getRun', account.key, { path: { runId } })).body
        await until('the run is running', async () => (await read()).status === 'running')
        const { body } = await subject.called(account.key, { path: { runId } })
        expect(body).toMatchObject({ cancelRequested: true, status: expect.stringMatching(/^(running|cancelled)$/) })
        const ended = await until('the run has finished', async () => {
          const run = await read()
          return run.finishedAt !== null && run
        })
        expect(ended).toMatchObject({ status: 'cancelled', reason: 'cancelRequested', attempts: 1, output: null })
      })

      test('leaves a finished run as it is', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account, { query: '', headers: { Prefer: 'wait=30' } })
        const before = await send(subject.service, 'getRun', account.key, { path: { runId } })
        const { body } = await subject.called(account.key, { path: { runId } })
        expect(body).toEqual(before.body)
        expect(body).toMatchObject({ status: 'succeeded', cancelRequested: false })
      })

      test('accepts a Content-Type without a body', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        await subject.called(account.key, { path: { runId }, headers: { 'Content-Type': 'application/json' } })
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
