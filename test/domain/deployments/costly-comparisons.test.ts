/** The comparison of two versions follows references once, and ends at a limit of work. */
import { expect, test } from 'vitest'
import { compareWorkflows } from '../../../src/domain/deployments/compare-workflows.ts'
import type { JsonSchema } from '../../../src/domain/workflows/workflow.ts'

/** Each of 24 definitions refers to the next one twice. */
function doubling(leaf: JsonSchema, refer: (next: JsonSchema) => JsonSchema, within = (schema: JsonSchema) => schema) {
  const $defs: Record<string, JsonSchema> = { d24: leaf }
  for (let at = 0; at < 24; at++) $defs[`d${at}`] = refer({ $ref: `#/$defs/d${at + 1}` })
  return { type: 'object', $defs, properties: { value: within({ $ref: '#/$defs/d0' }) } }
}

function compare(before: JsonSchema, after: JsonSchema): string[] {
  const [was, is] = [before, after].map((variables, index) => ({ id: 'w', version: `${index}`, variables, output: {} }))
  return compareWorkflows(was as never, is as never).map(({ kind, text, reason }) => `${kind}: ${text} ${reason}`)
}

const members = (next: JsonSchema) => ({ type: 'object', properties: { left: next, right: next } })
const alternatives = (next: JsonSchema) => ({ anyOf: [next, next] })
const negated = (schema: JsonSchema) => ({ not: schema })

test('a change behind references that double at each level is noted once', () => {
  expect(compare(doubling({ type: 'string' }, members), doubling({ type: 'number' }, members))).toEqual([
    'breaking: `d24` must be `number` instead of `string`. Requests that were accepted are now rejected.',
  ])
  const [before, after] = [{ type: 'string' }, { type: 'number' }].map((leaf) => doubling(leaf, members, negated))
  expect(compare(before as JsonSchema, after as JsonSchema)).toEqual([
    'breaking: `variables.value` has a different `not`. Requests that were accepted are now rejected.',
  ])
})

test('descriptions behind such references are no other constraint', () => {
  const described = { type: 'string', description: 'text' }
  expect(compare(doubling({ type: 'string' }, members, negated), doubling(described, members, negated))).toEqual([])
})

test('alternatives of alternatives that are too many to compare count as breaking', () => {
  const [before, after] = [{ type: 'string' }, { type: 'number' }].map((leaf) => doubling(leaf, alternatives))
  expect(compare(before as JsonSchema, after as JsonSchema)).toEqual([
    'breaking: `variables` is too complex to be compared. It may have changed for callers.',
  ])
  expect(compare(before as JsonSchema, structuredClone(before) as JsonSchema)).toEqual([])
})

test('a recursive schema is compared', () => {
  const tree = (type: string) => {
    const children = { type: 'array', items: { $ref: '#/$defs/tree' } }
    const $defs = { tree: { type: 'object', properties: { value: { type }, children } } }
    return { type: 'object', $defs, properties: { tree: { $ref: '#/$defs/tree' }, other: { $ref: '#/$defs/tree' } } }
  }
  expect(compare(tree('string'), tree('number'))).toEqual([
    'breaking: `tree.value` must be `number` instead of `string`. Requests that were accepted are now rejected.',
  ])
})
