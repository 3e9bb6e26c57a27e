/** Tests createSchedule by documented status. */
import { expect, test } from 'vitest'
import { schedulesMax } from '../support/service.ts'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { send } from './requests.ts'

describeOperation(
  'createSchedule',
  { worker: false },
  {
    201(subject) {
      test('creates a schedule with defaults, and shows its next five times', async () => {
        const { key } = await subject.service.createAccount()
        const body = { workflowId: 'greet', variableData: { name: 'Ada' }, cron: '0 7 * * MON', timeZone: 'Asia/Tokyo' }
        const created = await subject.call(key, { body })
        const defaults = { missed: 'skip', overlap: 'allow', paused: false, priority: 0, tags: [], lastRun: null }
        expect(created.body).toMatchObject({ ...body, ...defaults })
        const { nextRunsAt } = created.body
        expect(nextRunsAt).toHaveLength(5)
        // Seven o'clock on Monday in Tokyo, which has no daylight-saving time.
        for (const at of nextRunsAt) expect(at).toMatch(/T22:00:00\.000Z$/)
        expect(new Date(nextRunsAt[0]).getUTCDay()).toBe(0)
        const path = { scheduleId: created.body.id }
        expect(created.headers.location).toBe(`/v1/execution/schedules/${path.scheduleId}`)
        expect((await send(subject.service, 'getSchedule', key, { path })).body).toEqual(created.body)
      })

      test('accepts any white space between fields, and returns one space', async () => {
        const { key } = await subject.service.createAccount()
        const body = { workflowId: 'greet', variableData: { name: 'Ada' }, cron: ' 0  7\t* * MON ' }
        expect((await subject.call(key, { body })).body.cron).toBe('0 7 * * MON')
      })

      test('is due on every other day and on each given weekday, as `*/2` is a restriction, too', async () => {
        const { key } = await subject.service.createAccount()
        const body = { workflowId: 'greet', variableData: { name: 'Ada' }, cron: '0 0 */2 * 1' }
        const { nextRunsAt } = (await subject.call(key, { body })).body
        const isDue = (at: string) => new Date(at).getUTCDate() % 2 === 1 || new Date(at).getUTCDay() === 1
        expect(nextRunsAt.map(isDue)).toEqual([true, true, true, true, true])
      })

      test('takes an interval, whose first time is one interval from now', async () => {
        const { key } = await subject.service.createAccount()
        const body = { workflowId: 'greet', variableData: { name: 'Ada' }, intervalSeconds: 3600 }
        const { cron, timeZone, createdAt, nextRunsAt } = (await subject.call(key, { body })).body
        expect([cron, timeZone, Date.parse(nextRunsAt[0]) - Date.parse(createdAt)]).toEqual([null, null, 3_600_000])
      })
    },
    400(subject) {
      const valid = { workflowId: 'greet', variableData: { name: 'Ada' }, cron: '0 7 * * *' }
      test.each([
        [
          'an unknown time zone',
          { timeZone: 'Europe/Atlantis' },
          '/timeZone',
          'is not a time zone of the IANA database',
        ],
        ['an unknown word', { cron: '0 7 * * FOO' }, '/cron', /^is not a cron expression: /],
        ['an hour that does not exist', { cron: '0 25 * * *' }, '/cron', 'has 25 as the hour, which is from 0 to 23'],
        [
          'a day before the first',
          { cron: '0 0 0 * *' },
          '/cron',
          'has 0 as the day of the month, which is from 1 to 31',
        ],
        ['a thirteenth month', { cron: '0 0 1 2,11-13 *' }, '/cron', 'has 13 as the month, which is from 1 to 12'],
        ['a day that never comes', { cron: '0 0 31 2 *' }, '/cron', 'has no time in the future'],
        ['cron and an interval', { intervalSeconds: 60 }, '/intervalSeconds', 'cannot be combined with cron'],
        ['neither cron nor an interval', { cron: undefined }, '/cron', 'is required, or intervalSeconds'],
        [
          'a time zone for an interval',
          { cron: undefined, intervalSeconds: 60, timeZone: 'UTC' },
          '/timeZone',
          'cannot be set without cron',
        ],
        ['an unknown workflow', { workflowId: 'unknown' }, '/workflowId', 'names no workflow of this account'],
        ['missing variables', { variableData: {} }, '/variableData/name', 'is required'],
        [
          'a browser context for a workflow without a browser',
          { browserContextId: '0198f2c5-ab30-7d52-9f02-1b2c3d4e5f60' },
          '/browserContextId',
          'requires a workflow that uses a browser; this one does not',
        ],
      ])('refuses %s', async (_, members, pointer, detail) => {
        const { key } = await subject.service.createAccount()
        const { body } = await subject.call(key, { body: { ...valid, ...members } })
        const expected = detail instanceof RegExp ? expect.stringMatching(detail) : detail
        expect(body.errors).toEqual([{ pointer, detail: expected }])
      })

      test.each(['0 0 7 * * *', '@daily', '0 7 * *'])('says that %s needs five fields', async (cron) => {
        const { key } = await subject.service.createAccount()
        const { body } = await subject.call(key, { body: { ...valid, cron } })
        const detail = 'must have five fields, separated by spaces; seconds and words such as @daily are not supported'
        expect(body.errors).toEqual([{ pointer: '/cron', detail }])
      })
    },
    403(subject) {
      test('requires the scope to use browser contexts if one is named', async () => {
        const account = await subject.service.createAccount()
        const { value: key } = await account.createKey({ scopes: ['schedules:write'] })
        const browserContextId = '0198f2c5-ab30-7d52-9f02-1b2c3d4e5f60'
        await subject.call(key, {
          body: { workflowId: 'greet', variableData: {}, cron: '0 7 * * *', browserContextId },
        })
      })
    },
    409(subject) {
      test('concurrent requests do not exceed the limit of the account', async () => {
        const account = await subject.service.createAccount()
        const body = { workflowId: 'greet', variableData: { name: 'Ada' }, cron: '0 7 * * *' }
        const create = () => send(subject.service, 'createSchedule', account.key, { body })
        const statuses = (await Promise.all(Array.from({ length: schedulesMax + 5 }, create))).map(
          ({ status }) => status,
        )
        expect(statuses.filter((status) => status === 201)).toHaveLength(schedulesMax)
        expectProblem(subject.operation, await subject.call(account.key, { body }), {
          kind: 'too-many-schedules',
          title: 'Too many schedules',
          status: 409,
        })
      })
    },
  },
)
