/** From a workflow's JSON Schema to the fields of a form, and from what a form says to the variables of a run. */
import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { queueCommand } from '../../src/dashboard/workflows/curl.ts'
import {
  defaultEntries,
  entriesOf,
  readEntries,
  tellMisfits,
  variablesOf,
  withoutSecretEntries,
} from '../../src/dashboard/workflows/entries.ts'
import { draftOf, exampleOf } from '../../src/dashboard/workflows/example.ts'
import { fieldsOf, hasFieldForAll, inputName } from '../../src/dashboard/workflows/fields.ts'
import { putInAgain, readJson, secretPlaces, withoutSecrets } from '../../src/dashboard/workflows/json-text.ts'
import { mask } from '../../src/workflows/secrets.ts'

type Json = Record<string, unknown>

function object(properties: Json, more: Json = {}): Json {
  return { type: 'object', properties, ...more }
}

/** The kind of the only member's field. */
function kindOf(schema: unknown, more: Json = {}) {
  return fieldsOf(object({ it: schema }, more))[0]?.kind
}

/** The form that a browser sends when these stand in the fields. */
function formOf(texts: Record<string, string>): URLSearchParams {
  return new URLSearchParams(Object.entries(texts).map(([name, text]) => [inputName(name), text]))
}

function read(schema: Json, texts: Record<string, string>) {
  const fields = fieldsOf(schema)
  const entries = readEntries(fields, formOf(texts))
  const errors = [...entries].flatMap(([name, { error }]) => (error === undefined ? [] : [[name, error]]))
  return { variables: variablesOf(fields, entries, {}), errors: Object.fromEntries(errors) }
}

/** What the variables come to when they stand in the form and it is sent as it is. */
function sentUnchanged(schema: Json, variables: Json): Json | undefined {
  const fields = fieldsOf(schema)
  const entries = entriesOf(fields, variables)
  if (!entries) return undefined
  // Browsers send a ticked checkbox as `on`, others not at all, and every line break as CR LF.
  const sent = [...entries].filter(([, { text }]) => text !== '').map(([name, { text }]) => [name, text])
  const texts = Object.fromEntries(sent.map(([name, text]) => [name, text?.replaceAll('\n', '\r\n') ?? '']))
  return variablesOf(fields, readEntries(fields, formOf(texts)), {})
}

