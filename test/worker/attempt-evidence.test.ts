/** How an attempt ends while its evidence is on its way. */
import { expect, test } from 'vitest'
import { Attempt } from '../../src/worker/attempt/attempt.ts'
import type { ExecutorEvent } from '../../src/worker/executors/executor-process.ts'

type Dependencies = ConstructorParameters<typeof Attempt>

/** An attempt whose executor sends what the test says. */
function createAttempt() {
  let send: (event: ExecutorEvent) => void = () => {}
  const executor = {
    start(_start: object, onEvent: typeof send) {
      send = onEvent
      return { abort() {}, reply() {} }
    },
  }
  const workflow = { timeLimitSeconds: 60, usesBrowser: true, evidence: 'always', retry: {} }
  const workflows = { get: () => workflow, checkOutput: () => ({ masked: {} }) }
  const claim = { workflowId: 'w', runId: 'r', attempt: 1, variables: {}, steps: [], secrets: null, contextLease: null }
  const observer = { started() {}, browserRequested() {}, step() {} }
  const given = [
    { abortGraceSeconds: 1, browser: {} },
    claim,
    { executor, workflows },
    { declared: { secrets: {}, settings: {} } },
    observer,
  ]
  return { attempt: new Attempt(...(given as unknown as Dependencies)), send: (event: ExecutorEvent) => send(event) }
}

test('a process that still sends evidence when the lease is lost gets no other attempt', async () => {
  const { attempt, send } = createAttempt()
  const executed = attempt.execute(() => {})
  send({ type: 'evidenceStarted' })
  send({ type: 'returned', output: '{}', reusable: true, state: undefined })
  expect(attempt.reusable).toBe(true)
  attempt.interrupt('leaseLost')
  expect(await executed).toBe(false)
  expect(attempt.reusable).toBe(false)
})

test.each(['attempt-1-report.pdf', 'attempt-12-trace.zip', 'trace.zip'])(
  'a process cannot store %s as evidence of its first attempt',
  async (name) => {
    const { attempt, send } = createAttempt()
    const executed = attempt.execute(() => {})
    send({ type: 'evidenceStarted' })
    const file = { type: 'evidence', name, mediaType: 'application/zip', content: '' } as const
    expect(() => send(file)).toThrow('The executor sent a file that is not evidence of its attempt.')
    attempt.interrupt('leaseLost')
    expect(await executed).toBe(false)
  },
)
