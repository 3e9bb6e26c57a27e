/** Tests putAttemptArtifact by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { claimedAttempt, send } from './requests.ts'

describeOperation(
  'putAttemptArtifact',
  { worker: false },
  {
    204(subject) {
      test('stores the file', async () => {
        const account = await subject.service.createAccount()
        const { runId, attempt } = await claimedAttempt(subject.service, account)
        const path = { runId, attempt, artifactName: 'a.txt' }
        await subject.call(account.key, { path, body: { mediaType: 'text/plain', content: 'SGVsbG8=' } })
        const stored = await send(subject.service, 'getRunArtifact', account.key, { path }).expect(200)
        expect(stored.text).toBe('Hello')
      })
    },
    409(subject) {
      test('refuses a report of an attempt that has ended', async () => {
        const account = await subject.service.createAccount()
        const { runId, attempt } = await claimedAttempt(subject.service, account)
        const path = { runId, attempt, artifactName: 'a.txt' }
        await send(subject.service, 'handBackAttempt', account.key, { path, body: {} }).expect(204)
        expectProblem(
          subject.operation,
          await subject.call(account.key, { path, body: { mediaType: 'text/plain', content: '' } }),
          {
            ...{ kind: 'lease-lost', title: 'Lease lost', status: 409 },
            detail: 'The lease of this attempt is over. Drop the attempt, and report nothing more.',
          },
        )
      })
    },
  },
)
