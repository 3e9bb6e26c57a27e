/** Tests listWaits by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { approve } from './example-runs.ts'
import { answeredRun, queueRun, send } from './requests.ts'

describeOperation(
  'listWaits',
  { worker: false },
  {
    200(subject) {
      test('finds waits by each filter, oldest first, in pages', async () => {
        const { service } = subject
        const account = await service.createAccount()
        const tagged = { ...approve, query: `${approve.query}&tag=customer:42` }
        const ids = [await answeredRun(service, account), await queueRun(service, account, tagged)]
        const answer = { path: { runId: ids[1] as string, name: 'approval' }, body: { value: { approved: false } } }
        await send(service, 'completeWait', account.key, answer).expect(200)
        const list = async (query: string) => {
          const { body } = await subject.call(account.key, { query })
          return { runs: body.data.map(({ runId }: { runId: string }) => runId), cursor: body.nextCursor }
        }
        for (const filter of ['', 'workflowId=approve', 'name=approval', 'kind=answer', 'status=completed'])
          expect((await list(filter)).runs).toEqual(ids)
        expect((await list('tag=customer:42')).runs).toEqual([ids[1]])
        for (const filter of ['workflowId=greet', 'name=other', 'kind=sleep', 'status=open', 'tag=other'])
          expect((await list(filter)).runs).toEqual([])
        const first = await list('limit=1')
        expect(first.runs).toEqual([ids[0]])
        expect(await list(`limit=1&cursor=${first.cursor}`)).toEqual({ runs: [ids[1]], cursor: null })
      })

      test('ends a page before its values exceed 1 MiB', async () => {
        const { service } = subject
        const account = await service.createAccount()
        const value = ['x'.repeat(700_000), 'y']
        for (const _ of [1, 2]) {
          const path = { runId: await queueRun(service, account, approve), name: 'reviewers' }
          await send(service, 'completeWait', account.key, { path, body: { value } }).expect(200)
        }
        const first = (await subject.call(account.key)).body
        const second = (await subject.call(account.key, { query: `cursor=${first.nextCursor}` })).body
        expect([first.data.length, second.data.length, second.nextCursor]).toEqual([1, 1, null])
      })
    },
  },
)
