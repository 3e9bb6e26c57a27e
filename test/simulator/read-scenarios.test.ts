// cspell:ignore Secnds setp timedout custmer aproval aproved pakc ordr
import { expect, test } from 'vitest'
import { Workflows } from '../../src/domain/workflows/workflows.ts'
import { ScenariosInvalid } from '../../src/simulator/scenario-errors.ts'
import { Scenarios } from '../../src/simulator/scenarios.ts'
import { workflow, workflows } from './workflows.ts'

function refusal(read: () => unknown): ScenariosInvalid {
  try {
    read()
  } catch (error) {
    if (error instanceof ScenariosInvalid) return error
    throw error
  }
  throw new Error('The scenarios were accepted.')
}

/** The message for a scenario of ship-order with these lines. */
function messageFor(...lines: string[]): string {
  const text = ['scenarios:', '  - workflow: ship-order', ...lines.map((line) => `    ${line}`)].join('\n')
  return refusal(() => Scenarios.read(text, workflows)).message
}

test('a mistyped member is named with its line, its column, its path and the member that was meant', () => {
  expect(messageFor('durationSecnds: 2')).toBe(
    'scenarios.yaml:3:5: /scenarios/0/durationSecnds is not a known member: did you mean "durationSeconds"?',
  )
  expect(messageFor('actions:', '  - log: Hello', '  - setp: pack')).toBe(
    'scenarios.yaml:5:9: /scenarios/0/actions/1/setp is not a known member: did you mean "step"?',
  )
  expect(messageFor('actions:', '  - step: { name: pack, colour: red }')).toMatch(
    /^scenarios\.yaml:4:\d+: \/scenarios\/0\/actions\/0\/step\/colour is not a known member: the members are "name", /,
  )
})

