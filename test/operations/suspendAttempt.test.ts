/** Tests suspendAttempt by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { invoice } from './example-runs.ts'
import { claimedAttempt, createContext, send } from './requests.ts'

describeOperation(
  'suspendAttempt',
  { worker: false },
  {
    200(subject) {
      test('suspends the run', async () => {
        const { request } = await subject.caller()
        expect((await subject.send(request)).body).toEqual({ suspended: true, ended: [], refused: [], deadlines: [] })
      })

      test('calls a workflow with a browser context only with the scope for it', async () => {
        const account = await subject.service.createAccount()
        const context = await createContext(subject.service, account)
        const call = { kind: 'run', name: 'called', workflowId: 'print' }
        const body = { waits: [{ ...call, options: { browserContextId: context } }], names: ['called'] }
        const suspend = async (scopes: string[]) => {
          const key = (await account.createKey({ scopes })).value
          const { runId, attempt } = await claimedAttempt(subject.service, { ...account, key }, invoice, account)
          return (await subject.call(key, { path: { runId, attempt }, body })).body
        }
        expect(await suspend(['runs:execute', 'browser-contexts:use'])).toMatchObject({ suspended: true, refused: [] })
        expect(await suspend(['runs:execute'])).toMatchObject({
          suspended: false,
          refused: [
            {
              ...{ name: 'called', errorName: 'CallRefused' },
              message:
                'The call of workflow print is refused: the API key of the worker lacks the scope browser-contexts:use.',
            },
          ],
        })
      })

      test.each([
        { kind: 'sleep', seconds: 60 },
        { kind: 'answer' },
        { kind: 'run', workflowId: 'greet', variableData: { name: 'Ada' } },
        { kind: 'run', workflowId: 'approve', detached: true, options: { priority: 1, tags: ['called'] } },
      ])('suspends a run that waits for %j', async (wait) => {
        const account = await subject.service.createAccount()
        const { runId, attempt } = await claimedAttempt(subject.service, account)
        const body = { waits: [{ ...wait, name: 'approval' }], names: ['approval'] }
        const { body: result } = await subject.call(account.key, { path: { runId, attempt }, body })
        expect(result).toMatchObject({ suspended: true, refused: [] })
      })
    },
    409(subject) {
      test('refuses a report of an attempt that has ended', async () => {
        const account = await subject.service.createAccount()
        const { runId, attempt } = await claimedAttempt(subject.service, account)
        const path = { runId, attempt }
        await send(subject.service, 'handBackAttempt', account.key, { path, body: {} }).expect(204)
        expectProblem(subject.operation, await subject.call(account.key, { path, body: { names: ['approval'] } }), {
          ...{ kind: 'lease-lost', title: 'Lease lost', status: 409 },
          detail: 'The lease of this attempt is over. Drop the attempt, and report nothing more.',
        })
      })
    },
  },
)
