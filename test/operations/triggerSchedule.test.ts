/** Tests triggerSchedule by documented status. */
import { expect, test } from 'vitest'
import { queuedRunsMax } from '../support/service.ts'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { createContext, createSchedule, queueRun, send } from './requests.ts'

describeOperation(
  'triggerSchedule',
  { worker: false },
  {
    202(subject) {
      test('queues a run of a paused schedule, and leaves its times as they are', async () => {
        const account = await subject.service.createAccount()
        const path = { scheduleId: await createSchedule(subject.service, account, { paused: true, tags: ['a'] }) }
        const { body, headers } = await subject.call(account.key, { path })
        const run = { workflowId: 'greet', variableData: { name: 'Ada' }, tags: ['a'] }
        expect(body).toMatchObject({ ...run, scheduleId: path.scheduleId, scheduledFor: null })
        expect(headers.location).toBe(`/v1/execution/runs/${body.id}`)
        const query = `scheduleId=${path.scheduleId}`
        const listed = await send(subject.service, 'listRuns', account.key, { query })
        expect(listed.body.data.map(({ id }: { id: string }) => id)).toEqual([body.id])
        const after = await send(subject.service, 'getSchedule', account.key, { path })
        expect(after.body).toMatchObject({ paused: true, lastRun: null })
      })
    },
    403(subject) {
      test('requires the scope to use browser contexts for a schedule that has one', async () => {
        const account = await subject.service.createAccount()
        const browserContextId = await createContext(subject.service, account)
        const members = { workflowId: 'print', variableData: {}, browserContextId }
        const path = { scheduleId: await createSchedule(subject.service, account, members) }
        const limited = await account.createKey({ scopes: ['schedules:write'] })
        expect((await subject.call(limited.value, { path })).text).toBe('Forbidden')
        const permitted = await account.createKey({ scopes: ['schedules:write', 'browser-contexts:use'] })
        await send(subject.service, 'triggerSchedule', permitted.value, { path }).expect(202)
      })
    },
    409(subject) {
      test('refuses a schedule whose variables no longer fit', async () => {
        const account = await subject.service.createAccount()
        const path = { scheduleId: await createSchedule(subject.service, account) }
        await subject.service.change("UPDATE schedules SET variables = '{}' WHERE id = ?", path.scheduleId)
        expectProblem(subject.operation, await subject.call(account.key, { path }), {
          kind: 'schedule-does-not-fit',
          title: 'Schedule does not fit',
          status: 409,
          errors: [{ pointer: '/variableData/name', detail: 'is required' }],
        })
      })
    },
    429(subject) {
      test('refuses runs beyond the limit of queued runs', async () => {
        const account = await subject.service.createAccount()
        const path = { scheduleId: await createSchedule(subject.service, account) }
        for (let count = 0; count < queuedRunsMax; count++) await queueRun(subject.service, account)
        expect((await subject.call(account.key, { path })).body.type).toContain('too-many-queued-runs')
      })
    },
  },
)