test.each<[string, string[], string]>([
  [
    'a duration that is no number',
    ['durationSeconds: 2 seconds'],
    '3:22: /scenarios/0/durationSeconds must be a number, and not "2 seconds".',
  ],
  ['a negative duration', ['durationSeconds: -1'], '3:22: /scenarios/0/durationSeconds must be >= 0, and not -1.'],
  [
    'a number that JSON lacks',
    ['output: { parcels: .inf }'],
    '3:24: /scenarios/0/output/parcels is not a number that JSON has.',
  ],
  [
    'an unknown outcome',
    ['outcome: timedout'],
    '3:14: /scenarios/0/outcome cannot be "timedout": did you mean "timedOut"?',
  ],
  [
    'an action without a member',
    ['actions:', '  - {}'],
    '4:9: /scenarios/0/actions/0 must have exactly one of "log", "progress", "artifact", "step", "pause", "sleep", "ask", "call", and has none.',
  ],
  [
    'an action with two members',
    ['actions:', '  - log: a', '    step: b'],
    '4:9: /scenarios/0/actions/0 must have exactly one of "log", "progress", "artifact", "step", "pause", "sleep", "ask", "call", and has "log" and "step".',
  ],
  ['a missing member', ['error: { name: TypeError }'], '3:12: /scenarios/0/error lacks the member "message".'],
  [
    'a sleep of two kinds',
    ['actions:', '  - sleep: { name: night, seconds: 1, until: 2026-01-01T00:00:00Z }'],
    '4:16: /scenarios/0/actions/0/sleep must have a name, and either "seconds" or "until".',
  ],
  [
    'a sleep until no time',
    ['actions:', '  - sleep: { name: night, until: tomorrow }'],
    '4:38: /scenarios/0/actions/0/sleep/until must match format "date-time", and not "tomorrow".',
  ],
  [
    'an output that the schema refuses',
    ['output:', '  parcels: none'],
    '4:16: /scenarios/0/output/parcels must be integer, by the schema of the output of "ship-order".',
  ],
  [
    'an output without a member',
    ['output: {}'],
    '3:13: /scenarios/0/output/parcels is required, by the schema of the output of "ship-order".',
  ],
  [
    'a variable that no run has',
    ['variables: { custmer: ada }'],
    '3:18: /scenarios/0/variables/custmer is not a variable: did you mean "customer"?',
  ],
  [
    'a wait that is not declared',
    ['actions:', '  - ask: aproval'],
    '4:14: /scenarios/0/actions/0/ask is "aproval", which the workflow does not declare: did you mean "approval"?',
  ],
  [
    'a call of an unknown workflow',
    ['actions:', '  - call: { name: title, workflow: page-tile }'],
    '4:40: /scenarios/0/actions/0/call/workflow names no workflow: did you mean "page-title"?',
  ],
  [
    'a call with wrong variables',
    ['actions:', '  - call: { name: next, workflow: ship-order, variables: { customer: 1 } }'],
    '4:74: /scenarios/0/actions/0/call/variables/customer must be string, by the schema of the variables of "ship-order".',
  ],
  [
    'two steps of one name',
    ['actions:', '  - step: pack', '  - ask: { wait: approval }', '  - step: pack'],
    '6:9: /scenarios/0/actions/2 has the name "pack" of /actions/0: steps and waits need different names.',
  ],
  [
    'a value that no answer has',
    ['actions:', '  - ask: { wait: approval, answers: [{ value: { approved: maybe } }] }'],
    '4:63: /scenarios/0/actions/0/ask/answers/0/value/approved must be boolean, by the schema of answers to "approval".',
  ],
  [
    'a member that no answer has',
    ['actions:', '  - ask: { wait: approval, answers: [{ value: { aproved: true } }] }'],
    '4:62: /scenarios/0/actions/0/ask/answers/0/value/aproved is not in the schema, by the schema of answers to "approval".',
  ],
  [
    'an answer of another type',
    ['actions:', '  - ask: { wait: weight, answers: [{ value: 0 }] }'],
    '4:49: /scenarios/0/actions/0/ask/answers/0/value must be >= 1, by the schema of answers to "weight".',
  ],
  [
    'an answer without a value',
    ['actions:', '  - ask: { wait: approval, answers: [{ output: { parcels: 1 } }] }'],
    '4:42: /scenarios/0/actions/0/ask/answers/0 must have either "value" or "timedOut".',
  ],
  [
    'an answer with two outcomes',
    [
      'actions:',
      '  - ask: { wait: approval, answers: [{ timedOut: true, output: { parcels: 1 }, error: { message: No } }] }',
    ],
    '4:42: /scenarios/0/actions/0/ask/answers/0 must have at most one of "error" and "output".',
  ],
  [
    'an answer that never matches',
    [
      'actions:',
      '  - ask:',
      '      wait: approval',
      '      answers: [{ value: { approved: true } }, { value: { approved: true, by: { name: Ada } } }]',
    ],
    '6:52: /scenarios/0/actions/0/ask/answers/1 never matches, since /answers/0 matches all its answers before.',
  ],
  [
    'an output after an answer that the schema refuses',
    ['actions:', '  - ask: { wait: approval, answers: [{ timedOut: true, output: { parcels: 0 } }] }'],
    '4:79: /scenarios/0/actions/0/ask/answers/0/output/parcels must be >= 1, by the schema of the output of "ship-order".',
  ],
  [
    'a step after an answer with the name of one before',
    ['actions:', '  - step: pack', '  - ask: { wait: approval, answers: [{ timedOut: true, actions: [step: pack] }] }'],
    '5:70: /scenarios/0/actions/1/ask/answers/0/actions/0 has the name "pack" of /actions/0: steps and waits need different names.',
  ],
  [
    'actions after an answer that take longer than the time limit',
    ['actions:', '  - pause: 30', '  - ask: { wait: approval, answers: [{ timedOut: true, actions: [pause: 31] }] }'],
    '5:69: /scenarios/0/actions/1/ask/answers/0/actions lead to a duration of 61 seconds, while the time limit of "ship-order" is 60 seconds.',
  ],
  [
    'actions longer than the duration',
    ['durationSeconds: 2', 'actions:', '  - pause: 3'],
    '3:22: /scenarios/0/durationSeconds is 2, while the actions take 3 seconds.',
  ],
  [
    'a duration above the time limit',
    ['durationSeconds: 90'],
    '3:22: /scenarios/0/durationSeconds takes 90 seconds, while the time limit of "ship-order" is 60 seconds: use the outcome "timedOut".',
  ],
  [
    'attempts without their outcome',
    ['firstAttempts: 2'],
    '3:5: /scenarios/0/firstAttempts needs an outcome other than "succeeded".',
  ],
  [
    'as many failures as there are attempts',
    ['outcome: failed', 'firstAttempts: 3'],
    '4:20: /scenarios/0/firstAttempts is 3, while the retry policy of "ship-order" has 3 in all: leave it out if the run is not to succeed.',
  ],
  [
    'an attempt after one that times out',
    ['outcome: timedOut', 'firstAttempts: 1'],
    '4:20: /scenarios/0/firstAttempts is 1, while no attempt follows one that times out: leave it out if the run is not to succeed.',
  ],
  [
    'more losses than a run survives',
    ['outcome: workerLost', 'firstAttempts: 5'],
    '4:20: /scenarios/0/firstAttempts is 5, while a run fails when it has lost 5 workers: leave it out if the run is not to succeed.',
  ],
  [
    'an error of another outcome',
    ['outcome: timedOut', 'error: { message: No }'],
    '4:5: /scenarios/0/error needs the outcome "failed", and not "timedOut".',
  ],
  [
    'an end in an unknown step',
    ['outcome: failed', 'endsInStep: pakc', 'actions: [step: pack]'],
    '4:17: /scenarios/0/endsInStep names no step: did you mean "pack"?',
  ],
  [
    'evidence without a browser',
    ['evidence: {}'],
    '3:5: /scenarios/0/evidence needs a workflow with a browser, which "ship-order" is not.',
  ],
  [
    'content of two kinds',
    ['actions:', '  - artifact: { name: a.txt, text: a, sizeBytes: 1 }'],
    '4:19: /scenarios/0/actions/0/artifact must have at most one of "text", "base64" and "sizeBytes".',
  ],
  [
    'wrong base64',
    ['actions:', '  - artifact: { name: a.txt, base64: "?" }'],
    '4:42: /scenarios/0/actions/0/artifact/base64 must be base64.',
  ],
  [
    'a name of evidence',
    ['actions:', '  - artifact: { name: attempt-1-page-1.jpg }'],
    '4:19: /scenarios/0/actions/0/artifact is refused: "attempt-1-page-1.jpg" is the name of evidence that the service stores. Use another name.',
  ],
])('refuses %s in one sentence with its place', (_, lines, message) => {
  expect(messageFor(...lines)).toBe(`scenarios.yaml:${message}`)
})

