/** streamRunEvents: every status that its document has. */
import { expect, test } from 'vitest'
import { hidesOtherAccounts, refusesBadCredentials, refusesOtherScopes } from './alike-callers.ts'
import { asksToTryAgain, saysNothingOfFaults } from './alike-faults.ts'
import { limitsRequests } from './alike-limits.ts'
import { expectInvalid, refusesOtherMediaTypes, refusesWhatIsNotDocumented } from './alike-requests.ts'
import { eventsIn } from './document.ts'
import { type Answered, describeOperation } from './operation.ts'
import { queueRun } from './requests.ts'

const atOnce = { query: '', headers: { Prefer: 'wait=30' } }

function told({ text }: Answered): string[] {
  return eventsIn(text).map(({ data }) => [data.type, data.status ?? data.state ?? data.message].join(' '))
}

describeOperation(
  'streamRunEvents',
  { worker: true },
  {
    200(subject) {
      test('tells everything that happened to a run, in its order, and ends after its last event', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account, atOnce)
        const answer = await subject.called(account.key, { path: { runId } })
        expect(told(answer)).toEqual([
          'status queued',
          'status running',
          'log Greeting Ada',
          'progress Halfway',
          'status succeeded',
        ])
        const events = eventsIn(answer.text)
        expect(events.map(({ id }) => id)).toEqual(['1', '2', '3', '4', '5'])
        expect(events.map(({ data }) => data.sequence)).toEqual([1, 2, 3, 4, 5])
        expect(events.map(({ event }) => event)).toEqual(events.map(({ data }) => data.type))
      })

      test('tells each attempt and each step of a run, with its secrets masked', async () => {
        const account = await subject.service.createAccount()
        const body = { variableData: { token: 'very secret', fails: false } }
        const runId = await queueRun(subject.service, account, { path: { workflowId: 'betray' }, ...atOnce, body })
        const answer = await subject.called(account.key, { path: { runId } })
        const steps = told(answer).filter((line) => /^(status|step)/.test(line))
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
        expect(answer.text).not.toContain('very secret')
        expect(answer.text).toContain('The secrets are ******** and undefined.')
      })

      test('starts after the event that the caller has seen last', async () => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account, atOnce)
        const answer = await subject.called(account.key, { path: { runId }, headers: { 'Last-Event-ID': '3' } })
        expect(eventsIn(answer.text).map(({ id }) => id)).toEqual(['4', '5'])
      })
    },
    204(subject) {
      test.each(['5', '999999999999999'])('has nothing to tell of a finished run after event %s', async (last) => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account, atOnce)
        await subject.called(account.key, { path: { runId }, headers: { 'Last-Event-ID': last } })
      })
    },
    400(subject) {
      refusesWhatIsNotDocumented(subject)

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
    401: refusesBadCredentials,
    403: refusesOtherScopes,
    404: hidesOtherAccounts,
    406: refusesOtherMediaTypes,
    429: limitsRequests,
    500: saysNothingOfFaults,
    503: asksToTryAgain,
  },
)
