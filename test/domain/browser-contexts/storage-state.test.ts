/** Summaries, secret values and comparison of storage states. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import {
  emptyState,
  isSameState,
  secretCookieValues,
  stateBytesMax,
  summarizeState,
} from '../../../src/domain/browser-contexts/storage-state.ts'
import { operationOf } from '../../operations/document.ts'

const exported = readFileSync('test/operations/storage-state.json', 'utf8')

/** A storage state with cookies of these domains and values. */
function state(...cookies: [domain: string, value: string][]): string {
  return JSON.stringify({ cookies: cookies.map(([domain, value]) => ({ domain, value })), origins: [] })
}

test('a state exported by Playwright is summarized by size and cookie domains', () => {
  expect(summarizeState(exported)).toEqual({ sizeBytes: Buffer.byteLength(exported), cookieDomains: ['127.0.0.1'] })
  expect(summarizeState(emptyState)).toEqual({ sizeBytes: 27, cookieDomains: [] })
})

test('cookie domains are sorted and distinct, with subdomains separate from their domain', () => {
  const text = state(['b.example', '1'], ['.a.example', '2'], ['b.example', '3'], ['a.example', '4'])
  expect(summarizeState(text).cookieDomains).toEqual(['.a.example', 'a.example', 'b.example'])
})

test('only the first 100 cookie domains are listed', () => {
  const domains = Array.from({ length: 150 }, (_, index) => `${String(index).padStart(3, '0')}.example`)
  const text = state(...domains.toReversed().map((domain): [string, string] => [domain, 'value']))
  expect(summarizeState(text).cookieDomains).toEqual(domains.slice(0, 100))
})

test('the size is in bytes of UTF-8', () => {
  const text = state(['ü.example', '💡'])
  expect(summarizeState(text).sizeBytes).toBe(Buffer.from(text).length)
  expect(summarizeState(text).sizeBytes).toBeGreaterThan(text.length)
})

test('cookie values of at least 8 characters are secret', () => {
  expect(secretCookieValues(state(['a', '12345678'], ['a', '1234567'], ['b', '']))).toEqual(['12345678'])
  expect(secretCookieValues(exported)).toEqual(['7f3a-canary', '%22dark%22'])
})

test('the maximum size equals that of the request body in the OpenAPI document', () => {
  expect(operationOf('putStorageState').bodyBytesMax).toBe(stateBytesMax)
})

test('states that differ only in order are the same', () => {
  const [ada, bob] = ['a', 'b'].map((name) => ({ name, value: '1', domain: 'a.example', path: '/' }))
  const items = [
    { name: 'x', value: '1' },
    { name: 'y', value: '2' },
  ]
  const stored = (origin: string, more: object = {}) => ({ origin, localStorage: items, ...more })
  const text = (value: object) => JSON.stringify(value)
  const original = text({ cookies: [ada, bob], origins: [stored('https://a'), stored('https://b')] })
  const reversed = { origin: 'https://b', indexedDB: [], localStorage: [...items].reverse() }
  expect(isSameState(original, text({ origins: [reversed, stored('https://a')], cookies: [bob, ada] }))).toBe(true)
  for (const other of [
    { cookies: [ada], origins: [stored('https://a'), stored('https://b')] },
    { cookies: [ada, { ...bob, value: '2' }], origins: [stored('https://a'), stored('https://b')] },
    { cookies: [ada, bob], origins: [stored('https://a'), stored('https://b', { indexedDB: [{ name: 'db' }] })] },
    { cookies: [ada, bob], origins: [stored('https://a'), { ...stored('https://b'), localStorage: [items[0]] }] },
  ]) {
    expect(isSameState(original, text(other))).toBe(false)
  }
})
