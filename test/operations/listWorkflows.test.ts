/** listWorkflows: every status that its document has. */
import { expect, test } from 'vitest'
import { refusesBadCredentials, refusesOtherScopes } from './alike-callers.ts'
import { asksToTryAgain, saysNothingOfFaults } from './alike-faults.ts'
import { limitsRequests } from './alike-limits.ts'
import { refusesOtherMediaTypes, refusesWhatIsNotDocumented } from './alike-requests.ts'
import { describeOperation } from './operation.ts'
import { send } from './requests.ts'

describeOperation(
  'listWorkflows',
  { worker: false },
  {
    200(subject) {
      test('lists every workflow, sorted by id, as each is read alone', async () => {
        const { key } = await subject.service.createAccount()
        const { body } = await subject.called(key)
        const ids = body.data.map(({ id }: { id: string }) => id)
        expect(ids).toEqual(['betray', 'count-words', 'greet', 'hold', 'print', 'single'])
        for (const workflow of body.data) {
          const one = await send(subject.service, 'getWorkflow', key, { path: { workflowId: workflow.id } })
          expect(one.body).toEqual(workflow)
        }
      })
    },
    400: refusesWhatIsNotDocumented,
    401: refusesBadCredentials,
    403: refusesOtherScopes,
    406: refusesOtherMediaTypes,
    429: limitsRequests,
    500: saysNothingOfFaults,
    503: asksToTryAgain,
  },
)
