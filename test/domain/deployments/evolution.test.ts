/** What each kind of change of a workflow's schemas means for its callers. */
import { describe, expect, test } from 'vitest'
import { compareWorkflows } from '../../../src/domain/deployments/compare-workflows.ts'
import { nextMajor, raisesMajor } from '../../../src/domain/deployments/evolution.ts'
import type { JsonSchema } from '../../../src/domain/workflows/workflow.ts'
import { kinds, type Schema } from './schema-changes.ts'

/** Wherever a schema can be: the change of the member `v`, of a definition, and of all values. */
const places: Record<string, (schema: Schema) => object> = {
  'a member': (v) => ({ type: 'object', properties: { v } }),
  'a definition': (v) => ({
    type: 'object',
    properties: { list: { type: 'array', items: { $ref: '#/$defs/V' } } },
    $defs: { V: { type: 'object', properties: { v } } },
  }),
}

const text = { type: 'string' }
const number = { type: 'number' }
const closed = (properties: object) => ({ type: 'object', properties, additionalProperties: false })
const two = { a: text, b: number }
const other = { type: 'object' }
const described = (variables: object, output: object) => {
  return { id: 'w', version: '1.0.0', variables: variables as JsonSchema, output: output as JsonSchema }
}

function breaksIn(member: 'variables' | 'output', before: object, after: object): boolean {
  const pair = [before, after].map((each) => (member === 'variables' ? described(each, other) : described(other, each)))
  const sentences = compareWorkflows(...(pair as [ReturnType<typeof described>, ReturnType<typeof described>]))
  const breaking = sentences.filter(({ kind }) => kind === 'breaking')
  for (const { text, reason } of breaking) {
    expect(text).toMatch(/^[A-Z`].*\.$/)
    expect(text).not.toMatch(/undefined|\{operation\}|\{response\}/)
    expect(reason).not.toBe('')
  }
  return breaking.length > 0
}

test('there are at least 130 kinds of change', () => {
  expect(new Set(kinds.map(([title]) => title)).size).toBe(kinds.length)
  expect(kinds.length).toBeGreaterThanOrEqual(130)
})

describe.each(Object.entries(places))('in %s', (_, at) => {
  test.each(kinds)('%s', (_, before, after, breaks) => {
    expect(breaksIn('variables', at(before), at(after))).toBe(breaks === 'both' || breaks === 'variables')
    expect(breaksIn('output', at(before), at(after))).toBe(breaks === 'both' || breaks === 'output')
    expect(breaksIn('variables', at(after), at(after))).toBe(false)
  })
})

test('a change is described with its place and its effect', () => {
  const before = described({ type: 'object', properties: { path: text }, additionalProperties: false }, closed(two))
  const after = described(
    { type: 'object', required: ['lang'], properties: { path: text, lang: text }, additionalProperties: false },
    closed({ a: text }),
  )
  const sentences = compareWorkflows(before, after).filter(({ kind }) => kind === 'breaking')
  expect(sentences.map((each) => [each.text, each.reason])).toEqual([
    ['`variables` requires the new member `lang`.', 'Requests that were accepted are now rejected.'],
    ['`output` no longer has the member `b`.', 'Clients that read it find nothing.'],
  ])
})

test('recursive schemas and references that cannot be resolved are compared, too', () => {
  const tree = (leaf: object) => ({
    type: 'object',
    properties: { root: { $ref: '#/$defs/Node' } },
    $defs: {
      Node: { type: 'object', properties: { leaf, children: { type: 'array', items: { $ref: '#/$defs/Node' } } } },
    },
  })
  expect(breaksIn('variables', tree(text), tree(text))).toBe(false)
  expect(breaksIn('variables', tree(text), tree(number))).toBe(true)
  const byAnchor = (type: string) => ({
    type: 'object',
    properties: { v: { $ref: '#value' } },
    $defs: { V: { $anchor: 'value', type } },
  })
  expect(breaksIn('variables', byAnchor('string'), byAnchor('string'))).toBe(false)
  expect(breaksIn('variables', byAnchor('string'), byAnchor('number'))).toBe(true)
})

test('the major version is the first number of a version', () => {
  expect(raisesMajor('1.9.0', '2.0.0')).toBe(true)
  expect(raisesMajor('v1', 'v2')).toBe(true)
  expect(raisesMajor('1.2.0', '1.3.0')).toBe(false)
  expect(raisesMajor('2.0.0', '1.0.0')).toBe(false)
  expect(raisesMajor('draft', 'final')).toBe(false)
  expect([nextMajor('1.9.3'), nextMajor('v4'), nextMajor('draft')]).toEqual(['2.0.0', '5.0.0', '1.0.0'])
})

test('an answer that a wait no longer accepts, and a wait that was removed, break callers', () => {
  const wait = (schema: object) => ({ schema: schema as JsonSchema, title: null, description: null })
  const withWaits = (waits: Record<string, object>) => ({
    ...described(other, other),
    waits: Object.fromEntries(Object.entries(waits).map(([name, schema]) => [name, wait(schema)])),
  })
  const breaks = (before: Record<string, object>, after: Record<string, object>) =>
    compareWorkflows(withWaits(before), withWaits(after))
      .filter(({ kind }) => kind === 'breaking')
      .map(({ text, reason }) => `${text} ${reason}`)
  expect(breaks({}, { approval: text })).toEqual([])
  expect(breaks({ approval: closed({ a: text }) }, { approval: closed(two) })).toEqual([])
  expect(breaks({ approval: closed(two) }, { approval: { ...closed(two), required: ['a'] } })).toEqual([
    '`waits.approval` now requires `a`. Requests that were accepted are now rejected.',
  ])
  expect(breaks({ approval: text }, {})).toEqual([
    '`waits.approval` was removed. New runs refuse the answer, while those of earlier versions accept it.',
  ])
})
