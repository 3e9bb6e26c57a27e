/** Tests getLiveViews by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { claimedAttempt, send } from './requests.ts'

describeOperation(
  'getLiveViews',
  { worker: false },
  {
    200(subject) {
      test('returns the views of the attempt that are open and not known', async () => {
        const { service } = subject
        const account = await service.createAccount()
        const [{ runId, attempt }, other] = [
          await claimedAttempt(service, account),
          await claimedAttempt(service, await service.createAccount()),
        ]
        const ids = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()]
        for (const [index, id] of ids.entries()) {
          const row = [id, index === 2 ? other.runId : runId, 'http://127.0.0.1:1', Date.now() + 60_000]
          await service.change('INSERT INTO live_views (id, run_id, address, expires_at) VALUES (?, ?, ?, ?)', ...row)
        }
        const open = async (query: string) => {
          const { body } = await subject.call(account.key, { path: { runId, attempt }, query })
          return body.liveViews.map(({ id }: { id: string }) => id).sort()
        }
        expect(await open('waitSeconds=30')).toEqual(ids.slice(0, 2).sort())
        expect(await open(`except=${ids[0]}`)).toEqual([ids[1]])
        expect(await open(`except=${ids[0]}&except=${ids[1]}&waitSeconds=1`)).toEqual([])
      })
    },
    409(subject) {
      test('refuses an attempt that has ended', async () => {
        const account = await subject.service.createAccount()
        const { runId, attempt } = await claimedAttempt(subject.service, account)
        const path = { runId, attempt }
        await send(subject.service, 'handBackAttempt', account.key, { path: { runId, attempt }, body: {} }).expect(204)
        expectProblem(subject.operation, await subject.call(account.key, { path }), {
          ...{ kind: 'lease-lost', title: 'Lease lost', status: 409 },
          detail: 'The lease of this attempt is over. Drop the attempt, and report nothing more.',
        })
      })
    },
  },
)
