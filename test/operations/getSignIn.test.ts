/** Tests getSignIn by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { createContext, createSignIn, send } from './requests.ts'

describeOperation(
  'getSignIn',
  { worker: false },
  {
    200(subject) {
      test('shows the sign-in without its secrets, and whether the browser context is signed in', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createSignIn(subject.service, account) }
        const { body } = await subject.call(account.key, { path })
        expect(body).toMatchObject({
          workflowId: 'sign-in',
          variableData: { user: 'ada', password: '********' },
          ...{ hasTotp: false, checkEverySeconds: null, status: 'unknown', runId: null, waitingRuns: 0, history: [] },
        })
        const context = await send(subject.service, 'getBrowserContext', account.key, { path })
        const signIn = { status: 'unknown', runId: null, signedInAt: null, needsSignInSince: null }
        expect(context.body.signIn).toEqual(signIn)
      })
    },
    404(subject) {
      test('a browser context without a sign-in has none', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account) }
        expect((await subject.call(account.key, { path })).body.detail).toContain('sign-in')
        const context = await send(subject.service, 'getBrowserContext', account.key, { path })
        expect(context.body.signIn).toBe(null)
      })
    },
  },
)
