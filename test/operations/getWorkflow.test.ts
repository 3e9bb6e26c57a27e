/** Tests getWorkflow by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import betray from './workflows/betray.ts'

describeOperation(
  'getWorkflow',
  { worker: false },
  {
    200(subject) {
      test('returns a workflow with its schemas and the defaults of other settings', async () => {
        const { key } = await subject.service.createAccount()
        const { body } = await subject.call(key, { path: { workflowId: 'betray' } })
        expect(body).toEqual({
          id: 'betray',
          version: '1.0.0',
          deploymentId: expect.stringMatching(/^[0-9a-f]{64}$/),
          title: 'Say a secret',
          description: null,
          variablesSchema: betray.variables,
          outputSchema: betray.output,
          retry: { maxAttempts: 2, backoffSeconds: 0, backoffFactor: 2 },
          timeLimitSeconds: 60,
          concurrency: null,
          throttle: null,
          usesBrowser: false,
          secrets: [],
          signsIn: false,
          settings: {},
          deprecated: false,
        })
      })

      test('returns whether a workflow uses a browser', async () => {
        const { key } = await subject.service.createAccount()
        const { body } = await subject.call(key, { path: { workflowId: 'print' } })
        expect(body.usesBrowser).toBe(true)
      })
    },
    404(subject) {
      test.each(['no-such-workflow', 'GREET', 'a'.repeat(128), 'constructor', '__proto__', '...'])(
        'the workflow %s is not found',
        async (workflowId) => {
          const { key } = await subject.service.createAccount()
          const response = await subject.call(key, { path: { workflowId } })
          const detail = 'No such workflow in this account.'
          expectProblem(subject.operation, response, { kind: 'not-found', title: 'Not found', status: 404, detail })
        },
      )
    },
  },
)
