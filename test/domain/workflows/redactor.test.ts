/** Masking secrets in text, however they are spelled there. */
import { expect, test } from 'vitest'
import { createRedactor } from '../../../src/domain/workflows/redactor.ts'
import { mask } from '../../../src/domain/workflows/secrets.ts'
import { secrets, spellings } from '../../support/secret-spellings.ts'

test.each(Object.entries(spellings))('a secret is masked in the spelling of %s', (_name, spell) => {
  for (const secret of secrets) {
    const redact = createRedactor({ '/secret': secret })
    for (const [before, after] of [
      ['"', '"'],
      ['x = ', ' and'],
    ]) {
      const text = before + spell(secret) + after
      expect([text, redact(text)]).toEqual([text, expect.stringMatching(/^(?:"|x = )[*]+(?:"| and)$/)])
    }
    // Between characters that are escaped too.
    const text = `\\n&amp;%20${spell(secret)}%20&lt;\\t`
    expect([text, redact(text).replaceAll(mask, '')]).toEqual([text, expect.not.stringMatching(/\w{6}/)])
  }
})

test('text that resembles a secret is shown', () => {
  const redact = createRedactor({ secrets: ['pa"ss\\word & more', 'a+b=c/d'] })
  for (const text of [
    'pass\\word',
    '&amp; more %26 \\u0026',
    'a%2Bb',
    '\\\\',
    '%',
    '&',
    '+++',
    '\\u{110000}\\u{ffffff}',
  ])
    expect(redact(text)).toBe(text)
})

