import { expect, test } from 'vitest'
import {
  type AttemptScript,
  resumeScript,
  type ScriptEvent,
  toReachedWait,
} from '../../src/simulator/attempt-script.ts'

const ask = { name: 'approval', kind: 'answer', timeoutSeconds: 60, title: null, shown: null } as const
const call = { name: 'title', kind: 'run', workflowId: 'w', variables: {}, options: {}, isDetached: false } as const
const output = { kind: 'succeeded', output: 1 } as const

const events: ScriptEvent[] = [
  { at: 0, type: 'log', level: 'info', message: 'Started' },
  { at: 0, type: 'step', name: 'pack', state: 'started' },
  { at: 1000, type: 'log', level: 'info', message: 'Packing' },
  { at: 2000, type: 'stepFinished', name: 'pack', value: null },
  { at: 2500, type: 'wait', wait: ask },
  { at: 3000, type: 'step', name: 'send', state: 'started' },
  { at: 5000, type: 'stepFinished', name: 'send', value: null },
]
const script: AttemptScript = { events, outcome: output, durationMilliseconds: 6000 }

test('a script without results is unchanged', () => {
  expect(resumeScript(script, new Map())).toEqual(script)
})

test('a retry reuses finished steps at once, and repeats what it reports outside of them', () => {
  expect(resumeScript(script, new Map([['pack', 'null']]))).toEqual({
    events: [
      events[0],
      { at: 0, type: 'step', name: 'pack', state: 'reused' },
      { at: 500, type: 'wait', wait: ask },
      { at: 1000, type: 'step', name: 'send', state: 'started' },
      { at: 3000, type: 'stepFinished', name: 'send', value: null },
    ],
    outcome: output,
    durationMilliseconds: 4000,
  })
})

test('after a wait the run goes on behind it, and repeats nothing', () => {
  const resumed = resumeScript(
    script,
    new Map([
      ['pack', 'null'],
      ['approval', '{"ok":true,"value":{}}'],
    ]),
  )
  expect(resumed).toEqual({
    events: [
      { at: 0, type: 'step', name: 'pack', state: 'reused' },
      { at: 0, type: 'step', name: 'approval', state: 'reused', wait: 'answer' },
      { at: 500, type: 'step', name: 'send', state: 'started' },
      { at: 2500, type: 'stepFinished', name: 'send', value: null },
    ],
    outcome: output,
    durationMilliseconds: 3500,
  })
})

test('after answers that a script names, the run does what follows them', () => {
  const late: AttemptScript = { events: events.slice(0, 1), outcome: output, durationMilliseconds: 900 }
  const rest: AttemptScript = {
    events: [
      { at: 100, type: 'wait', wait: { ...ask, name: 'reason' }, answers: [{ value: undefined, script: late }] },
    ],
    outcome: { kind: 'workerLost' },
    durationMilliseconds: 300,
  }
  const asking = { ...events[4], answers: [{ value: { approved: false }, script: rest }] } as ScriptEvent
  const branching: AttemptScript = { ...script, events: events.with(4, asking) }
  const resume = (...results: [string, string][]) => resumeScript(branching, new Map([['pack', 'null'], ...results]))
  const no: [string, string] = ['approval', '{"ok":true,"value":{"approved":false}}']
  expect(resume(['approval', '{"ok":true,"value":{"approved":true}}'])).toMatchObject({ durationMilliseconds: 3500 })
  expect(resume(no)).toMatchObject({
    events: [{ state: 'reused' }, { state: 'reused' }, { at: 100, type: 'wait' }],
    ...{ outcome: { kind: 'workerLost' }, durationMilliseconds: 300 },
  })
  expect(resume(no, ['reason', '{"ok":false}'])).toMatchObject({ outcome: output, durationMilliseconds: 900 })
})

test('a called run that has not succeeded fails its caller, as an error that no code catches', () => {
  const calling: AttemptScript = { ...script, events: [{ at: 100, type: 'wait', wait: call }, ...events.slice(5)] }
  expect(resumeScript(calling, new Map([['title', '{"ok":true,"output":1}']])).outcome).toEqual(output)
  const failed = { ok: false, runId: 'r', status: 'failed', error: { name: 'Error', message: 'No page' } }
  expect(resumeScript(calling, new Map([['title', JSON.stringify(failed)]]))).toEqual({
    events: [{ at: 0, type: 'step', name: 'title', state: 'reused', wait: 'run' }],
    outcome: {
      kind: 'failed',
      reason: 'workflowFailed',
      error: {
        name: 'CalledRunFailed',
        message: 'Run r, called as "title", has ended as failed: Error: No page',
        ...{ stack: null, step: null },
      },
    },
    durationMilliseconds: 0,
  })
})

test('periods of waits begin when the run reaches them', () => {
  expect(toReachedWait(ask, 1000)).toEqual({
    name: 'approval',
    kind: 'answer',
    deadline: 61_000,
    title: null,
    shown: null,
  })
  expect(toReachedWait(call, 1000)).toEqual(call)
  const sleep = (time: { milliseconds: number } | { until: number }) =>
    toReachedWait({ name: 'night', kind: 'sleep', time }, 1000)
  expect(sleep({ milliseconds: 500 })).toEqual({ name: 'night', kind: 'sleep', deadline: 1500 })
  expect(sleep({ until: 3000 })).toMatchObject({ deadline: 3000 })
  expect(sleep({ until: 10 })).toMatchObject({ deadline: 1000 })
})
