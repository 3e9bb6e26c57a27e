/** Tests listWorkflows by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { queueRun, send } from './requests.ts'

describeOperation(
  'listWorkflows',
  { worker: false },
  {
    200(subject) {
      test('lists every workflow sorted by id, as getWorkflow returns it', async () => {
        const { key } = await subject.service.createAccount()
        const { body } = await subject.call(key)
        const ids = body.data.map(({ id }: { id: string }) => id)
        expect(ids).toEqual([
          'approve',
          'betray',
          'count-words',
          'greet',
          'hold',
          'misreport',
          'print',
          'sign-in',
          'single',
        ])
        for (const workflow of body.data) {
          const one = await send(subject.service, 'getWorkflow', key, { path: { workflowId: workflow.id } })
          expect(one.body).toEqual(workflow)
        }
        expect(body.nextCursor).toBeNull()
      })

      test.each([1, 2, 100])('lists each workflow once on pages of %i', async (limit) => {
        const { key } = await subject.service.createAccount()
        const { body: whole } = await subject.call(key)
        const listed: unknown[] = []
        for (let cursor: string | null = ''; cursor !== null; ) {
          const { body } = await subject.call(key, { query: `limit=${limit}${cursor && `&cursor=${cursor}`}` })
          expect(body.data.length).toBeLessThanOrEqual(limit)
          listed.push(...body.data)
          cursor = body.nextCursor
        }
        expect(listed).toEqual(whole.data)
      })
    },
    400(subject) {
      test('refuses a cursor that was altered or belongs to another list', async () => {
        const account = await subject.service.createAccount()
        const { key } = account
        const { body } = await send(subject.service, 'listWorkflows', key, { query: 'limit=1' }).expect(200)
        for (let run = 0; run < 2; run++) await queueRun(subject.service, account)
        const runs = await send(subject.service, 'listRuns', key, { query: 'limit=1' }).expect(200)
        for (const cursor of [`hold.${body.nextCursor.split('.').at(-1)}`, runs.body.nextCursor]) {
          const response = await subject.call(key, { query: `limit=1&cursor=${cursor}` })
          expect(response.body.errors).toEqual([{ parameter: 'cursor', detail: 'is not a cursor of this list' }])
        }
      })
    },
  },
)
