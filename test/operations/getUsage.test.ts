/** Tests getUsage by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'

const insert = `INSERT INTO run_usage (account_id, day, workflow_id, succeeded, failed, timed_out, cancelled, expired,
  attempts, executed_ms, browser_ms, artifact_bytes) VALUES (?, ?, ?, 2, 1, 0, 0, 0, 4, 61500, 45000, 1024)`

describeOperation(
  'getUsage',
  { worker: false },
  {
    200(subject) {
      test('returns the usage of the account on the days, as JSON and as CSV', async () => {
        const account = await subject.service.createAccount()
        const other = await subject.service.createAccount()
        const { change } = subject.service
        for (const day of ['2025-10-31', '2025-11-01', '2025-11-02']) {
          await change(insert, account.id, day, 'count-words')
          await change(insert, other.id, day, 'greet')
        }
        await change('INSERT INTO storage_days (account_id, day, bytes) VALUES (?, ?, 77)', account.id, '2025-11-01')
        const range = 'from=2025-11-01&to=2025-11-01'
        const { body } = await subject.call(account.key, { query: range })
        expect(body).toEqual({
          ...{ from: '2025-11-01', to: '2025-11-01', per: 'day', countedUntil: expect.any(String) },
          data: [
            {
              ...{ day: '2025-11-01', workflowId: 'count-words', attempts: 4 },
              runs: { succeeded: 2, failed: 1, timedOut: 0, cancelled: 0, expired: 0 },
              ...{ executionSeconds: 61.5, browserMinutes: 0.75, artifactBytes: 1024 },
            },
          ],
          storage: [{ day: '2025-11-01', storedBytes: 77 }],
        })
        const csv = await subject.call(account.key, {
          query: 'from=2025-11-01&to=2025-11-02&per=day',
          headers: { accept: 'text/csv' },
        })
        expect(csv.headers['content-type']).toBe('text/csv')
        expect(csv.text.split('\r\n')).toEqual([
          'day,workflowId,succeeded,failed,timedOut,cancelled,expired,attempts,executionSeconds,browserMinutes,artifactBytes',
          '2025-11-01,count-words,2,1,0,0,0,4,61.5,0.75,1024',
          '2025-11-02,count-words,2,1,0,0,0,4,61.5,0.75,1024',
          '',
        ])
        const preferred = { accept: 'text/csv;q=0.5, application/json' }
        const json = await subject.call(account.key, { query: range, headers: preferred })
        expect(json.headers['content-type']).toBe('application/json')
      })

      test('accepts 366 days', async () => {
        const account = await subject.service.createAccount()
        expect((await subject.call(account.key, { query: 'from=2025-11-01&to=2026-11-01' })).body.data).toEqual([])
      })
    },
    400(subject) {
      test.each([
        ['to=2026-11-30', 'from'],
        ['from=2026-11-01', 'to'],
        ['from=2026-11-31&to=2026-12-01', 'from'],
        ['from=2026-11-01&to=today', 'to'],
        ['from=2026-11-02&to=2026-11-01', 'to'],
        ['from=2025-11-01&to=2026-11-02', 'to'],
        ['from=2026-11-01&to=2026-11-02&per=week', 'per'],
      ])('refuses %s and names %s', async (query, parameter) => {
        const account = await subject.service.createAccount()
        const { status, body } = await subject.call(account.key, { query })
        expect([status, body.errors.map((each: { parameter: string }) => each.parameter)]).toEqual([400, [parameter]])
      })
    },
  },
)
