/** Converting between form fields and variables. */
import { describe, expect, test } from 'vitest'
import { mask } from '../../src/domain/workflows/secrets.ts'
import {
  assignErrors,
  defaultFormValues,
  readFormValues,
  toFormValues,
  toVariables,
} from '../../src/surfaces/dashboard/workflows/form-values.ts'
import { inputName, variableFields } from '../../src/surfaces/dashboard/workflows/variable-fields.ts'

type Json = Record<string, unknown>

function object(properties: Json, more: Json = {}): Json {
  return { type: 'object', properties, ...more }
}

/** The form that a browser submits for these texts. */
function formOf(texts: Record<string, string>): URLSearchParams {
  return new URLSearchParams(Object.entries(texts).map(([name, text]) => [inputName(name), text]))
}

function read(schema: Json, texts: Record<string, string>) {
  const fields = variableFields(schema)
  const entries = readFormValues(fields, formOf(texts))
  const errors = [...entries].flatMap(([name, { error }]) => (error === undefined ? [] : [[name, error]]))
  return { variables: toVariables(fields, entries, {}), errors: Object.fromEntries(errors) }
}

/** Returns the variables after filling the form with them and submitting it unchanged. */
function sentUnchanged(schema: Json, variables: Json): Json | undefined {
  const fields = variableFields(schema)
  const entries = toFormValues(fields, variables)
  if (!entries) return undefined
  // Browsers submit a ticked checkbox as `on`, an unticked one not at all, and line breaks as CR LF.
  const sent = [...entries].filter(([, { text }]) => text !== '').map(([name, { text }]) => [name, text])
  const texts = Object.fromEntries(sent.map(([name, text]) => [name, text?.replaceAll('\n', '\r\n') ?? '']))
  return toVariables(fields, readFormValues(fields, formOf(texts)), {})
}

describe('a form submitted unchanged keeps the variables', () => {
  const schema = object(
    {
      text: { type: 'string' },
      filled: { type: 'string', default: 'x' },
      at: { type: 'string', format: 'date-time' },
      count: { type: 'integer', default: 3 },
      ratio: { type: 'number' },
      sure: { type: 'boolean', default: true },
      maybe: { type: 'boolean' },
      pick: { enum: ['a', 'true', true, null, 0, ''] },
      nothing: { type: ['string', 'null'] },
      tags: { type: 'array', items: { type: 'string' } },
      none: { type: 'array', items: { type: 'string' } },
      deep: { type: 'object', default: { a: [1] } },
    },
    { required: ['text', 'nothing', 'none'] },
  )
  const full = { text: 'a', filled: 'y', count: 0, sure: false, nothing: null, none: [] }

  test.each([
    [full],
    [{ ...full, text: ' two\nlines ', tags: ['a', ' b '], none: ['<b>'] }],
    [{ ...full, at: '2026-01-31T12:00:00Z', ratio: -0.5, maybe: false, pick: 'true' }],
    [{ ...full, maybe: true, pick: true, deep: { 'a.b': { '': [{}] } }, nothing: 'null' }],
    [{ ...full, pick: null, deep: [] }],
    [{ ...full, pick: '', deep: null }],
    [{ ...full, pick: 0, deep: 'text' }],
  ])('%j', (variables) => {
    expect(sentUnchanged(schema, variables)).toEqual(variables)
  })

  test('a time in another zone is converted to UTC', () => {
    const variables = { ...full, at: '2026-01-31T12:30:01.250+02:00' }
    expect(sentUnchanged(schema, variables)).toEqual({ ...full, at: '2026-01-31T10:30:01.250Z' })
  })

  test.each([
    ['a member without a field', { ...full, other: 1 }],
    ['another type', { ...full, text: 5 }],
    ['a number that is not whole', { ...full, count: 1.5 }],
    ['an empty text, which would become the default', { ...full, filled: '' }],
    ['an empty list that is not required', { ...full, tags: [] }],
    ['an empty line in a list', { ...full, tags: ['a', ''] }],
    ['a line break in a list', { ...full, tags: ['a\nb'] }],
    ['a carriage return, which browsers change', { ...full, text: 'a\r\nb' }],
    ['none of the values', { ...full, pick: 'b' }],
    ['a time with microseconds', { ...full, at: '2026-01-31T12:00:00.1234Z' }],
    ['an invalid time', { ...full, at: 'tomorrow' }],
  ])('unless the fields cannot represent them: %s', (_, variables) => {
    expect(toFormValues(variableFields(schema), variables)).toBeUndefined()
  })

  test('any name is allowed, and none reaches a prototype', () => {
    const names = [
      'a.b',
      'a/b~c',
      '"quoted"',
      "it's",
      '<b>',
      '',
      ' ',
      'a\r\nb',
      'ä 🎉',
      'constructor',
      'toString',
      '%41',
    ]
    const schema = object(Object.fromEntries(names.map((name) => [name, { type: 'string' }])))
    const variables = Object.fromEntries(names.map((name) => [name, `value of ${name.trim()}`.replaceAll('\r', '')]))
    expect(sentUnchanged(schema, variables)).toEqual(variables)
    expect(new Set(names.map(inputName)).size).toBe(names.length)
    const forged = JSON.parse('{"type": "object", "properties": {"__proto__": {"type": "string"}}}')
    expect(read(forged, { ['__proto__']: 'x' }).variables).toEqual({})
    expect(Object.keys(Object.prototype)).toEqual([])
  })
})

