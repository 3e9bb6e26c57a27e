import { describe, expect, test } from 'vitest'
import { jsonDepthMax, parseJson } from '../../src/contract/body.ts'
import { Problem } from '../../src/contract/problem.ts'

const parse = (text: string) => parseJson(Buffer.from(text))

/** The parsed value, or the validation error. */
function outcome(bytes: string | Buffer): unknown {
  try {
    return { value: parseJson(Buffer.from(bytes as string)) }
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    return error.problem.errors?.[0]
  }
}

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

describe('accepted JSON', () => {
  test('an empty body and a lone byte order mark are no value', () => {
    expect(parse('')).toBeUndefined()
    expect(parse('\uFEFF')).toBeUndefined()
  })

  test('a byte order mark before JSON is ignored', () => {
    expect(parse('\uFEFF{"a":1}')).toEqual({ a: 1 })
  })

  test('null is a value', () => {
    expect(parse('null')).toBeNull()
  })

  test('names and strings may have any well-formed character', () => {
    const value = { 'a/b~c': '👩‍🚀 "\\" : {', '': [':', '\\":'] }
    expect(parse(JSON.stringify(value))).toEqual(value)
  })

  test('constructor is an ordinary name unless it contains a prototype', () => {
    expect(parse('{"constructor":{"a":1}}')).toEqual({ constructor: { a: 1 } })
    expect(parse('{"constructor":"prototype"}')).toEqual({ constructor: 'prototype' })
  })

  test(`${jsonDepthMax} levels`, () => {
    expect(outcome(nested(jsonDepthMax))).toHaveProperty('value')
  })
})

describe('refused JSON', () => {
  test.each([
    ['a byte that is not UTF-8', Buffer.from([0x22, 0xff, 0x22]), '', 'must be UTF-8'],
    ['white space alone', ' ', '', 'is not JSON'],
    ['a number beyond a double', '{"a":[1,-1e400]}', '/a/1', 'must be within the range of a double'],
    ['NUL in a string', '{"a":{"b":"x\\u0000"}}', '/a/b', 'must not contain U+0000'],
    ['NUL in a name', '{"a\\u0000":1}', '/a\0', 'is a name that must not contain U+0000'],
    ['a lone surrogate in a string', '["\\ud800"]', '/0', 'must not contain a lone surrogate'],
    ['a lone surrogate in a name', '{"\\udc00x":1}', '/\udc00x', 'is a name that must not contain a lone surrogate'],
    ['a member __proto__', '{"a":{"__proto__":{}}}', '/a/__proto__', 'is not allowed'],
    ['__proto__ in escapes', '{"\\u005f_proto__":1}', '/__proto__', 'is not allowed'],
    ['constructor.prototype', '{"constructor":{"prototype":{}}}', '/constructor', 'must not have a member prototype'],
    ['a duplicate member', '{"a":1,"b":{"c":1,"c":2}}', '', 'must not have two members of the same name'],
    ['a name that a JSON Pointer escapes', '{"a/b":{"~":1e999}}', '/a~1b/~0', 'must be within the range of a double'],
  ])('%s', (_what, text, pointer, detail) => {
    expect(outcome(text)).toEqual({ pointer, detail })
  })

  test('more than the maximum depth', () => {
    const detail = `must not be nested more than ${jsonDepthMax} levels deep`
    expect(outcome(nested(jsonDepthMax + 1))).toEqual({ pointer: '/0'.repeat(jsonDepthMax), detail })
    expect(outcome(nested(50_000))).toMatchObject({ detail })
    expect(outcome(`${'{"a":'.repeat(65)}1${'}'.repeat(65)}`)).toEqual({ pointer: '/a'.repeat(64), detail })
  })

  test('a syntax error has the position that V8 reports', () => {
    expect(outcome('{"a":1,}')).toEqual({ pointer: '', detail: 'is not JSON: error at position 7 (line 1 column 8)' })
  })

  test.each(['{"secret":hush}', 'hush at position 1 (line 1 column 2)', '"hush', '{"a":"hush"} hush'])(
    'the error does not quote the body: %s',
    (text) => {
      expect(JSON.stringify(outcome(text))).toContain('is not JSON')
      expect(JSON.stringify(outcome(text))).not.toContain('hush')
    },
  )
})