test('every occurrence of a secret is masked in strings and member names, at any depth', () => {
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

test('a secret that contains another is masked as a whole', () => {
  expect(createRedactor({ '/a': 'hunter', '/b': 'hunter22' })('hunter22 hunter')).toBe(`${mask} ${mask}`)
})

test('overlapping secrets are masked completely', () => {
  const redact = createRedactor({ '/a': 'hunter22', '/b': 'ter22+mouse', '/c': 'mouse99', '/d': 'eeee' })
  expect(redact('a hunter22+mouse99 b')).toBe(`a ${mask} b`)
  expect(redact('eeeeee')).toBe(mask)
  expect(redact('hunter22mouse99')).toBe(mask + mask)
})

test('the strings and numbers in a secret object are secrets', () => {
  const redact = createRedactor({ '/login': { user: 'somebody', codes: [123456], on: true } })
  expect(redact('somebody logged in with 123456: true')).toBe(`${mask} logged in with ${mask}: true`)
})

test('a secret is masked as it appears in JSON and in URLs', () => {
  const secret = 'pa"ss\\wörd\n& more'
  const redact = createRedactor({ '/password': secret })
  expect(redact(JSON.stringify({ secret }))).toBe(`{"secret":"${mask}"}`)
  expect(redact(`https://example.com/?q=${encodeURIComponent(secret)}`)).toBe(`https://example.com/?q=${mask}`)
  expect(redact(secret)).toBe(mask)
})

test('a secret with a lone surrogate is masked', () => {
  expect(createRedactor({ '/a': 'lone\ud800surrogate' })('a lone\ud800surrogate')).toBe(`a ${mask}`)
})

test('secrets of fewer than 4 characters are not masked', () => {
  const value = { message: 'a bc 123' }
  expect(createRedactor({ '/a': 'a', '/b': 'bc', '/c': 123 })(value)).toBe(value)
  expect(createRedactor({})(value)).toBe(value)
})

/** Pseudo-random numbers from 0 to below `bound`, the same in each run (mulberry32). */
function createRandom(seed: number): (bound: number) => number {
  let state = seed
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound
  }
}

/** Code units that occur in an occurrence of a word become one mask per run of overlapping occurrences. */
function maskNaively(words: readonly string[], text: string): string {
  const occurrences = words.flatMap((word) =>
    Array.from(text, (_, start) => [start, start + word.length] as const).filter(([start]) =>
      text.startsWith(word, start),
    ),
  )
  let [result, end] = ['', 0]
  for (const [from, to] of occurrences.sort((a, b) => a[0] - b[0])) {
    if (from >= end) result += text.slice(end, from) + mask
    end = Math.max(end, to)
  }
  return result + text.slice(end)
}

test.each([
  ['few secrets', 3],
  ['many secrets', 40],
])('random texts are masked as by a search for each secret (%s)', (_, count) => {
  const random = createRandom(count)
  const pick = (length: number) => Array.from({ length }, () => 'aab\u0161'[random(4)]).join('')
  let masked = 0
  for (let round = 0; round < 500; round++) {
    const words: string[] = []
    while (words.length < count) {
      const before = words[random(words.length + 1)] ?? ''
      words.push(before.slice(0, random(before.length + 1)) + pick(4 + random(5)))
    }
    const pieces = Array.from({ length: random(8) }, () => words[random(count)]?.slice(random(3)) + pick(random(4)))
    const text = pieces.join('')
    const spellings = words.flatMap((word) => [word, encodeURIComponent(word)])
    const result = createRedactor({ words })(text)
    expect(result, JSON.stringify({ words, text })).toBe(maskNaively(spellings, text))
    if (result.includes(mask)) masked++
  }
  expect(masked).toBeGreaterThan(300)
})

test.each([
  ['start differently', (n: number) => Math.imul(n, 0x9e3779b1).toString(36).padStart(10, 'xyz')],
  ['start alike', (n: number) => `GA1.2.${Math.imul(n, 0x9e3779b1)}`],
])('masking 1,000 secrets that %s in 1 MiB of text takes far less than a second', (_, secretFor) => {
  const secrets = Array.from({ length: 1000 }, (_, n) => secretFor(n))
  const redact = createRedactor({ secrets })
  const text = `Fetched https://shop.example/orders as GA1.2.99 in 312 ms. ${secrets[999]} `.repeat(14_000)
  const before = process.cpuUsage()
  expect(redact(text)).not.toContain(secrets[999])
  // Usually 3 to 30 ms.
  expect(process.cpuUsage(before).user).toBeLessThan(1_000_000)
})

test('a secret is masked in Base64 and base64url, wherever it is in the encoded text', () => {
  const secret = 'hünter>>22??'
  const redact = createRedactor({ '/password': secret })
  for (const encoding of ['base64', 'base64url'] as const) {
    for (const before of ['', 'a', 'ab', 'user:']) {
      for (const after of ['', 'z', 'zz', ' and more']) {
        const encoded = Buffer.from(before + secret + after).toString(encoding)
        expect(redact(`Basic ${encoded}!`), `${encoding} of ${before}${secret}${after}`).toBe(`Basic ${mask}!`)
        expect(redact(encoded)).toBe(mask)
        // As in a path or a name.
        expect(redact(`x${encoded}`)).toBe(mask)
      }
    }
  }
  const text = 'aHVudGVyMjI= and other text/with+long-words are kept'
  expect(redact(text)).toBe(text)
  expect(createRedactor({ '/a': 'four' })('Zm91cg== "Zm91cg"')).toBe(`${mask} "${mask}"`)
})

test('a secret of several lines is masked in wrapped Base64, and line by line', () => {
  const bytes = Buffer.from(Array.from({ length: 200 }, (_, index) => (index * 73) % 256))
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? []
  const pem = ['-----BEGIN PRIVATE KEY-----', ...lines, '-----END PRIVATE KEY-----', ''].join('\n')
  const redact = createRedactor({ '/key': pem })
  expect(redact(pem)).toBe(mask)
  for (const line of lines) expect(redact(`  ${line}`)).toBe(`  ${mask}`)
  expect(redact(pem.replaceAll('\n', '\r\n'))).not.toMatch(/[A-Za-z0-9+/]{9}/)
  expect(redact(JSON.stringify({ line: lines[0] }))).toBe(`{"line":"${mask}"}`)
  const wrapped = Buffer.from(pem).toString('base64').replace(/.{76}/g, '$&\n')
  expect(redact(`it is:\n${wrapped}`)).toBe(`it is:\n${mask}`)
})

test('short lines of a secret are not masked', () => {
  expect(createRedactor({ '/json': '{\n  "a": 1\n}' })('{ "a": 1 }')).toBe('{ "a": 1 }')
})
