/** Tests deleteSignIn by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { createSignIn, send } from './requests.ts'

describeOperation(
  'deleteSignIn',
  { worker: false },
  {
    204(subject) {
      test('erases the sign-in with its history, and cancels the run that signs in', async () => {
        const { service } = subject
        const account = await service.createAccount()
        const path = { browserContextId: await createSignIn(service, account) }
        const { body } = await send(service, 'signInNow', account.key, { path })
        await subject.call(account.key, { path })
        await send(service, 'getSignIn', account.key, { path }).expect(404)
        const run = await send(service, 'getRun', account.key, { path: { runId: body.runId } })
        expect(run.body.status).toBe('cancelled')
        const sql = 'SELECT id FROM context_sign_in_entries WHERE browser_context_id = ?'
        expect(await service.rows(sql, path.browserContextId)).toEqual([])
        const context = await send(service, 'getBrowserContext', account.key, { path })
        expect(context.body).toMatchObject({ signIn: null, heldByRunId: null })
      })
    },
  },
)
