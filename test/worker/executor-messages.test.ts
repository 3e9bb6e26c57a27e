/** Messages of executors, which a workflow can forge. */
import { expect, test } from 'vitest'
import { parseMessage } from '../../src/worker/executors/messages.ts'

const attempt = 1
const messages = [
  { type: 'ready' },
  { type: 'log', attempt, level: 'warn', message: '' },
  { type: 'progress', attempt, percent: 50, message: null },
  { type: 'step', attempt, name: 'a', state: 'reused' },
  { type: 'stepFinished', attempt, name: 'a', value: 'null' },
  { type: 'artifact', attempt, id: 1, name: 'a', mediaType: 'text/plain', content: '' },
  { type: 'browserRequested', attempt },
  { type: 'returned', attempt, output: 'null', reusable: true, state: { tooLarge: 7 } },
  { type: 'crashed', attempt, name: 'Error', message: 'No.', stack: 'at a.ts:1:2' },
  { type: 'threw', attempt, reason: 'outputInvalid', name: 'Error', message: 'No.', stack: 'at a.ts:1:2', step: 'a' },
]

test.each(messages)('$type is a message', (message) => {
  expect(parseMessage(JSON.stringify(message))).toEqual(message)
})

test.each(messages)('$type without one of its members, or with another type of it, is refused', (message) => {
  for (const member of Object.keys(message).filter((name) => name !== 'state')) {
    for (const value of [undefined, null, {}, [], true]) {
      // A progress message, a stack and a step may be null, and `reusable` true.
      if ((message as Record<string, unknown>)[member] === value) continue
      if (value === null && ['stack', 'step'].includes(member)) continue
      expect(() => parseMessage(JSON.stringify({ ...message, [member]: value }))).toThrow()
    }
  }
})

test.each(['', 'null', '7', '"log"', '[]', '{}', '{"type":"toString"}', '{"type":"__proto__"}', '{"type":"log"', '\0'])(
  '%j is refused',
  (line) => {
    expect(() => parseMessage(line)).toThrow()
  },
)

test.each([
  { type: 'log', attempt, level: 'evil', message: '' },
  { type: 'step', attempt, name: 'x'.repeat(201), state: 'started' },
  { type: 'stepFinished', attempt, name: 'a\0', value: 'null' },
  { type: 'stepFinished', attempt, name: 'a', value: `"${'x'.repeat(2 ** 20)}"` },
  { type: 'returned', attempt, output: `"${'x'.repeat(2 ** 20)}"`, reusable: true },
  { type: 'returned', attempt, output: 'null', reusable: true, state: { json: 7 } },
])('a message that exceeds a limit is refused (%#)', (message) => {
  expect(() => parseMessage(JSON.stringify(message))).toThrow()
})