test('a scenario that never matches is refused', () => {
  const text = 'scenarios:\n- workflow: ship-order\n- workflow: ship-order\n  variables: { customer: ada }'
  expect(refusal(() => Scenarios.read(text, workflows)).message).toBe(
    'scenarios.yaml:3:3: /scenarios/1 never matches, since /scenarios/0 matches all its runs before.',
  )
})

test('an unknown workflow is named, with the one that was meant or else all', () => {
  const read = (id: string) => refusal(() => Scenarios.read(`scenarios: [workflow: ${id}]`, workflows)).message
  expect(read('ship-ordr')).toBe(
    'scenarios.yaml:1:23: /scenarios/0/workflow names no workflow: did you mean "ship-order"?',
  )
  expect(read('x')).toBe(
    'scenarios.yaml:1:23: /scenarios/0/workflow names no workflow: the workflows are "page-title", "ship-order".',
  )
})

test.each([
  ['scenarios:\n  - workflow: [', 'flow.yaml:2:'],
  ['scenarios: []\nscenarios: []', 'flow.yaml:2:1: Map keys must be unique'],
  ['scenarios: !custom []', 'flow.yaml:1:12: Unresolved tag: !custom'],
  ['scenarios: *none', 'flow.yaml:1:12: No anchor has the name "none".'],
  ['scenarios: []\n---\nscenarios: []', 'flow.yaml:2:'],
  ['', 'flow.yaml:1:1: The file must be an object, and not null.'],
])('refuses the YAML %j with its place', (text, start) => {
  const { message } = refusal(() => Scenarios.read(text, workflows, 'flow.yaml'))
  expect(message.slice(0, start.length)).toBe(start)
  expect(message).toMatch(/\.$/)
})

