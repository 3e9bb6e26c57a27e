/** Tests streamRunEvents by documented status. */
import { expect, test } from 'vitest'
import { describeOperation, type SubjectResponse } from './describe-operation.ts'
import { eventsIn } from './document.ts'
import { expectInvalid } from './guards.ts'
import { queueRun } from './requests.ts'

const atOnce = { query: '', headers: { Prefer: 'wait=30' } }

function summarize({ text }: SubjectResponse): string[] {
  return eventsIn(text).map(({ data }) => [data.type, data.status ?? data.state ?? data.message].join(' '))
}

describeOperation(
  'streamRunEvents',
  { worker: true },
  {
    200(subject) {
      test('streams all events of a run in order and ends after the last one', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account, atOnce)
        const response = await subject.call(account.key, { path: { runId } })
        expect(summarize(response)).toEqual([
          'status queued',
          'status running',
          'log Greeting Ada',
          'progress Halfway',
          'status succeeded',
        ])
        const events = eventsIn(response.text)
        expect(events.map(({ id }) => id)).toEqual(['1', '2', '3', '4', '5'])
        expect(events.map(({ data }) => data.sequence)).toEqual([1, 2, 3, 4, 5])
        expect(events.map(({ event }) => event)).toEqual(events.map(({ data }) => data.type))
      })

      test('streams every attempt and step of a run, with secrets masked', async () => {
        const account = await subject.service.createAccount()
        const body = { variableData: { token: 'very secret', fails: false } }
        const runId = await queueRun(subject.service, account, { path: { workflowId: 'betray' }, ...atOnce, body })
        const response = await subject.call(account.key, { path: { runId } })
        const steps = summarize(response).filter((line) => /^(status|step)/.test(line))
        expect(steps).toEqual([
          'status queued',
          'status running',
          'step started',
          'step finished',
          'status queued',
          'status running',
          'step reused',
          'status succeeded',
        ])
        expect(response.text).not.toContain('very secret')
        expect(response.text).toContain('The secrets are ******** and undefined.')
      })

      test('streams what a workflow reports, whatever its level, type and length', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account, {
          path: { workflowId: 'misreport' },
          ...atOnce,
          body: { variableData: {} },
        })
        const { text } = await subject.call(account.key, { path: { runId } })
        const reported = eventsIn(text).map(({ data }) => data)
        expect(reported.filter(({ type }) => type === 'log').map(({ level, message }) => [level, message])).toEqual([
          ['info', 'evil \ufffd'],
          ['info', expect.any(String)],
          ['info', `${'x'.repeat(8191)}…`],
          ['info', '[2000000 characters; at most 1048576 are kept]'],
        ])
        expect(reported.at(-1)).toMatchObject({ type: 'status', status: 'failed' })
      })

      test('resumes after Last-Event-ID', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account, atOnce)
        const response = await subject.call(account.key, { path: { runId }, headers: { 'Last-Event-ID': '3' } })
        expect(eventsIn(response.text).map(({ id }) => id)).toEqual(['4', '5'])
      })
    },
    204(subject) {
      test.each(['5', '999999999999999'])('a finished run has no events after event %s', async (last) => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account, atOnce)
        await subject.call(account.key, { path: { runId }, headers: { 'Last-Event-ID': last } })
      })
    },
    400(subject) {
      test.each(['', 'x', '-1', '1.5', '0x1', '1, 2', '1234567890123456'])(
        'refuses Last-Event-ID: %s',
        async (last) => {
          const errors = [{ header: 'Last-Event-ID', detail: expect.stringContaining('must match pattern') }]
          await expectInvalid(
            subject,
            (request) => ({ ...request, headers: { ...request.headers, 'Last-Event-ID': last } }),
            errors,
          )
        },
      )
    },
  },
)
