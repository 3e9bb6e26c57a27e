/** Secret members: taken out, put back, and masked in whatever a workflow says. */
import { expect, test } from 'vitest'
import {
  createRedactor,
  extractSecrets,
  findMasked,
  insertSecrets,
  isShownAt,
  mask,
  restoreSecrets,
} from '../../src/domain/workflows/secrets.ts'

test.each([
  ['a member', { a: 's', b: 1 }, ['/a'], { a: mask, b: 1 }],
  ['a nested member', { a: { b: { c: 's', d: 2 } } }, ['/a/b/c'], { a: { b: { c: mask, d: 2 } } }],
  ['members of arrays', { a: [{ b: 's' }, { b: 't' }] }, ['/a/0/b', '/a/1/b'], { a: [{ b: mask }, { b: mask }] }],
  ['an element of an array', { a: ['x', 's'] }, ['/a/1'], { a: ['x', mask] }],
  [
    'names that a pointer escapes',
    { 'a/b': { '~c': 's', 'd~1': 't' } },
    ['/a~1b/~0c', '/a~1b/d~01'],
    { 'a/b': { '~c': mask, 'd~1': mask } },
  ],
  ['the empty name', { '': 's' }, ['/'], { '': mask }],
  ['an object whole', { a: { user: 'u', password: 's' } }, ['/a'], { a: mask }],
  ['an object and what is in it', { a: { b: 's' } }, ['/a', '/a/b'], { a: mask }],
  ['what is in it before the object itself', { a: { b: 's' } }, ['/a/b', '/a'], { a: mask }],
  ['numbers, booleans and null', { a: 1, b: false, c: null }, ['/a', '/b', '/c'], { a: mask, b: mask, c: mask }],
  ['a pointer that is found twice', { a: 's' }, ['/a', '/a'], { a: mask }],
  ['a value that looks like the mask', { a: mask }, ['/a'], { a: mask }],
])('%s: masked, and put back as it was', (_, value, pointers, expected) => {
  const before = structuredClone(value)
  const { masked, secrets } = extractSecrets(value, pointers)
  expect(masked).toEqual(expected)
  expect(value).toEqual(before)
  expect(insertSecrets(masked, JSON.parse(JSON.stringify(secrets)))).toEqual(before)
  expect(masked).toEqual(expected)
})

test('a pointer to what is not there changes nothing', () => {
  const value = { a: { b: 1 }, c: 'text' }
  for (const pointer of ['/x', '/a/x', '/a/b/c', '/c/length', '/constructor', '/a/__proto__', '']) {
    expect(extractSecrets(value, [pointer])).toEqual({ masked: value, secrets: {} })
  }
})

test('names that objects inherit are names like any other', () => {
  const value = JSON.parse('{"__proto__": {"polluted": "s"}, "constructor": "t"}')
  const { masked, secrets } = extractSecrets(value, ['/__proto__/polluted', '/constructor'])
  expect(JSON.stringify(masked)).toBe(`{"__proto__":{"polluted":"${mask}"},"constructor":"${mask}"}`)
  expect(JSON.stringify(insertSecrets(masked, secrets))).toBe(JSON.stringify(value))
  expect({}).not.toHaveProperty('polluted')
})

test('secrets are restored where their masks stand, and nowhere else', () => {
  const secrets = { '/a': 's', '/b/0': { c: 't' }, '/d': 'u', '/e/f': 'v', '/g': 'w' }
  const value = { a: mask, b: [mask, mask], d: 'changed', e: mask }
  const before = structuredClone(value)
  const restored = { a: 's', b: [{ c: 't' }, mask], d: 'changed', e: mask }
  expect(restoreSecrets(value, secrets)).toEqual({ value: restored, restored: ['/a', '/b/0'] })
  expect(value).toEqual(before)
  expect(restoreSecrets({ a: 'x' }, secrets)).toEqual({ value: { a: 'x' }, restored: [] })
})

test('masks are found where they stand alone', () => {
  const value = { a: mask, b: { c: mask }, d: `${mask}!`, e: [mask] }
  expect(findMasked(value, ['/a', '/a', '/b', '/b/c', '/d', '/e/0', '/x', '/a/b', ''])).toEqual(['/a', '/b/c', '/e/0'])
})

test('a value is shown unless it, or what it is in, is masked or missing', () => {
  const value = { a: mask, b: { c: 's' } }
  expect(['/a', '/a/x', '/b/c', '/b', '/x'].map((pointer) => isShownAt(value, pointer))).toEqual([
    false,
    false,
    true,
    true,
    false,
  ])
})

test('every occurrence of a secret is masked in strings and names, at any depth', () => {
  const redact = createRedactor({ '/password': 'hunter22' })
  expect(redact('hunter22, and hunter22 again')).toBe(`${mask}, and ${mask} again`)
  const value = {
    message: 'it is hunter22',
    list: ['hunter22', { hunter22: 22, deep: { x: 'xhunter22x' } }],
    n: 22,
    no: null,
  }
  expect(redact(value)).toEqual({
    message: `it is ${mask}`,
    list: [mask, { [mask]: 22, deep: { x: `x${mask}x` } }],
    n: 22,
    no: null,
  })
})

test('a secret that contains another is masked whole', () => {
  expect(createRedactor({ '/a': 'hunter', '/b': 'hunter22' })('hunter22 hunter')).toBe(`${mask} ${mask}`)
})

test('of secrets that overlap no part is left', () => {
  const redact = createRedactor({ '/a': 'hunter22', '/b': 'ter22+mouse', '/c': 'mouse99', '/d': 'eeee' })
  expect(redact('a hunter22+mouse99 b')).toBe(`a ${mask} b`)
  expect(redact('eeeeee')).toBe(mask)
  expect(redact('hunter22mouse99')).toBe(mask + mask)
})

test('the strings and numbers within a secret object are secrets too', () => {
  const redact = createRedactor({ '/login': { user: 'somebody', codes: [123456], on: true } })
  expect(redact('somebody logged in with 123456: true')).toBe(`${mask} logged in with ${mask}: true`)
})

test('a secret is masked also as it stands in JSON and in a URL', () => {
  const secret = 'pa"ss\\wörd\n& more'
  const redact = createRedactor({ '/password': secret })
  expect(redact(JSON.stringify({ secret }))).toBe(`{"secret":"${mask}"}`)
  expect(redact(`https://example.com/?q=${encodeURIComponent(secret)}`)).toBe(`https://example.com/?q=${mask}`)
  expect(redact(secret)).toBe(mask)
})

test('a secret that is no well-formed text is masked and harms nothing', () => {
  expect(createRedactor({ '/a': 'lone\ud800surrogate' })('a lone\ud800surrogate')).toBe(`a ${mask}`)
})

test('secrets of fewer than 4 characters are not looked for, as they would mask letters all over', () => {
  const value = { message: 'a bc 123' }
  expect(createRedactor({ '/a': 'a', '/b': 'bc', '/c': 123 })(value)).toBe(value)
  expect(createRedactor({})(value)).toBe(value)
})
