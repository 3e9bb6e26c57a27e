/** Stacks show the author's source only. */
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { authorFrames } from '../../src/worker/executors/error-stack.ts'
import { describeError } from '../../src/worker/executors/workflow-values.ts'

const root = '/srv/workflows'
const service = fileURLToPath(new URL('../../src/worker/executors/executor.ts', import.meta.url))

function errorWith(frames: string[], message = 'No.'): Error {
  const error = new Error(message)
  error.stack = [`Error: ${message}`, ...frames.map((frame) => `    ${frame}`)].join('\n')
  return error
}

test.for([
  ['at run (file:///srv/workflows/greet.ts:12:3)', 'at run (greet.ts:12:3)'],
  ['at async Object.run (/srv/workflows/lib/fetch.ts:1:20)', 'at async run (lib/fetch.ts:1:20)'],
  ['at file:///srv/workflows/a%20b.ts:7:1', 'at a b.ts:7:1'],
  ['at async file:///srv/workflows/greet.ts?version=2:7:1', 'at async greet.ts:7:1'],
  ['at new Page (/srv/shared/page.ts:4:5)', 'at new Page (../shared/page.ts:4:5)'],
])('%s is shown as %s', ([frame = '', shown]) => {
  expect(authorFrames(errorWith([frame]), root)).toEqual([shown])
})

test.for([
  `at RunningAttempt.step (file://${service}:99:1)`,
  'at process.processTicksAndRejections (node:internal/process/task_queues:105:5)',
  'at async fetch (file:///srv/workflows/node_modules/undici/index.js:1:2)',
  'at Array.map (<anonymous>)',
  'at file://%/greet.ts:1:2',
])('%s is not shown', (frame) => {
  expect(authorFrames(errorWith([frame]), root)).toEqual([])
})

test('a message that looks like a frame is not taken for one', () => {
  const error = errorWith(['at run (/srv/workflows/a.ts:1:2)'], 'No.\n    at secret (/etc/passwd:1:1)')
  expect(authorFrames(error, root)).toEqual(['at run (a.ts:1:2)'])
})

test('causes follow, once each, also values that are no errors', () => {
  const [error, cause] = [errorWith(['at run (/srv/workflows/a.ts:1:2)']), errorWith([], 'inner')]
  error.cause = cause
  cause.cause = error
  expect(describeError(error, root).stack).toBe('at run (a.ts:1:2)\nCaused by Error: inner')
  error.cause = { code: 7 }
  expect(describeError(error, root).stack).toBe('at run (a.ts:1:2)\nCaused by { code: 7 }')
})

test('an error whose members throw or have other types is described', () => {
  const hostile = Object.defineProperty(errorWith([]), 'cause', {
    get() {
      throw new Error('no cause')
    },
  })
  expect(describeError(hostile, root)).toEqual({ name: 'Error', message: 'No.', stack: null })
  const noText = Object.assign(new Error('No.'), { stack: 7, message: 8 })
  expect(describeError(noText, root)).toEqual({ name: 'Error', message: '8', stack: null })
})