describe('a member gets the field that fits its schema', () => {
  test.each([
    [{ type: 'string' }, { type: 'text', input: 'text', isLong: false }],
    [
      { type: 'string', maxLength: 5000 },
      { type: 'text', input: 'text', isLong: true },
    ],
    [
      { type: 'string', format: 'email' },
      { type: 'text', input: 'email', isLong: false },
    ],
    [
      { type: 'string', format: 'uri', maxLength: 2000 },
      { type: 'text', input: 'url', isLong: false },
    ],
    [
      { type: 'string', format: 'date' },
      { type: 'text', input: 'date', isLong: false },
    ],
    [
      { type: 'string', format: 'toString' },
      { type: 'text', input: 'text', isLong: false },
    ],
    [{ type: 'string', format: 'date-time' }, { type: 'moment' }],
    [
      { type: 'number', minimum: 0.5, maximum: 2 },
      { type: 'number', isWhole: false, min: 0.5, max: 2 },
    ],
    [{ type: 'integer' }, { type: 'number', isWhole: true, step: 1 }],
    [
      { type: 'integer', minimum: 0.5, exclusiveMaximum: 10 },
      { type: 'number', isWhole: true, min: 1, max: 9, step: 1 },
    ],
    [
      { type: 'integer', minimum: 1, multipleOf: 5 },
      { type: 'number', isWhole: true, min: 5, step: 5 },
    ],
    [{ type: 'boolean', default: true }, { type: 'checkbox' }],
    [{ type: 'boolean' }, { type: 'choice', values: [true, false] }],
    [{ enum: ['a', 1, null] }, { type: 'choice', values: ['a', 1, null] }],
    [{ const: { a: 1 } }, { type: 'choice', values: [{ a: 1 }] }],
    [{ anyOf: [{ const: 'a' }, { const: 'b' }] }, { type: 'choice', values: ['a', 'b'] }],
    [{ type: 'null' }, { type: 'choice', values: [null] }],
    [{ type: 'array', items: { type: 'string' } }, { type: 'lines' }],
    [{ type: 'array', items: { type: 'integer' } }, { type: 'json' }],
    [{ type: 'array', prefixItems: [{}], items: { type: 'string' } }, { type: 'json' }],
    [{ type: 'object' }, { type: 'json' }],
    [{ type: ['string', 'integer'] }, { type: 'json' }],
    [{ type: ['string', 'null'] }, { type: 'text', input: 'text', isLong: false }],
    [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, { type: 'json' }],
    [{ $ref: '#/$defs/nothing' }, { type: 'json' }],
    [{}, { type: 'json' }],
    [true, { type: 'json' }],
    ['nonsense', { type: 'json' }],
    [
      { type: 'string', enum: [], const: undefined },
      { type: 'choice', values: [undefined] },
    ],
  ])('%j', (schema, kind) => {
    expect(kindOf(schema)).toEqual(kind)
  })

  test('a boolean that is required is a checkbox, which is always sent', () => {
    expect(kindOf({ type: 'boolean' }, { required: ['it'] })).toEqual({ type: 'checkbox' })
    const schema = object({ it: { type: 'boolean' } }, { required: ['it'] })
    expect(read(schema, {}).variables).toEqual({ it: false })
    expect(read(schema, { it: 'on' }).variables).toEqual({ it: true })
  })

  test('what a reference within the schema leads to counts, and one that leads to itself ends', () => {
    const $defs = { secret: { type: 'string', writeOnly: true }, loop: { $ref: '#/$defs/loop' }, 'a/b~c': { const: 1 } }
    const schema = object(
      { token: { $ref: '#/$defs/secret' }, loop: { $ref: '#/$defs/loop' }, one: { $ref: '#/$defs/a~1b~0c' } },
      { $defs },
    )
    const [token, loop, one] = fieldsOf(schema)
    expect(token).toMatchObject({ isSecret: true, kind: { type: 'text' } })
    expect(loop).toMatchObject({ kind: { type: 'json' } })
    expect(one).toMatchObject({ kind: { type: 'choice', values: [1] } })
  })

  test('a member that is required and not described gets a field all the same', () => {
    expect(fieldsOf({ type: 'object', required: ['it'] })).toMatchObject([{ name: 'it', kind: { type: 'json' } }])
  })

  test('a schema without members has no fields; only one that permits none needs none', () => {
    expect(fieldsOf({ type: 'object' })).toEqual([])
    expect(hasFieldForAll({ type: 'object' })).toBe(false)
    expect(hasFieldForAll({ type: 'object', additionalProperties: false })).toBe(true)
    expect(hasFieldForAll({ type: 'object', properties: 'nonsense', required: 'nonsense' })).toBe(false)
  })
})

