import { expect, test } from 'vitest'
import { type AttemptScript, followAnswer, type ScriptEvent } from '../../src/simulator/attempt-script.ts'
import { Scenarios, type SimulatedAttempt } from '../../src/simulator/scenarios.ts'
import { order, page, workflow, workflows } from './workflows.ts'

const attempt: SimulatedAttempt = { workflow: order, variables: {}, attempt: 1, runId: 'run-1', seed: 'seed' }

function read(...lines: string[]): Scenarios {
  return Scenarios.read(`scenarios:\n${lines.map((line) => `  ${line}`).join('\n')}`, workflows)
}

/** Such as `1000 pack started`. */
function describe(event: ScriptEvent): string {
  switch (event.type) {
    case 'log':
      return `${event.at} ${event.level} ${event.message}`
    case 'progress':
      return `${event.at} ${event.percent}% ${event.message}`
    case 'step':
      return `${event.at} ${event.name} ${event.state}`
    case 'stepFinished':
      return `${event.at} ${event.name} = ${JSON.stringify(event.value)}`
    case 'artifact':
      return `${event.at} ${event.artifact.name} ${event.artifact.content.length}`
    case 'wait':
      return `${event.at} ${event.wait.kind} ${event.wait.name}`
  }
}

function lines({ events }: AttemptScript): string[] {
  return events.map(describe)
}

test('without scenarios a run succeeds after some seconds, with steps, logs, progress and its declared waits', () => {
  const script = Scenarios.none.scriptOf(attempt)
  expect(script.outcome).toEqual({ kind: 'succeeded', output: { parcels: 1 } })
  expect(script.durationMilliseconds).toBeGreaterThanOrEqual(2000)
  expect(script.durationMilliseconds).toBeLessThanOrEqual(6000)
  const types = new Set(script.events.map(({ type }) => type))
  expect(types).toEqual(new Set(['step', 'log', 'progress', 'stepFinished', 'wait']))
  const names = script.events.flatMap((event) => (event.type === 'stepFinished' ? event.name : []))
  expect(names).toEqual(['prepare', 'execute', 'finish'])
  expect(script.events.find(({ type }) => type === 'wait')).toMatchObject({
    wait: { kind: 'answer', name: 'approval' },
  })
})

test('the same arguments give the same script, and another run or seed another duration', () => {
  const durationOf = (changes: Partial<SimulatedAttempt>) =>
    Scenarios.none.scriptOf({ ...attempt, ...changes }).durationMilliseconds
  expect(Scenarios.none.scriptOf(attempt)).toEqual(new Scenarios([]).scriptOf(attempt))
  expect(durationOf({ runId: 'run-2' })).not.toBe(durationOf({}))
  expect(durationOf({ seed: 'other' })).not.toBe(durationOf({}))
})

test('events are in the order of their times, and end with the attempt', () => {
  for (const each of [order, page]) {
    for (const runId of ['a', 'b', 'c']) {
      const { events, durationMilliseconds } = Scenarios.none.scriptOf({ ...attempt, workflow: each, runId })
      const times = events.map(({ at }) => at)
      expect(times).toEqual(times.toSorted((a, b) => a - b))
      expect(times.every((at) => Number.isInteger(at) && at >= 0 && at <= durationMilliseconds)).toBe(true)
    }
  }
})

test('the first scenario that matches decides, by members of variables at any depth', () => {
  const scenarios = read(
    '- workflow: ship-order',
    '  variables: { address: { country: NL } }',
    '  output: { parcels: 2 }',
    '- workflow: ship-order',
    '  variables: { customer: ada, items: [1] }',
    '  output: { parcels: 3 }',
    '- workflow: ship-order',
    '  output: { parcels: 4 }',
  )
  const outputFor = (variables: Record<string, unknown>) => scenarios.scriptOf({ ...attempt, variables }).outcome
  expect(outputFor({ customer: 'ada', address: { country: 'NL', city: 'Delft' }, items: [1] })).toMatchObject({
    output: { parcels: 2 },
  })
  expect(outputFor({ customer: 'ada', address: { country: 'DE' }, items: [1] })).toMatchObject({
    output: { parcels: 3 },
  })
  expect(outputFor({ customer: 'ada', items: [1, 2] })).toMatchObject({ output: { parcels: 4 } })
  expect(outputFor({ address: 'NL' })).toMatchObject({ output: { parcels: 4 } })
  expect(scenarios.scriptOf({ ...attempt, workflow: page }).outcome).toEqual({ kind: 'succeeded', output: {} })
})

