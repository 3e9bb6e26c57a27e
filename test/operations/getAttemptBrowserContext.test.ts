/** Tests getAttemptBrowserContext by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { claimedAttempt, claimedWithContext, send, storageStateFor } from './requests.ts'

describeOperation(
  'getAttemptBrowserContext',
  { worker: false },
  {
    200(subject) {
      test('returns the current state of the browser context of the run, which no log shows', async () => {
        const account = await subject.service.createAccount()
        const { runId, attempt, contextId, claim } = await claimedWithContext(subject.service, account)
        expect(claim.browserContext).toEqual({ id: contextId, persistContext: 'onSuccess' })
        const { body } = await subject.call(account.key, { path: { runId, attempt } })
        expect(body).toEqual(storageStateFor('shop.example'))
        expect(JSON.stringify(subject.service.log)).not.toContain('7f3a')
      })
    },
    404(subject) {
      test('a run without a browser context has no state', async () => {
        const account = await subject.service.createAccount()
        const { runId, attempt } = await claimedAttempt(subject.service, account)
        expectProblem(subject.operation, await subject.call(account.key, { path: { runId, attempt } }), {
          ...{ kind: 'not-found', title: 'Not found', status: 404 },
          detail: 'No such browser context in this account.',
        })
      })
    },
    409(subject) {
      test('refuses an attempt that has ended', async () => {
        const account = await subject.service.createAccount()
        const { runId, attempt } = await claimedWithContext(subject.service, account)
        await send(subject.service, 'handBackAttempt', account.key, { path: { runId, attempt }, body: {} }).expect(204)
        expectProblem(subject.operation, await subject.call(account.key, { path: { runId, attempt } }), {
          ...{ kind: 'lease-lost', title: 'Lease lost', status: 409 },
          detail: 'The lease of this attempt is over. Drop the attempt, and report nothing more.',
        })
      })
    },
  },
)
