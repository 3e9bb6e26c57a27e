/** Every attempt that fails says why: the error, where it was thrown, and the step. */
import { expect, test } from 'vitest'
import { queueRun } from '../support/domain.ts'
import { describeEvents, openInstallation, startWorker, waitForRun } from '../support/worker.ts'

const frame = (called: string) => String.raw`at ${called} \(fail-in-step\.ts:\d+:\d+\)`
const laterStack = /^at Timeout\._onTimeout \(fail-in-step\.ts:\d+:\d+\)$/
const thrownStack = new RegExp(
  [
    String.raw`^at fail-in-step\.ts:\d+:\d+`,
    frame('async run'),
    'Caused by TypeError: no connection',
    `${frame('throw')}(\n${String.raw`at [^\n]*fail-in-step\.ts:\d+:\d+\)?`})*`,
    'Caused by Error: the host is unknown',
    `${frame('throw')}(\n${String.raw`at [^\n]*fail-in-step\.ts:\d+:\d+\)?`})*$`,
  ].join('\n'),
)

test.for([
  ['throw', 'Error', 'The page could not be read.', expect.stringMatching(thrownStack)],
  ['exit', 'ProcessExit', "The workflow's process exited with code 3.", null],
  ['kill', 'ProcessKilled', "The workflow's process was killed by SIGUSR2.", null],
  ['exhaust', 'HeapLimit', 'The workflow reached the heap limit of 64 MB, which WORKFLOW_MEMORY_MB sets.', null],
  ['throwLater', 'RangeError', 'Uncaught: thrown later', expect.stringMatching(laterStack)],
  ['hang', 'TimeLimit', 'The attempt exceeded the time limit of 10 s.', null],
])('%s is named, with the step, in the run, its events and the log', async ([how, name, message, stack], test) => {
  const { domain, principal } = await openInstallation(test)
  const { log } = await startWorker(test, domain)
  const run = await queueRun(domain, principal, { workflowId: 'fail-in-step', variables: { how } })
  const { attemptHistory } = await waitForRun(domain, run)
  const outcome = how === 'hang' ? 'timedOut' : 'failed'
  expect(attemptHistory).toMatchObject([{ number: 1, outcome, error: { name, message, stack, step: 'connect' } }])
  const events = (await describeEvents(domain, run)).join('\n')
  expect(events).not.toMatch(/node_modules|src\/worker|0x[0-9a-f]{6}|stack trace/)
  const lines = log.map((line) => JSON.parse(line)).filter(({ level }) => level >= 40)
  const logged = { level: 40, msg: 'attempt failed', errorName: name, attempt: 1 }
  expect(lines).toEqual([expect.objectContaining({ ...logged, runId: run.id, workflowId: 'fail-in-step' })])
})