test('actions happen in their order, and steps share the time that others do not name', () => {
  const scenarios = read(
    '- workflow: ship-order',
    '  durationSeconds: 10',
    '  actions:',
    '  - log: Started',
    '  - step: pack',
    '  - pause: 1',
    '  - progress: { percent: 40, message: Packed }',
    '  - step:',
    '      name: label',
    '      durationSeconds: 3',
    '      value: [1, 2]',
    '      actions: [{ log: { message: Slow, level: warn } }, { progress: 60 }]',
    '  - artifact: { name: label.txt, text: ABC }',
    '  - ask: approval',
    '  - sleep: { name: night, seconds: 60 }',
    '  - call: { name: title, workflow: page-title, variables: { url: "https://example.com/" }, detached: true }',
    '  - step: send',
  )
  const script = scenarios.scriptOf(attempt)
  expect(lines(script)).toEqual([
    '0 info Started',
    '0 pack started',
    '3000 pack = null',
    '4000 40% Packed',
    '4000 label started',
    '5000 warn Slow',
    '6000 60% null',
    '7000 label = [1,2]',
    '7000 label.txt 3',
    '7000 answer approval',
    '7000 sleep night',
    '7000 run title',
    '7000 send started',
    '10000 send = null',
  ])
  expect(script.durationMilliseconds).toBe(10_000)
  const waits = script.events.flatMap((event) => (event.type === 'wait' ? event.wait : []))
  expect(waits).toEqual([
    { name: 'approval', kind: 'answer', timeoutSeconds: 604_800, title: null, shown: null },
    { name: 'night', kind: 'sleep', time: { milliseconds: 60_000 } },
    {
      ...{ name: 'title', kind: 'run', workflowId: 'page-title', variables: { url: 'https://example.com/' } },
      ...{ options: {}, isDetached: true },
    },
  ])
})

test('without steps and pauses, actions are spread evenly', () => {
  const scenarios = read('- workflow: ship-order', '  durationSeconds: 3', '  actions: [{ log: One }, { log: Two }]')
  expect(lines(scenarios.scriptOf(attempt))).toEqual(['1000 info One', '2000 info Two'])
})

test('an attempt takes as long as its actions say', () => {
  const scenarios = read(
    '- workflow: ship-order',
    '  actions: [{ pause: 0.25 }, { step: { name: pack, durationSeconds: 2 } }]',
  )
  expect(scenarios.scriptOf(attempt).durationMilliseconds).toBe(2250)
})

test('the first attempts fail in a step, and the next one succeeds', () => {
  const scenarios = read(
    '- workflow: ship-order',
    '  durationSeconds: 4',
    '  actions: [{ step: pack }, { step: label }, { log: Done }]',
    '  firstAttempts: 2',
    '  endsInStep: label',
    '  error: { name: PrinterError, message: No paper }',
  )
  for (const number of [1, 2]) {
    const script = scenarios.scriptOf({ ...attempt, attempt: number })
    expect(lines(script)).toEqual(['0 pack started', '2000 pack = null', '2000 label started', '4000 label failed'])
    expect(script.outcome).toEqual({
      kind: 'failed',
      reason: 'workflowFailed',
      error: { name: 'PrinterError', message: 'No paper', stack: null, step: 'label' },
    })
  }
  expect(scenarios.scriptOf({ ...attempt, attempt: 3 }).outcome.kind).toBe('succeeded')
})

test('an attempt that times out executes until its time limit, in the step that it has not finished', () => {
  const scenarios = read('- workflow: page-title', '  outcome: timedOut', '  durationSeconds: 1')
  const script = scenarios.scriptOf({ ...attempt, workflow: page })
  expect(script.outcome).toEqual({ kind: 'timedOut', limitSeconds: 30, step: 'finish' })
  expect(script.durationMilliseconds).toBe(30_000)
  expect(lines(script)).not.toContainEqual(expect.stringContaining('finish ='))
})

test('an attempt that fails waits for no answer, unless its actions ask', () => {
  const scenarios = read('- workflow: ship-order', '  error: { message: No paper }', '  firstAttempts: 1')
  const waitsOf = (number: number) =>
    scenarios.scriptOf({ ...attempt, attempt: number }).events.filter(({ type }) => type === 'wait')
  expect(waitsOf(1)).toEqual([])
  expect(waitsOf(2)).toHaveLength(2)
})

