import { describe, expect, test } from 'vitest'
import { JsonText, jsonDepthMax, parseJson, stringify } from '../../src/contract/i-json.ts'
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

  test.each([
    ['the largest integer of I-JSON', 9007199254740991n],
    ['a larger integer that a double holds', 9007199254740992n],
    ['a negative one', -1152921504606846976n],
  ])('%s', (_what, integer) => {
    expect(BigInt((parse(`{"id":${integer}}`) as { id: number }).id)).toBe(integer)
  })

  test('numbers with a fraction or an exponent are rounded, and digits in strings are text', () => {
    const text = '[0.12345678901234567890,6.02214076e23,1.2345678901234567890e-3,9007199254740993.5]'
    expect(parse(text)).toEqual(JSON.parse(text))
    expect(parse('{"9007199254740993":"9007199254740993"}')).toEqual({ '9007199254740993': '9007199254740993' })
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
  const inexact = 'is an integer that a double cannot hold: send it as a string'
  test.each([
    ['a byte that is not UTF-8', Buffer.from([0x22, 0xff, 0x22]), '', 'must be UTF-8'],
    ['white space alone', ' ', '', 'is not JSON'],
    ['a number beyond a double', '{"a":[1,-1e400]}', '/a/1', 'must be within the range of a double'],
    ['an integer that a double cannot hold', '{"orderId":9007199254740993}', '/orderId', inexact],
    ['a negative one, after one that is exact', '{"b":9007199254740992,"2":[0,-9007199254740993]}', '/2/1', inexact],
    [
      'one among strings and objects',
      '{"a":["x,[{\\"",{"~/ü\\u00e9":{"k":",",\n"n" : 9007199254740993}}]}',
      '/a/1/~0~1üé/n',
      inexact,
    ],
    ['one that is the whole body', ' 123456789012345678901234567890 ', '', inexact],
    ['one of many digits', `[${'7'.repeat(300)}]`, '/0', inexact],
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

test('a response never contains the text of another one that could not be formatted', () => {
  const failed = { text: new JsonText('"of another account"'), size: 1n }
  expect(() => stringify(failed)).toThrow(TypeError)
  expect(stringify({ status: 500 })).toBe('{"status":500}')
  expect(stringify({ text: new JsonText('"own"') })).toBe('{"text":"own"}')
})
