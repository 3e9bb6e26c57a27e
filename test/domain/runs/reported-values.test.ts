/** The limits of what workflows report, as the contract has them. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { attemptsReadMax } from '../../../src/domain/queue/attempt-history.ts'
import {
  boundEventData,
  logLevels,
  messageLengthMax,
  nameLengthMax,
  stackLengthMax,
  toAttemptError,
  truncate,
} from '../../../src/domain/runs/reported-values.ts'

const { schemas } = JSON.parse(readFileSync('generated/execution.v1/document.json', 'utf8')).components

test('the contract and the service agree on the limits of what workflows report', () => {
  const { RunError, RunProgress, RunLogEvent, RunProgressEvent, RunStepEvent } = schemas
  const messages = [RunError, RunProgress, RunLogEvent, RunProgressEvent].map(({ properties }) => properties.message)
  expect(messages.map(({ maxLength }) => maxLength)).toEqual(Array(4).fill(messageLengthMax))
  const names = [RunError, RunStepEvent].map(({ properties }) => properties.name)
  expect(names.map(({ maxLength }) => maxLength)).toEqual([nameLengthMax, nameLengthMax])
  const { name, message, stack, step } = schemas.AttemptError.properties
  const lengths = [name, message, stack.oneOf[0], step.oneOf[0]].map(({ maxLength }) => maxLength)
  expect(lengths).toEqual([nameLengthMax, messageLengthMax, stackLengthMax, nameLengthMax])
  expect(schemas.Run.properties.attemptHistory.maxItems).toBe(attemptsReadMax)
  expect(RunLogEvent.properties.level.enum).toEqual(logLevels)
})

test('an error is stored within the limits', () => {
  const error = { name: 7, message: null, stack: 'x'.repeat(8193), step: 'y'.repeat(201) }
  const bounded = { name: '7', message: 'null', stack: `${'x'.repeat(8191)}…`, step: `${'y'.repeat(199)}…` }
  expect(toAttemptError(error)).toEqual(bounded)
  expect(toAttemptError({ name: 'Error', message: '', stack: {} })).toMatchObject({ stack: null, step: null })
  expect(boundEventData('status', { attempt: 1, error })).toEqual({ attempt: 1, error: bounded })
})

test('a truncated text has the maximum length and is well-formed', () => {
  expect(truncate('abc', 3)).toBe('abc')
  expect(truncate('abcd', 3)).toBe('ab…')
  expect(truncate('a\u{1f600}cd', 3)).toBe('a\ufffd…')
  expect(truncate('\ud83d', 3)).toBe('\ufffd')
})

test('events are stored within the limits', () => {
  const log = { attempt: 1, level: 'evil', message: 'x'.repeat(8193) }
  expect(boundEventData('log', log)).toEqual({ attempt: 1, level: 'info', message: `${'x'.repeat(8191)}…` })
  const progress = { attempt: 1, percent: null, message: 7 }
  expect(boundEventData('progress', progress)).toEqual({ attempt: 1, percent: 0, message: null })
  expect(boundEventData('step', { name: 'x'.repeat(300), state: 'started' })).toMatchObject({
    name: `${'x'.repeat(199)}…`,
  })
})