describe('variables that stand in the form come back as they were', () => {
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

  test('a moment in another zone stays the same moment', () => {
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
    ['a moment more exact than a form can say', { ...full, at: '2026-01-31T12:00:00.1234Z' }],
    ['a moment that is none', { ...full, at: 'tomorrow' }],
  ])('unless the form cannot say it: %s', (_, variables) => {
    expect(entriesOf(fieldsOf(schema), variables)).toBeUndefined()
  })

  test('names may be anything, and none of them reaches a prototype', () => {
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
  test('leaves out members in which nothing is put in, so that the workflow says which it misses', () => {
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

  test('says beside the field what cannot be understood, without quoting it', () => {
    const schema = object({ number: { type: 'number' }, whole: { type: 'integer' }, pick: { enum: ['a'] }, json: {} })
    const { errors } = read(schema, { number: 'many', whole: '1.5', pick: 'a', json: '{"secret": hunter2}' })
    expect(errors).toEqual({
      number: 'Put in a number.',
      whole: 'Put in a whole number.',
      pick: 'Choose one of the values.',
      json: expect.stringMatching(/^This is not JSON/),
    })
    expect(JSON.stringify(errors)).not.toContain('hunter2')
    for (const json of ['{"a": 1, "a": 2}', '{"__proto__": {}}', '"\\u0000"', '1e999', '['.repeat(100)]) {
      expect(Object.keys(read(schema, { json }).errors)).toEqual(['json'])
    }
  })

  test('starts with the defaults that its fields can hold', () => {
    const schema = object({
      text: { type: 'string', default: 'a\nb' },
      wrong: { type: 'string', default: { a: 1 } },
      deep: { type: 'object', default: { a: { b: [1] } } },
      no: { type: 'boolean', default: false },
      yes: { type: 'boolean', default: true },
      secret: { type: 'string', writeOnly: true, default: 'hunter2' },
      list: { type: 'array', items: { type: 'string' }, default: ['a', 'b'] },
    })
    const texts = [...defaultEntries(fieldsOf(schema))].map(([name, { text }]) => [name, text])
    expect(Object.fromEntries(texts)).toEqual({
      text: 'a\nb',
      wrong: '',
      deep: '{\n  "a": {\n    "b": [\n      1\n    ]\n  }\n}',
      no: '',
      yes: 'on',
      secret: '',
      list: 'a\nb',
    })
  })

  test('uses a kept value where nothing is put in, and what is put in otherwise', () => {
    const fields = fieldsOf(object({ token: { type: 'string', writeOnly: true } }, { required: ['token'] }))
    const sent = (text: string) => variablesOf(fields, readEntries(fields, formOf({ token: text })), { token: mask })
    expect(sent('')).toEqual({ token: mask })
    expect(sent('new')).toEqual({ token: 'new' })
  })

  test('tells each misfit beside its field, and returns those that are about none', () => {
    const fields = fieldsOf(object({ 'a/b~c': { type: 'string' }, deep: { type: 'object' } }))
    const entries = readEntries(fields, formOf({}))
    const others = tellMisfits(entries, [
      { pointer: '/a~1b~0c', detail: 'is required' },
      { pointer: '/deep/city/0', detail: 'must be string' },
      { pointer: '/deep', detail: 'must be small' },
      { pointer: '', detail: 'must have a member' },
      { pointer: '/other', detail: 'is not a member that the schema names' },
    ])
    expect(entries.get('a/b~c')?.error).toBe('Is required.')
    expect(entries.get('deep')?.error).toBe('/deep/city/0 must be string. Must be small.')
    expect(others.map(({ pointer }) => pointer)).toEqual(['', '/other'])
  })
})

describe('a secret that was put in is not shown again', () => {
  const schema = object({
    token: { type: 'string', writeOnly: true },
    tokens: { type: 'array', items: { type: 'string', writeOnly: true } },
    login: { type: 'object', properties: { user: { type: 'string' }, password: { type: 'string', writeOnly: true } } },
    note: { type: 'string' },
  })
  const places = secretPlaces(schema)

  test('neither in its own field nor in JSON', () => {
    const fields = fieldsOf(schema)
    const login = '{"user": "ada", "password": "hunter2"}'
    const entries = readEntries(fields, formOf({ token: 'hunter2', tokens: 'hunter2\r\nhunter3', login, note: 'kept' }))
    const shown = withoutSecretEntries(fields, entries, places)
    expect(JSON.stringify([...shown])).not.toContain('hunter')
    expect(shown.get('note')).toEqual({ text: 'kept' })
    expect(shown.get('token')).toMatchObject({ text: '', isHidden: true })
    expect(JSON.parse(shown.get('login')?.text ?? '')).toEqual({ user: 'ada', password: putInAgain })
  })

  test('nor in text that is no JSON', () => {
    const texts = [
      '{"token": "hunter2", "note": "kept"',
      '{"note": "kept", "token" : "hunter2\\"hunter3',
      '{"note": "kept", token: hunter2}',
      '{"note": "kept", "tokens": ["hunter2", "hunter3"',
      '{"note": "kept", "login": {"password":"hunter2"}',
      '{"note": "kept", "token" "hunter2"}',
      '{"note": "kept", "token": "hunter1", "token": "hunter2"}',
    ]
    for (const text of texts) {
      const shown = withoutSecrets(text, places)
      expect(shown).not.toContain('hunter')
      expect(shown).toContain('kept')
      expect(readJson(shown ?? '')).toMatchObject({ misfits: [{ detail: expect.stringContaining(putInAgain) }] })
    }
  })

  test('the mask of an earlier secret stays, for it is none', () => {
    const text = JSON.stringify({ token: mask, tokens: [mask, mask] })
    expect(JSON.parse(withoutSecrets(text, places) ?? '')).toEqual({ token: mask, tokens: [mask, mask] })
  })

  test('nothing of the text is shown where a schema does not tell the names of its secrets', () => {
    const unnamed = [
      { type: 'object', additionalProperties: { type: 'string', writeOnly: true } },
      object({ it: { $ref: '#/$defs/secret' } }, { $defs: { secret: { writeOnly: true } } }),
    ]
    for (const schema of unnamed) expect(withoutSecrets('{"it": "hunter2"}', secretPlaces(schema))).toBeUndefined()
  })

  test('all of the text is shown where there is no secret', () => {
    expect(withoutSecrets('{"token": ', secretPlaces(object({ token: {} })))).toBe('{"token": ')
  })
})

describe('an example of the variables', () => {
  const schema = object(
    {
      path: { type: 'string' },
      url: { type: 'string', format: 'uri' },
      top: { type: 'integer', default: 5 },
      tag: { type: 'string', examples: ['nightly'] },
      token: { type: 'string', writeOnly: true, default: 'hunter2' },
      optional: { type: 'string' },
      address: { type: 'object', required: ['city'], properties: { city: { type: 'string' }, zip: {} } },
      kind: { anyOf: [{ const: 'a' }, { const: 'b' }] },
      loop: { $ref: '#' },
    },
    { required: ['path', 'url', 'token', 'address', 'kind', 'other'] },
  )

  test('has what is required, and defaults and examples, but no secret', () => {
    expect(exampleOf(schema)).toEqual({
      path: '<path>',
      url: 'https://example.com/',
      top: 5,
      tag: 'nightly',
      token: '<token>',
      address: { city: '<city>' },
      kind: 'a',
      other: '<other>',
    })
    expect(draftOf(schema)).toMatchObject({ path: '', token: '', top: 5 })
  })

  test('ends for a schema that contains itself', () => {
    const endless = object({ next: { $ref: '#' } }, { required: ['next'] })
    expect(JSON.stringify(exampleOf(endless))).toMatch(/^\{"next":\{"next":/)
  })

  test('is in the command as a shell hands it on, whatever it holds', () => {
    const variables = { text: `it's "quoted" $HOME \`id\` \\ and\nnew <line>` }
    const command = queueCommand('http://127.0.0.1:1', 'count-words', variables)
    const asList = command.replace('curl ', 'printf "%s\\0" ')
    const words = execFileSync('/bin/sh', ['-c', asList], { encoding: 'utf8' }).split('\0').slice(0, -1)
    expect(words.slice(0, 3)).toEqual(['-X', 'PUT', 'http://127.0.0.1:1/v1/execution/queue-remote/count-words'])
    expect(JSON.parse(words.at(-1) ?? '')).toEqual({ variableData: variables })
  })
})