test('a value of an alias is refused at the alias', () => {
  const text = 'x: &output { parcels: 0 }\nscenarios:\n  - workflow: ship-order\n    output: *output'
  const problems = refusal(() => Scenarios.read(text, workflows)).problems
  expect(problems).toEqual([
    { pointer: '/x', detail: 'is not a known member: the members are "scenarios"', line: 1, column: 1 },
  ])
  const anchored =
    'scenarios:\n  - workflow: page-title\n    output: &o { parcels: 0 }\n  - workflow: ship-order\n    output: *o'
  expect(refusal(() => Scenarios.read(anchored, workflows)).message).toBe(
    'scenarios.yaml:5:13: /scenarios/1/output/parcels must be >= 1, by the schema of the output of "ship-order".',
  )
})

test('aliases that grow without bound are refused', () => {
  const levels = Array.from({ length: 9 }, (_, level) => `  ${level}: &l${level + 1} [${`*l${level}, `.repeat(10)}]`)
  const text = [
    'scenarios:',
    '- workflow: ship-order',
    '  variables:',
    '    customer: &l0 ada',
    ...levels.map((line) => `  ${line}`),
  ]
  expect(refusal(() => Scenarios.read(text.join('\n'), workflows)).message).toMatch(/alias/i)
})

test('members of answers are accepted wherever the schema of the wait has them', () => {
  const schema = {
    type: 'object',
    minProperties: 2,
    oneOf: [{ required: ['price'] }, { required: ['reason', 'code'] }],
    properties: {
      price: { $ref: '#/$defs/price' },
      required: { type: 'string' },
      reason: { const: { code: 1, text: 'Sold out' } },
      size: { enum: ['S', 'M'] },
    },
    $defs: { price: { type: 'object', required: ['amount', 'currency'], properties: { amount: { type: 'number' } } } },
  }
  const wares = new Workflows([workflow('sell', { waits: { offer: { schema } } })])
  const read = (value: unknown) =>
    Scenarios.from(
      { scenarios: [{ workflow: 'sell', actions: [{ ask: { wait: 'offer', answers: [{ value }] } }] }] },
      wares,
    )
  for (const value of [{}, { price: { amount: 5 } }, { required: 'yes' }, { reason: { code: 1 } }, { size: 'M' }])
    expect(() => read(value)).not.toThrow()
  const place = '/scenarios/0/actions/0/ask/answers/0/value'
  expect(refusal(() => read({ price: { amount: 'x' } })).message).toContain(`${place}/price/amount must be number`)
  expect(refusal(() => read({ required: 1 })).message).toContain(`${place}/required must be string`)
  expect(refusal(() => read({ size: 'L' })).message).toContain(`${place}/size must be equal to one of`)
  expect(refusal(() => read([])).message).toContain(`${place} must match`)
})

test('all problems are listed, of JSON by their pointers', () => {
  const scenarios = [{ workflow: 'ship-order', durationSeconds: '2' }, { workflow: 1 }]
  const { message, problems } = refusal(() => Scenarios.from({ scenarios }, workflows))
  expect(message).toBe('/scenarios/0/durationSeconds must be a number, and not "2".')
  expect(problems).toEqual([
    { pointer: '/scenarios/0/durationSeconds', detail: 'must be a number, and not "2"' },
    { pointer: '/scenarios/1/workflow', detail: 'must be a string, and not 1' },
  ])
})

test('scenarios are written as they were read', () => {
  const file = { scenarios: [{ workflow: 'page-title', durationSeconds: 1, actions: [{ step: 'open' }] }] }
  expect(JSON.parse(JSON.stringify(Scenarios.from(file, workflows)))).toEqual(file)
})
