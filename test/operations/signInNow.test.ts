/** Tests signInNow by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { createSignIn, send } from './requests.ts'

describeOperation(
  'signInNow',
  { worker: false },
  {
    202(subject) {
      test('queues one run, however often it is called, which has the lease', async () => {
        const { service } = subject
        const account = await service.createAccount()
        const path = { browserContextId: await createSignIn(service, account) }
        const calls = await Promise.all([1, 2, 3].map(() => subject.call(account.key, { path })))
        const [first] = calls
        expect(first?.body).toMatchObject({ status: 'signingIn', runId: expect.any(String) })
        expect(new Set(calls.map(({ body }) => body.runId)).size).toBe(1)
        const entry = { kind: 'signIn', cause: 'requested', runId: first?.body.runId, outcome: null, endedAt: null }
        expect(calls[2]?.body.history).toMatchObject([entry])
        const context = await send(service, 'getBrowserContext', account.key, { path })
        expect(context.body).toMatchObject({ status: 'inUse', heldByRunId: first?.body.runId })
        await send(service, 'cancelRun', account.key, { path: { runId: first?.body.runId } }).expect(200)
        const after = await send(service, 'getSignIn', account.key, { path })
        expect(after.body).toMatchObject({ status: 'unknown', runId: null, history: [{ outcome: 'cancelled' }] })
      })
    },
    409(subject) {
      test('refuses a sign-in whose variables no longer fit', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createSignIn(subject.service, account) }
        const sql = `UPDATE context_sign_ins SET variables = '{"user":"ada"}', secrets = NULL WHERE browser_context_id = ?`
        await subject.service.change(sql, path.browserContextId)
        expectProblem(subject.operation, await subject.call(account.key, { path }), {
          kind: 'sign-in-does-not-fit',
          title: 'Sign-in does not fit',
          status: 409,
        })
      })
    },
  },
)
