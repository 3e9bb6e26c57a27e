/** Parsing of the header `Prefer` (RFC 7240). */
import { expect, test } from 'vitest'
import { parsePreferences, preferredWait } from '../../src/contract/prefer.ts'

test.each<[prefer: string, preferences: [string, string][]]>([
  ['wait=10', [['wait', '10']]],
  [
    'code=404, Example="no such"',
    [
      ['code', '404'],
      ['example', 'no such'],
    ],
  ],
  [
    'respond-async; x=1 , wait = "5";y',
    [
      ['respond-async', ''],
      ['wait', '5'],
    ],
  ],
  [
    'foo="a, wait=5; \\" b", bar',
    [
      ['foo', 'a, wait=5; \\" b'],
      ['bar', ''],
    ],
  ],
])('%s is parsed without parameters of preferences', (prefer, preferences) => {
  expect(parsePreferences(prefer)).toEqual(preferences)
})

test('the first valid `wait` counts, up to the maximum', () => {
  expect(preferredWait(undefined, 30)).toBeUndefined()
  expect(preferredWait('foo="wait=5"; wait=6', 30)).toBeUndefined()
  expect(preferredWait('wait=x, wait=7, wait=8', 30)).toBe(7)
  expect(preferredWait('wait=900', 30)).toBe(30)
})
