/** Tests updateSchedule by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { createContext, createSchedule, send } from './requests.ts'

describeOperation(
  'updateSchedule',
  { worker: false },
  {
    200(subject) {
      test('changes the given members and nothing else', async () => {
        const account = await subject.service.createAccount()
        const path = { scheduleId: await createSchedule(subject.service, account, { tags: ['a'] }) }
        const before = (await send(subject.service, 'getSchedule', account.key, { path })).body
        const body = { name: 'Changed', overlap: 'queue', missed: 'runAll', priority: 5, tags: [] }
        const changed = (await subject.call(account.key, { path, body })).body
        expect(changed).toEqual({ ...before, ...body, updatedAt: changed.updatedAt })
      })

      test('pauses and resumes', async () => {
        const account = await subject.service.createAccount()
        const path = { scheduleId: await createSchedule(subject.service, account) }
        const paused = await subject.call(account.key, { path, body: { paused: true } })
        expect(paused.body).toMatchObject({ paused: true, pausedReason: 'request', nextRunsAt: [] })
        const resumed = await subject.call(account.key, { path, body: { paused: false } })
        expect(resumed.body).toMatchObject({ paused: false, pausedReason: null })
        expect(resumed.body.nextRunsAt).toHaveLength(5)
      })

      test('replaces a cron expression by an interval, and back', async () => {
        const account = await subject.service.createAccount()
        const path = { scheduleId: await createSchedule(subject.service, account) }
        const interval = await subject.call(account.key, { path, body: { intervalSeconds: 60 } })
        expect(interval.body).toMatchObject({ cron: null, timeZone: null, intervalSeconds: 60 })
        const back = await subject.call(account.key, { path, body: { cron: '0 7 * * *' } })
        expect(back.body).toMatchObject({ cron: '0 7 * * *', timeZone: 'UTC', intervalSeconds: null })
      })
    },
    400(subject) {
      test.each([
        [{ variableData: { name: 7 } }, '/variableData/name'],
        [{ timeZone: 'Europe/Atlantis' }, '/timeZone'],
        [{ cron: '0 7 * * *', intervalSeconds: 60 }, '/intervalSeconds'],
        [{ workflowId: 'other' }, '/workflowId'],
      ])('refuses %o and changes nothing', async (body, pointer) => {
        const account = await subject.service.createAccount()
        const path = { scheduleId: await createSchedule(subject.service, account) }
        const before = (await send(subject.service, 'getSchedule', account.key, { path })).body
        expect((await subject.call(account.key, { path, body })).body.errors).toMatchObject([{ pointer }])
        expect((await send(subject.service, 'getSchedule', account.key, { path })).body).toEqual(before)
      })
    },
    403(subject) {
      test('requires the scope to change the variables of a schedule with a browser context', async () => {
        const account = await subject.service.createAccount()
        const browserContextId = await createContext(subject.service, account)
        const members = { workflowId: 'print', variableData: {}, browserContextId }
        const path = { scheduleId: await createSchedule(subject.service, account, members) }
        const limited = await account.createKey({ scopes: ['schedules:write'] })
        const body = { variableData: {} }
        expect((await subject.call(limited.value, { path, body })).text).toBe('Forbidden')
        await send(subject.service, 'updateSchedule', limited.value, { path, body: { paused: true } }).expect(200)
      })

      test('requires the scope to use browser contexts if one is named', async () => {
        const account = await subject.service.createAccount()
        const { value: key } = await account.createKey({ scopes: ['schedules:write'] })
        const id = '0198f2c5-ab30-7d52-9f02-1b2c3d4e5f60'
        await subject.call(key, { path: { scheduleId: id }, body: { browserContextId: id } })
      })
    },
  },
)