describe('a form', () => {
  test('submits false for an unticked checkbox', () => {
    const schema = object({ it: { type: 'boolean' } }, { required: ['it'] })
    expect(read(schema, {}).variables).toEqual({ it: false })
    expect(read(schema, { it: 'on' }).variables).toEqual({ it: true })
  })

  test('omits empty fields, so that validation reports missing variables', () => {
    const schema = object(
      {
        a: { type: 'string' },
        b: { type: 'integer' },
        c: { enum: [1] },
        d: {},
        e: { type: 'array', items: { type: 'string' } },
      },
      { required: ['a', 'b'] },
    )
    expect(read(schema, { a: '', b: '', c: '', d: ' ', e: '\r\n \r\n' })).toEqual({ variables: {}, errors: {} })
    expect(read(schema, {})).toEqual({ variables: {}, errors: {} })
  })

  test('reports what cannot be parsed at its field, without quoting it', () => {
    const schema = object({ number: { type: 'number' }, whole: { type: 'integer' }, pick: { enum: ['a'] }, json: {} })
    const { errors } = read(schema, { number: 'many', whole: '1.5', pick: 'a', json: '{"secret": hunter2}' })
    expect(errors).toEqual({
      number: 'Enter a number.',
      whole: 'Enter a whole number.',
      pick: 'Choose one of the listed values.',
      json: expect.stringMatching(/^This is not JSON/),
    })
    expect(read(schema, { whole: ' 9007199254740993' }).errors).toEqual({
      whole: 'This number is too large to keep all its digits.',
    })
    expect(JSON.stringify(errors)).not.toContain('hunter2')
    for (const json of ['{"a": 1, "a": 2}', '{"__proto__": {}}', '"\\u0000"', '1e999', '['.repeat(100)]) {
      expect(Object.keys(read(schema, { json }).errors)).toEqual(['json'])
    }
  })

  test('starts with the defaults that its fields can represent', () => {
    const schema = object({
      text: { type: 'string', default: 'a\nb' },
      invalid: { type: 'string', default: { a: 1 } },
      deep: { type: 'object', default: { a: { b: [1] } } },
      no: { type: 'boolean', default: false },
      yes: { type: 'boolean', default: true },
      secret: { type: 'string', writeOnly: true, default: 'hunter2' },
      list: { type: 'array', items: { type: 'string' }, default: ['a', 'b'] },
    })
    const texts = [...defaultFormValues(variableFields(schema))].map(([name, { text }]) => [name, text])
    expect(Object.fromEntries(texts)).toEqual({
      text: 'a\nb',
      invalid: '',
      deep: '{\n  "a": {\n    "b": [\n      1\n    ]\n  }\n}',
      no: '',
      yes: 'on',
      secret: '',
      list: 'a\nb',
    })
  })

  test('keeps the exact value of a field that was left as it is, also as browsers shorten it', () => {
    const at = '2024-01-01T01:00:00+01:00'
    const fields = variableFields(object({ at: { type: 'string', format: 'date-time' } }))
    const sent = (text: string) => toVariables(fields, readFormValues(fields, formOf({ at: text })), { at })
    expect(sent('2024-01-01T00:00:00')).toEqual({ at })
    expect(sent('2024-01-01T00:00')).toEqual({ at })
    expect(sent('2024-01-01T01:00')).toEqual({ at: '2024-01-01T01:00:00Z' })
  })

  test('uses the kept value for an empty field only', () => {
    const fields = variableFields(object({ token: { type: 'string', writeOnly: true } }, { required: ['token'] }))
    const sent = (text: string) => toVariables(fields, readFormValues(fields, formOf({ token: text })), { token: mask })
    expect(sent('')).toEqual({ token: mask })
    expect(sent('new')).toEqual({ token: 'new' })
  })

  test('assigns validation errors to fields, and returns the others', () => {
    const fields = variableFields(object({ 'a/b~c': { type: 'string' }, deep: { type: 'object' } }))
    const entries = readFormValues(fields, formOf({}))
    const unassigned = assignErrors(entries, [
      { pointer: '/a~1b~0c', detail: 'is required' },
      { pointer: '/deep/city/0', detail: 'must be string' },
      { pointer: '/deep', detail: 'must be small' },
      { pointer: '', detail: 'must have a member' },
      { pointer: '/other', detail: 'is not in the schema' },
    ])
    expect(entries.get('a/b~c')?.error).toBe('Is required.')
    expect(entries.get('deep')?.error).toBe('/deep/city/0 must be string. Must be small.')
    expect(unassigned.map(({ pointer }) => pointer)).toEqual(['', '/other'])
  })
})
