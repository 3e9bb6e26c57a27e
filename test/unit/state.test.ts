/** The states of a run: the same in the code as in the document, and what becomes of a run after an attempt. */
import { expect, test } from 'vitest'
import {
  type AttemptHistory,
  isFinal,
  lossesMax,
  nextState,
  type Outcome,
  transitions,
} from '../../src/domain/runs/run-state.ts'
import { executionContract } from '../../src/openapi/served-documents.ts'

interface Schema {
  description: string
  enum: string[]
  oneOf: { enum?: string[] }[]
}

const { schemas } = (executionContract.document as unknown as { components: { schemas: Record<string, Schema> } })
  .components
const statusSchema = schemas.RunStatus as Schema
const reasons = (schemas.RunReason as Schema).oneOf.flatMap((each) => each.enum ?? [])

/** The rows of the table in the description, as pairs of statuses. */
function documentedMoves(): string[] {
  const rows = statusSchema.description.matchAll(/^\| `(\w+)` \| `(\w+)` \|/gm)
  return [...rows].map(([, from, to]) => `${from} → ${to}`)
}

test('the moves between statuses are those of the table in the document', () => {
  const moves = Object.entries(transitions).flatMap(([from, tos]) => tos.map((to) => `${from} → ${to}`))
  expect(documentedMoves().length).toBeGreaterThan(5)
  expect(moves.sort()).toEqual(documentedMoves().sort())
})

test('the statuses are those of the document, and the final ones are those it calls final', () => {
  const statuses = Object.keys(transitions) as (keyof typeof transitions)[]
  expect(statuses.sort()).toEqual(statusSchema.enum.toSorted())
  const [sentence] = statusSchema.description.match(/[^\n]*are final\./) ?? []
  const documented = [...(sentence ?? '').matchAll(/`(\w+)`/g)].map(([, status]) => status)
  expect(statuses.filter(isFinal).sort()).toEqual(documented.sort())
})

const history: AttemptHistory = {
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
  [{ kind: 'workerLost' }, { status: 'queued', reason: 'workerLost', delaySeconds: 0 }],
])('after %o comes %o', (outcome, next) => {
  expect(nextState(outcome, history)).toEqual(next)
  // Whatever it is, the document knows it.
  const { status, reason } = nextState(outcome, history)
  expect(transitions.running).toContain(status)
  if (reason !== null) expect(reasons).toContain(reason)
})

test('a cancelled run ends as cancelled whatever its attempt did, were it to succeed or to be tried again', () => {
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

test('a failed attempt is repeated until the policy is exhausted, each time after a longer wait', () => {
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

test('lost workers do not use up the attempts of the policy, nor failures those that may be lost', () => {
  const retry = { maxAttempts: 2, backoffSeconds: 1, backoffFactor: 2 }
  expect(nextState(failed, { ...history, retry, losses: lossesMax - 1 })).toMatchObject({ status: 'queued' })
  expect(nextState({ kind: 'workerLost' }, { ...history, retry, failures: 2 })).toMatchObject({ status: 'queued' })
})

test('a run whose workers die again and again fails', () => {
  const after = (losses: number) => nextState({ kind: 'workerLost' }, { ...history, losses })
  expect(after(lossesMax - 2)).toMatchObject({ status: 'queued' })
  expect(after(lossesMax - 1)).toEqual({ status: 'failed', reason: 'workerLost' })
})
