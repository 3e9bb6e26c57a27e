/** Tests registerWorker by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { newWorker } from './example-runs.ts'
import { registerWorker } from './requests.ts'

describeOperation(
  'registerWorker',
  { worker: false },
  {
    200(subject) {
      test('registers a worker, and again', async () => {
        const account = await subject.service.createAccount()
        const path = { workerId: crypto.randomUUID() }
        const first = await subject.call(account.key, { path, body: newWorker })
        expect(first.body).toMatchObject({ id: path.workerId, name: 'billing', host: null, deployed: false })
        const again = await subject.call(account.key, { path, body: { ...newWorker, capacity: 8 } })
        expect(again.body).toMatchObject({ capacity: 8, startedAt: first.body.startedAt })
      })
    },
    400(subject) {
      test('names a workflow that is there twice', async () => {
        const account = await subject.service.createAccount()
        const [workflow] = newWorker.workflows
        const body = { ...newWorker, workflows: [workflow, workflow] }
        const refused = await subject.call(account.key, { path: { workerId: crypto.randomUUID() }, body })
        expect(refused.body.errors).toEqual([{ pointer: '/workflows/1/id', detail: 'is there twice' }])
      })
    },
    409(subject) {
      test('refuses other schemas for a version, and an id that is deployed', async () => {
        const account = await subject.service.createAccount()
        const [workflow] = newWorker.workflows
        const register = (members: object) => {
          const body = { ...newWorker, workflows: [{ ...workflow, ...members }] }
          return subject.call(account.key, { path: { workerId: crypto.randomUUID() }, body })
        }
        await registerWorker(subject.service, account)
        const other = await register({ variables: { type: 'object' } })
        expect(other.body.detail).toContain('Raise the version.')
        expectProblem(subject.operation, await register({ id: 'greet' }), {
          ...{ kind: 'worker-conflict', title: 'Worker conflict', status: 409 },
          detail:
            'The workflow "greet" is deployed in this account, and workers of the service execute it. Use another id. Nothing was stored.',
        })
      })
    },
  },
)