test('what follows an answer has its own actions and outcome, and the time of these actions', () => {
  const scenarios = read(
    '- workflow: ship-order',
    '  durationSeconds: 10',
    '  actions:',
    '  - step: { name: pack, durationSeconds: 4 }',
    '  - ask:',
    '      wait: approval',
    '      answers:',
    '      - { value: { approved: false }, output: { parcels: 2 } }',
    '      - { value: { by: { name: Ada } }, actions: [{ log: Checked }, { step: check }, { pause: 1 }] }',
    '      - { timedOut: true, actions: [{ step: { name: remind, durationSeconds: 9 } }], error: { message: Late } }',
    '  - step: send',
  )
  const script = scenarios.scriptOf(attempt)
  const after = (json: string) => followAnswer(script, 2, json)
  const rejected = after('{"ok":true,"value":{"approved":false,"by":{"name":"Ada"}}}')
  expect(lines(rejected)).toEqual(['0 pack started', '4000 pack = null', '4000 answer approval'])
  expect(rejected).toMatchObject({ durationMilliseconds: 4000, outcome: { kind: 'succeeded', output: { parcels: 2 } } })
  const checked = after('{"ok":true,"value":{"approved":true,"by":{"name":"Ada","role":"boss"}}}')
  expect(lines(checked).slice(3)).toEqual(['4000 info Checked', '4000 check started', '9000 check = null'])
  expect(checked).toMatchObject({
    durationMilliseconds: 10_000,
    outcome: { kind: 'succeeded', output: { parcels: 1 } },
  })
  const late = after('{"ok":false}')
  expect(lines(late).slice(3)).toEqual(['4000 remind started', '13000 remind failed'])
  expect(late).toMatchObject({ durationMilliseconds: 13_000, outcome: { kind: 'failed', error: { message: 'Late' } } })
  expect(after('{"ok":true,"value":{"approved":true,"by":{"name":"Bob"}}}')).toEqual(script)
})

test('an answer of another type than an object must be equal', () => {
  const scenarios = read(
    '- workflow: ship-order',
    '  actions: [{ ask: { wait: weight, answers: [{ value: 5, error: { message: Too heavy } }] } }]',
  )
  const script = scenarios.scriptOf(attempt)
  expect(followAnswer(script, 0, '{"ok":true,"value":5}').outcome.kind).toBe('failed')
  for (const json of ['{"ok":true,"value":6}', '{"ok":false}'])
    expect(followAnswer(script, 0, json).outcome.kind).toBe('succeeded')
})

test('a lost worker reports no end', () => {
  const scenarios = read('- workflow: ship-order', '  outcome: workerLost', '  actions: [{ pause: 1 }, { log: Gone }]')
  const script = scenarios.scriptOf(attempt)
  expect(script).toMatchObject({ outcome: { kind: 'workerLost' }, durationMilliseconds: 1000 })
  expect(lines(script)).toEqual(['1000 info Gone'])
})

test('attempts with a browser leave evidence as the policy of their workflow says', () => {
  const scenarios = read(
    '- workflow: page-title',
    '  outcome: failed',
    '  firstAttempts: 1',
    '  evidence:',
    '    url: https://shop.example/',
    '    console: [{ level: error, text: No cart }]',
    '    failedRequests: [{ method: GET, url: "https://shop.example/cart", status: 500 }]',
  )
  const evidenceOf = (evidence: string, number: number) => {
    const { events } = scenarios.scriptOf({
      ...attempt,
      workflow: { ...page, evidence } as typeof page,
      attempt: number,
    })
    return events.flatMap((event) => (event.type === 'artifact' ? event.artifact : []))
  }
  const [screenshot, summary] = evidenceOf('onFailure', 1)
  expect(screenshot).toMatchObject({ name: 'attempt-1-page-1.jpg', kind: 'evidence', mediaType: 'image/jpeg' })
  expect(summary).toMatchObject({ name: 'attempt-1-browser.json', kind: 'evidence' })
  expect(JSON.parse(String(summary?.content))).toEqual({
    pages: [{ url: 'https://shop.example/', title: 'page-title', screenshot: 'attempt-1-page-1.jpg' }],
    console: [{ level: 'error', text: 'No cart', url: 'https://shop.example/' }],
    failedRequests: [{ method: 'GET', url: 'https://shop.example/cart', status: 500, error: null }],
    trace: null,
  })
  expect(evidenceOf('onFailure', 2)).toEqual([])
  expect(evidenceOf('off', 1)).toEqual([])
  expect(evidenceOf('always', 2).map(({ name }) => name)).toEqual(['attempt-2-page-1.jpg', 'attempt-2-browser.json'])
})

test('a workflow of another deployment is scripted, too', () => {
  const scenarios = read('- workflow: ship-order', '  durationSeconds: 1')
  const newer = workflow('ship-order', { version: '2', output: { type: 'string', minLength: 3 } })
  expect(scenarios.scriptOf({ ...attempt, workflow: newer }).outcome).toMatchObject({ output: expect.any(String) })
})
