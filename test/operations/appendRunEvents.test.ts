/** Tests appendRunEvents by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { claimedAttempt, send } from './requests.ts'

describeOperation(
  'appendRunEvents',
  { worker: false },
  {
    204(subject) {
      test('appends what the service does not have', async () => {
        const { request } = await subject.caller()
        await subject.send(request)
        await subject.send(request)
        const rows = await subject.service.rows(
          "SELECT data FROM run_events WHERE type = 'log' AND data LIKE '%Charging%'",
        )
        expect(rows).toHaveLength(1)
      })
    },
    409(subject) {
      test('refuses a report of an attempt that has ended', async () => {
        const account = await subject.service.createAccount()
        const { runId, attempt } = await claimedAttempt(subject.service, account)
        const path = { runId, attempt }
        await send(subject.service, 'handBackAttempt', account.key, { path, body: {} }).expect(204)
        const sent = { path, body: { position: 0, events: [{ type: 'progress', percent: 1 }] } }
        expectProblem(subject.operation, await subject.call(account.key, sent), {
          ...{ kind: 'lease-lost', title: 'Lease lost', status: 409 },
          detail: 'The lease of this attempt is over. Drop the attempt, and report nothing more.',
        })
      })
    },
  },
)
