/** Hiding submitted secrets in a form that is shown again, and example variables. */
import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { draftVariables, exampleVariables } from '../../src/domain/workflows/example-values.ts'
import { mask } from '../../src/domain/workflows/secrets.ts'
import { queueCommand } from '../../src/surfaces/dashboard/workflows/curl-commands.ts'
import { hideSecretValues, readFormValues } from '../../src/surfaces/dashboard/workflows/form-values.ts'
import {
  findSecretPlaces,
  hiddenSecret,
  hideSecrets,
  parseVariables,
} from '../../src/surfaces/dashboard/workflows/json-input.ts'
import { inputName, variableFields } from '../../src/surfaces/dashboard/workflows/variable-fields.ts'

type Json = Record<string, unknown>

function object(properties: Json, more: Json = {}): Json {
  return { type: 'object', properties, ...more }
}

describe('hiding submitted secrets', () => {
  const schema = object({
    token: { type: 'string', writeOnly: true },
    tokens: { type: 'array', items: { type: 'string', writeOnly: true } },
    login: { type: 'object', properties: { user: { type: 'string' }, password: { type: 'string', writeOnly: true } } },
    note: { type: 'string' },
  })
  const places = findSecretPlaces(schema)

  test('covers their fields and JSON', () => {
    const fields = variableFields(schema)
    const login = '{"user": "ada", "password": "hunter2"}'
    const texts = { token: 'hunter2', tokens: 'hunter2\r\nhunter3', login, note: 'kept' }
    const form = new URLSearchParams(Object.entries(texts).map(([name, text]) => [inputName(name), text]))
    const entries = readFormValues(fields, form)
    const hidden = hideSecretValues(fields, entries, places)
    expect(JSON.stringify([...hidden])).not.toContain('hunter')
    expect(hidden.get('note')).toEqual({ text: 'kept' })
    expect(hidden.get('token')).toMatchObject({ text: '', isHidden: true })
    expect(JSON.parse(hidden.get('login')?.text ?? '')).toEqual({ user: 'ada', password: hiddenSecret })
  })

  test('covers invalid JSON', () => {
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
      const hidden = hideSecrets(text, places)
      expect(hidden).not.toContain('hunter')
      expect(hidden).toContain('kept')
      expect(parseVariables(hidden ?? '')).toMatchObject({
        errors: [{ detail: expect.stringContaining(hiddenSecret) }],
      })
    }
  })

  test('is not slow for any invalid JSON', () => {
    // With quadratic run time, this would take hours.
    const text = `{"token"${' '.repeat(1_000_000)},`
    expect(hideSecrets(text, places)).toBe(text)
  })

  test('keeps the mask of an earlier secret', () => {
    const text = JSON.stringify({ token: mask, tokens: [mask, mask] })
    expect(JSON.parse(hideSecrets(text, places) ?? '')).toEqual({ token: mask, tokens: [mask, mask] })
  })

  test('hides the whole text when the schema does not name its secrets', () => {
    const unnamed = [
      { type: 'object', additionalProperties: { type: 'string', writeOnly: true } },
      object({ it: { $ref: '#/$defs/secret' } }, { $defs: { secret: { writeOnly: true } } }),
    ]
    for (const schema of unnamed) expect(hideSecrets('{"it": "hunter2"}', findSecretPlaces(schema))).toBeUndefined()
  })

  test('keeps the text when the schema has no secrets', () => {
    expect(hideSecrets('{"token": ', findSecretPlaces(object({ token: {} })))).toBe('{"token": ')
  })
})

describe('example variables', () => {
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

  test('contain required members, defaults and examples, but no secrets', () => {
    expect(exampleVariables(schema)).toEqual({
      path: '<path>',
      url: 'https://example.com/',
      top: 5,
      tag: 'nightly',
      token: '<token>',
      address: { city: '<city>' },
      kind: 'a',
      other: '<other>',
    })
    expect(draftVariables(schema)).toMatchObject({ path: '', token: '', top: 5 })
  })

  test('end for a recursive schema', () => {
    const endless = object({ next: { $ref: '#' } }, { required: ['next'] })
    expect(JSON.stringify(exampleVariables(endless))).toMatch(/^\{"next":\{"next":/)
  })

  test('are quoted for a shell in the curl command', () => {
    const variables = { text: `it's "quoted" $HOME \`id\` \\ and\nnew <line>` }
    const command = queueCommand('http://127.0.0.1:1', 'count-words', variables)
    const asList = command.replace('curl ', 'printf "%s\\0" ')
    const words = execFileSync('/bin/sh', ['-c', asList], { encoding: 'utf8' }).split('\0').slice(0, -1)
    expect(words.slice(0, 3)).toEqual(['-X', 'PUT', 'http://127.0.0.1:1/v1/execution/queue-remote/count-words'])
    expect(JSON.parse(words.at(-1) ?? '')).toEqual({ variableData: variables })
  })
})
