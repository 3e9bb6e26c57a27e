/** getWorkflow: every status that its document has. */
import { expect, test } from 'vitest'
import { refusesBadCredentials, refusesOtherScopes } from './alike-callers.ts'
import { asksToTryAgain, saysNothingOfFaults } from './alike-faults.ts'
import { limitsRequests } from './alike-limits.ts'
import { refusesOtherMediaTypes, refusesWhatIsNotDocumented } from './alike-requests.ts'
import { expectProblem } from './document.ts'
import { describeOperation } from './operation.ts'
import betray from './workflows/betray.ts'

describeOperation(
  'getWorkflow',
  { worker: false },
  {
    200(subject) {
      test('shows a workflow with its schemas as its author wrote them, and the defaults of the rest', async () => {
        const { key } = await subject.service.createAccount()
        const { body } = await subject.called(key, { path: { workflowId: 'betray' } })
        expect(body).toEqual({
          id: 'betray',
          version: '1.0.0',
          title: 'Say a secret',
          description: null,
          variablesSchema: betray.variables,
          outputSchema: betray.output,
          retry: { maxAttempts: 2, backoffSeconds: 0, backoffFactor: 2 },
          timeLimitSeconds: 60,
          concurrencyLimit: null,
          usesBrowser: false,
        })
      })

      test('shows that the runs of a workflow may use a browser', async () => {
        const { key } = await subject.service.createAccount()
        const { body } = await subject.called(key, { path: { workflowId: 'print' } })
        expect(body.usesBrowser).toBe(true)
      })
    },
    400: refusesWhatIsNotDocumented,
    401: refusesBadCredentials,
    403: refusesOtherScopes,
    404(subject) {
      test.each(['no-such-workflow', 'GREET', 'a'.repeat(128), 'constructor', '__proto__', '...'])(
        'does not know the workflow %s',
        async (workflowId) => {
          const { key } = await subject.service.createAccount()
          const answer = await subject.called(key, { path: { workflowId } })
          const detail = 'No such workflow in this account.'
          expectProblem(subject.operation, answer, { kind: 'not-found', title: 'Not found', status: 404, detail })
        },
      )
    },
    406: refusesOtherMediaTypes,
    429: limitsRequests,
    500: saysNothingOfFaults,
    503: asksToTryAgain,
  },
)
