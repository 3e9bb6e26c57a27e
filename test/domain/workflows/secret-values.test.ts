/** Secret members of variables: extracting and restoring them. */
import { expect, test } from 'vitest'
import {
  extractSecrets,
  findMasked,
  insertSecrets,
  isShownAt,
  mask,
  restoreSecrets,
} from '../../../src/domain/workflows/secrets.ts'

test.each([
  ['a member', { a: 's', b: 1 }, ['/a'], { a: mask, b: 1 }],
  ['a nested member', { a: { b: { c: 's', d: 2 } } }, ['/a/b/c'], { a: { b: { c: mask, d: 2 } } }],
  ['a member in an array', { a: [{ b: 's' }, { b: 't' }] }, ['/a/0/b', '/a/1/b'], { a: [{ b: mask }, { b: mask }] }],
  ['an element of an array', { a: ['x', 's'] }, ['/a/1'], { a: ['x', mask] }],
  [
    'a name that a pointer escapes',
    { 'a/b': { '~c': 's', 'd~1': 't' } },
    ['/a~1b/~0c', '/a~1b/d~01'],
    { 'a/b': { '~c': mask, 'd~1': mask } },
  ],
  ['the empty name', { '': 's' }, ['/'], { '': mask }],
  ['a whole object', { a: { user: 'u', password: 's' } }, ['/a'], { a: mask }],
  ['an object and a member of it', { a: { b: 's' } }, ['/a', '/a/b'], { a: mask }],
  ['a member before the object that contains it', { a: { b: 's' } }, ['/a/b', '/a'], { a: mask }],
  ['a number, boolean or null', { a: 1, b: false, c: null }, ['/a', '/b', '/c'], { a: mask, b: mask, c: mask }],
  ['a repeated pointer', { a: 's' }, ['/a', '/a'], { a: mask }],
  ['a value that looks like the mask', { a: mask }, ['/a'], { a: mask }],
])('%s is masked, and inserted again unchanged', (_, value, pointers, expected) => {
  const before = structuredClone(value)
  const { masked, secrets } = extractSecrets(value, pointers)
  expect(masked).toEqual(expected)
  expect(value).toEqual(before)
  expect(insertSecrets(masked, JSON.parse(JSON.stringify(secrets)))).toEqual(before)
  expect(masked).toEqual(expected)
})

test('a pointer without a value changes nothing', () => {
  const value = { a: { b: 1 }, c: 'text' }
  for (const pointer of ['/x', '/a/x', '/a/b/c', '/c/length', '/constructor', '/a/__proto__', '']) {
    expect(extractSecrets(value, [pointer])).toEqual({ masked: value, secrets: {} })
  }
})

test('names of inherited members are ordinary names', () => {
  const value = JSON.parse('{"__proto__": {"polluted": "s"}, "constructor": "t"}')
  const { masked, secrets } = extractSecrets(value, ['/__proto__/polluted', '/constructor'])
  expect(JSON.stringify(masked)).toBe(`{"__proto__":{"polluted":"${mask}"},"constructor":"${mask}"}`)
  expect(JSON.stringify(insertSecrets(masked, secrets))).toBe(JSON.stringify(value))
  expect({}).not.toHaveProperty('polluted')
})

test('secrets are restored only where their masks are', () => {
  const secrets = { '/a': 's', '/b/0': { c: 't' }, '/d': 'u', '/e/f': 'v', '/g': 'w' }
  const value = { a: mask, b: [mask, mask], d: 'changed', e: mask }
  const before = structuredClone(value)
  const restored = { a: 's', b: [{ c: 't' }, mask], d: 'changed', e: mask }
  expect(restoreSecrets(value, secrets)).toEqual({ value: restored, restored: ['/a', '/b/0'] })
  expect(value).toEqual(before)
  expect(restoreSecrets({ a: 'x' }, secrets)).toEqual({ value: { a: 'x' }, restored: [] })
})

test('a mask is found only if it is the whole value', () => {
  const value = { a: mask, b: { c: mask }, d: `${mask}!`, e: [mask] }
  expect(findMasked(value, ['/a', '/a', '/b', '/b/c', '/d', '/e/0', '/x', '/a/b', ''])).toEqual(['/a', '/b/c', '/e/0'])
})

test('a value is shown unless it or its container is masked or missing', () => {
  const value = { a: mask, b: { c: 's' } }
  expect(['/a', '/a/x', '/b/c', '/b', '/x'].map((pointer) => isShownAt(value, pointer))).toEqual([
    false,
    false,
    true,
    true,
    false,
  ])
})
