/** The state machine of runs agrees with the contract, and decides what follows an attempt. */
import { expect, test } from 'vitest'
import {
  isFinal,
  lossesMax,
  nextState,
  type Outcome,
  type RetryState,
  transitions,
} from '../../../src/domain/runs/run-state.ts'
import { executionContract } from '../../../src/openapi/served-documents.ts'

interface Schema {
  description: string
  enum: string[]
}

const { schemas } = (executionContract.document as unknown as { components: { schemas: Record<string, Schema> } })
  .components
const statusSchema = schemas.RunStatus as Schema
const reasons = (schemas.RunReasonCode as { enum: string[] }).enum

/** The table of transitions in the schema's description. */
function documentedTransitions(): string[] {
  const rows = statusSchema.description.matchAll(/^\| `(\w+)` \| `(\w+)` \|/gm)
  return [...rows].map(([, from, to]) => `${from} → ${to}`)
}

test('the transitions are those of the table in the contract', () => {
  const coded = Object.entries(transitions).flatMap(([from, tos]) => tos.map((to) => `${from} → ${to}`))
  expect(documentedTransitions().length).toBeGreaterThan(5)
  expect(coded.sort()).toEqual(documentedTransitions().sort())
})

test('the statuses and the final statuses are those of the contract', () => {
  const statuses = Object.keys(transitions) as (keyof typeof transitions)[]
  expect(statuses.sort()).toEqual(statusSchema.enum.toSorted())
  const [sentence] = statusSchema.description.match(/[^\n]*are final\./) ?? []
  const documented = [...(sentence ?? '').matchAll(/`(\w+)`/g)].map(([, status]) => status)
  expect(statuses.filter(isFinal).sort()).toEqual(documented.sort())
})

const history: RetryState = {
  cancelRequested: false,
  failures: 0,
  losses: 0,
  retry: { maxAttempts: 1, backoffSeconds: 1, backoffFactor: 2 },
}
const error = { name: 'Error', message: 'no' }
const failed: Outcome = { kind: 'failed', reason: 'workflowFailed', error }

test.each<[Outcome, object]>([
  [
    { kind: 'succeeded', output: 1 },
    { status: 'succeeded', reason: null },
  ],
  [failed, { status: 'failed', reason: 'workflowFailed' }],
  [
    { ...failed, reason: 'workflowExited' },
    { status: 'failed', reason: 'workflowExited' },
  ],
  [
    { ...failed, reason: 'outputInvalid' },
    { status: 'failed', reason: 'outputInvalid' },
  ],
  [{ kind: 'timedOut' }, { status: 'timedOut', reason: 'timeLimit' }],
  [{ kind: 'cancelled' }, { status: 'cancelled', reason: 'cancelRequested' }],
  [{ kind: 'workerStopped' }, { status: 'queued', reason: 'workerStopped', delaySeconds: 0 }],
  [
    { kind: 'waiting', executedMilliseconds: 1, names: ['approval'] },
    { status: 'waiting', reason: 'waiting' },
  ],
  [{ kind: 'workerLost' }, { status: 'queued', reason: 'workerLost', delaySeconds: 0 }],
])('%o leads to %o', (outcome, next) => {
  expect(nextState(outcome, history)).toEqual(next)
  const { status, reason } = nextState(outcome, history)
  expect(transitions.running).toContain(status)
  if (reason !== null) expect(reasons).toContain(reason)
})

test('a cancelled run ends as cancelled, whatever the outcome of its attempt', () => {
  const outcomes: Outcome[] = [
    { kind: 'succeeded', output: 1 },
    failed,
    { kind: 'timedOut' },
    { kind: 'workerStopped' },
    { kind: 'workerLost' },
  ]
  const retry = { maxAttempts: 9, backoffSeconds: 1, backoffFactor: 2 }
  for (const outcome of outcomes) {
    const next = nextState(outcome, { ...history, retry, cancelRequested: true })
    expect(next).toEqual({ status: 'cancelled', reason: 'cancelRequested' })
  }
})

test('a failed attempt is retried with growing delays until the retry policy is exhausted', () => {
  const retry = { maxAttempts: 4, backoffSeconds: 0.5, backoffFactor: 3 }
  const after = (failures: number) => nextState(failed, { ...history, retry, failures })
  const again = { status: 'queued', reason: 'attemptFailed' }
  expect([0, 1, 2, 3].map(after)).toEqual([
    { ...again, delaySeconds: 0.5 },
    { ...again, delaySeconds: 1.5 },
    { ...again, delaySeconds: 4.5 },
    { status: 'failed', reason: 'workflowFailed' },
  ])
})

test('lost workers and failures are counted apart', () => {
  const retry = { maxAttempts: 2, backoffSeconds: 1, backoffFactor: 2 }
  expect(nextState(failed, { ...history, retry, losses: lossesMax - 1 })).toMatchObject({ status: 'queued' })
  expect(nextState({ kind: 'workerLost' }, { ...history, retry, failures: 2 })).toMatchObject({ status: 'queued' })
})

test('a run that has lost too many workers fails', () => {
  const after = (losses: number) => nextState({ kind: 'workerLost' }, { ...history, losses })
  expect(after(lossesMax - 2)).toMatchObject({ status: 'queued' })
  expect(after(lossesMax - 1)).toEqual({ status: 'failed', reason: 'workerLost' })
})
