/** What authors pass is checked when they call, by the rules of the document, with sentences that say what to write. */
import { runWorkflow } from 'execution-service/testing'
import { expect, test } from 'vitest'
import { findValueErrors } from '../../../src/contract/value-checks.ts'
import { callOptions, findCallOptionError } from '../../../src/domain/queue/run-options.ts'
import { isName } from '../../../src/domain/workflows/author-arguments.ts'

type Context = Record<'sleep' | 'call' | 'waitFor' | 'step' | 'variables', (...given: unknown[]) => Promise<unknown>>

const workflow = {
  ...{ id: 'careless', version: '1.0.0', title: 'Careless', variables: { type: 'object' }, output: {} },
  waits: { ok: { schema: { type: 'boolean' } } },
}

const units = 'use seconds, minutes, hours, days or until.'
const example = 'such as { minutes: 5 } or { until: new Date("2030-01-01") }'
const object = `the time must be an object, ${example}, and not`
const tags = 'each of tags must be a text of 1 to 64 letters, digits and characters of . _ : / @ = -, and not the text'
const named = (call: string) =>
  `The name of a ${call} must be a text of 1 to 200 characters without U+0000 or half of a surrogate pair, and not the text "".`

test.each<[keyof Context, unknown[], string]>([
  ['sleep', ['a', '3 days'], `sleep("a"): ${object} the text "3 days".`],
  ['sleep', ['a', 5000], `sleep("a"): ${object} the number 5000.`],
  ['sleep', ['a', undefined], `sleep("a"): ${object} undefined.`],
  ['sleep', ['a', new Date(0)], `sleep("a"): ${object} a Date.`],
  ['sleep', ['a', { hour: 1 }], `sleep("a"): the time cannot have "hour": ${units}`],
  ['sleep', ['a', { weeks: 2 }], `sleep("a"): the time cannot have "weeks": ${units}`],
  ['sleep', ['a', {}], `sleep("a"): the time must have seconds, minutes, hours or days, or until, ${example}.`],
  ['sleep', ['a', { minutes: '0.05' }], 'sleep("a"): minutes must be a number, and not the text "0.05".'],
  ['sleep', ['a', { seconds: Number.NaN }], 'sleep("a"): seconds must be a number, and not the number NaN.'],
  ['sleep', ['a', { days: 367 }], 'sleep("a"): the time must be from 0 seconds to 366 days, and not 31708800 seconds.'],
  ['sleep', ['a', { until: '2030-01-01' }], 'sleep("a"): until must be a valid Date, and not the text "2030-01-01".'],
  [
    'sleep',
    ['a', { until: new Date(), days: 1 }],
    'sleep("a"): the time must have either until or days, and not both.',
  ],
  [
    'waitFor',
    ['ok', { timeout: 5 }],
    'waitFor("ok"): the options cannot have "timeout": use title, timeoutSeconds or show.',
  ],
  [
    'waitFor',
    ['ok', { timeoutSeconds: '5' }],
    'waitFor("ok"): timeoutSeconds must be a number of seconds, and not the text "5".',
  ],
  ['waitFor', ['ok', { show: 'x' }], 'waitFor("ok"): show must be an object of values to show, and not the text "x".'],
  ['call', ['c', 'echo', {}, { tags: ['a b'] }], `call("c"): ${tags} "a b".`],
  ['call', ['c', 'echo', {}, { tags: ['ü'] }], `call("c"): ${tags} "ü".`],
  ['call', ['c', 'echo', {}, { tags: ['\n'] }], `call("c"): ${tags} "\\n".`],
  [
    'call',
    ['c', 'echo', {}, { tag: 'a' }],
    'call("c"): the options cannot have "tag": use priority, tags, concurrencyKey, browserContextId or detached.',
  ],
  ['call', ['c', 'echo', 'x'], 'call("c"): the variables must be an object, and not the text "x".'],
  ['call', ['c', { id: 'echo' }], 'call("c"): the second argument must be the id of a workflow, and not an object.'],
  ['step', ['s'], 'step("s"): the second argument must be a function, and not undefined.'],
  ['sleep', ['', { seconds: 1 }], named('sleep')],
  ['call', ['', 'echo'], named('call')],
  ['waitFor', [''], named('waitFor')],
  ['step', ['', () => 1], named('step')],
])('%s%j throws when it is called', async (call, given, message) => {
  const run = async (context: Context) => context[call](...given).then(String, (error: Error) => error.message)
  const { output, waits } = await runWorkflow({ ...workflow, run } as never)
  expect([output, waits]).toEqual([message, []])
})

test('options of calls and names have the rules of the document', () => {
  const texts = [
    '',
    'a',
    'a b',
    'ü',
    '\n',
    'a:b/c@d=e-f._',
    'a'.repeat(64),
    'a'.repeat(65),
    'a'.repeat(128),
    'a'.repeat(129),
    7,
  ]
  const values: Record<string, unknown[]> = {
    priority: [-11, -10, 0, 10, 11, 0.5, '1', null],
    tags: [...texts.map((text) => [text]), ['a', 'a'], Array.from({ length: 11 }, (_, index) => `t${index}`), 'a'],
    concurrencyKey: texts,
  }
  for (const [option, each] of Object.entries(values)) {
    expect(callOptions).toContain(option)
    for (const value of each) {
      const isRefused = findValueErrors('BatchEntry', { [option]: value }).length > 0
      expect([option, value, findCallOptionError({ [option]: value }) !== undefined]).toEqual([
        option,
        value,
        isRefused,
      ])
    }
  }
  for (const name of ['', 'a', ' ', 'a\0', 'a\ud800', 'a'.repeat(200), 'a'.repeat(201)])
    expect([name, isName(name)]).toEqual([name, findValueErrors('Wait', { name }).length === 0])
})
