/** Situations of runs: how they end, how long they take, and what others do to them. */
import * as change from './changes.ts'
import * as judge from './judges.ts'
import type { Change, UseSituation } from './situation.ts'

type Of = Pick<UseSituation, 'id' | 'title' | 'rule' | 'judges'> & Partial<UseSituation>

const run = (own: Of): UseSituation => ({
  group: 'runs',
  docs: 'guides/run-life-cycle.md',
  source: 'The OpenAPI document: RunStatus',
  withoutWait: true,
  ...own,
})

const read = (respond: Change['respond'], times = Number.POSITIVE_INFINITY, skip = 0): { change: Change } => ({
  change: { to: 'read', times, skip, respond },
})
const finalRule = 'Use the output only if `status` is `succeeded`.'
const finishedAt = '2026-01-31T12:00:00.000Z'
const ended = (status: string) =>
  change.asRun({ ...{ status, finishedAt, output: null, waitingFor: null }, error: null })
const unless = [judge.doesNotUseTheRun, judge.queuesOnce]
const day = 86_400

export const runSituations: readonly UseSituation[] = [
  run({
    id: 'run-failed',
    title: 'The run fails after it was running',
    rule: finalRule,
    world: 'failing',
    judges: unless,
  }),
  run({
    ...{ id: 'run-failed-at-once', title: 'The response to queueing is a run that has failed', rule: finalRule },
    change: {
      to: 'queue',
      respond: change.withBody(
        (body) => ({ ...body, status: 'failed', reason: 'workflowFailed', finishedAt, waitingFor: null }),
        200,
      ),
    },
    judges: [judge.doesNotUseTheRun],
  }),
  run({
    ...{ id: 'run-timed-out', title: 'The run takes longer than its workflow allows', rule: finalRule },
    ...{ world: 'timingOut', interfere: ({ advance }) => advance(2 * day), judges: unless },
  }),
  run({
    ...{ id: 'run-cancelled', title: 'Somebody else cancels the run', rule: finalRule, world: 'long' },
    ...{ interfere: ({ call }) => call('POST', '/cancel'), judges: unless },
  }),
  run({
    ...{ id: 'run-expired', title: 'The run expires before it starts', rule: finalRule },
    ...{ ...read(ended('expired')), events: (block) => block.replaceAll('"succeeded"', '"expired"'), judges: unless },
  }),
  run({
    ...{ id: 'run-deleted', title: 'The run is deleted: reading it is answered with 404', seconds: 6 },
    rule: 'Stop reading it, and do not take it for a success.',
    ...read(change.refuse(404), Number.POSITIVE_INFINITY, 1),
    judges: [judge.sendsAtMost(5, 'read'), ...unless],
  }),
  run({
    ...{
      id: 'run-retried',
      title: 'The run loses its worker twice, and its third attempt succeeds',
      world: 'retrying',
    },
    ...{
      rule: 'A run that is tried again has not ended: wait for its end.',
      judges: [judge.succeeds, judge.queuesOnce],
    },
  }),
  run({
    ...{ id: 'run-waits-for-days', title: 'The run waits for three days, and then succeeds', world: 'waiting' },
    ...{ rule: 'A run that waits has not ended: read it again.', docs: 'guides/runs-that-wait.md' },
    ...{
      interfereAt: '"waitingFor":"sleep"',
      interfere: async ({ advance, shows }) => {
        // A program that follows events does not read the run meanwhile.
        await shows('"waitingFor":"sleep"')
        await advance(4 * day)
      },
      judges: [judge.succeeds, judge.queuesOnce],
    },
  }),
  run({
    ...{ id: 'run-long', title: 'The run takes an hour', world: 'long', seconds: 5 },
    rule: 'Poll at most a few times in a second, or follow its events.',
    ...{ docs: 'guides/following-a-run.md', judges: [judge.sendsAtMost(25, 'read'), ...unless] },
  }),
  run({
    ...{ id: 'run-output-null', title: 'The run succeeds with the output `null`' },
    ...{
      rule: 'Do not crash: an output may be null.',
      ...read(change.withBody((body) => ({ ...body, output: null }))),
    },
    judges: [
      ({ ended: how }) => (/signal|exception|TypeError/.test(how) ? `It crashed: it ${how}.` : undefined),
      judge.queuesOnce,
    ],
  }),
  run({
    ...{ id: 'run-finished-at-first-read', title: 'The run has ended when it is read for the first time' },
    ...{ rule: 'Use its output.', ...read(change.late(3), 1), judges: [judge.succeeds] },
  }),
]
