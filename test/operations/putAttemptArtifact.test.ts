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
    400(subject) {
      test('refuses more evidence of an attempt than a run is listed with', async () => {
        const account = await subject.service.createAccount()
        const { runId, attempt } = await claimedAttempt(subject.service, account)
        const body = { mediaType: 'image/jpeg', content: '', evidence: true }
        const statuses: number[] = []
        for (let page = 1; page <= 9; page += 1) {
          const path = { runId, attempt, artifactName: `attempt-1-page-${page}.jpg` }
          statuses.push((await send(subject.service, 'putAttemptArtifact', account.key, { path, body })).status)
        }
        expect(statuses).toEqual([...Array(7).fill(204), 400, 400])
        const { body: list } = await send(subject.service, 'listRuns', account.key).expect(200)
        expect(list.data[0].evidence).toHaveLength(7)
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
