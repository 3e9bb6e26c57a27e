/** What the lint of security, the check of patterns and that of spelling find in altered documents, and in today's not. */
import { beforeAll, describe, expect, test } from 'vitest'
import { requestPointers } from '../../src/openapi/document.ts'
import type { Finding } from '../../src/tools/contract-checks/finding.ts'
import {
  checkPatterns,
  patternsOfCode,
  patternsOfDocument,
  unusedExcuses,
} from '../../src/tools/contract-checks/patterns.ts'
import { checkSecurity } from '../../src/tools/contract-checks/security.ts'
import { exceptions } from '../../src/tools/contract-checks/security-rules.ts'
import {
  checkSpelling,
  ownWords,
  proseOfDocument,
  proseOfMarkdown,
  unusedWords,
} from '../../src/tools/contract-checks/spelling.ts'
import { altered, current, type Part, parameterOf, queue, run, runs, schemaOf } from './altered.ts'

const cancel = '/v1/execution/runs/{runId}/cancel'

const alpha = { name: 'browser-context.alpha', current: current('browser-context.alpha') } as const

function both(alter: (copy: Part) => void = () => {}) {
  return [{ name: 'execution.v1', current: altered(current(), alter) } as const, alpha]
}

function patternsOf(alter: (copy: Part) => void) {
  return both(alter).slice(0, 1).flatMap(patternsOfDocument)
}

const insecure: [title: string, alter: (copy: Part) => void, rule: string, where: RegExp][] = [
  ['no 429', (it) => delete it.paths[run].get.responses['429'], 'rate-limit-responses-429', /getRun: /],
  [
    'a 429 that does not say how many requests there may be',
    (it) => delete it.components.responses.TooManyRequests.headers.RateLimit,
    'rate-limit`',
    /429/,
  ],
  [
    'a 429 that does not say when to try again',
    (it) => delete it.components.responses.TooManyRequests.headers['Retry-After'],
    'rate-limit-retry-after',
    /429/,
  ],
  ['no 401', (it) => delete it.paths[runs].get.responses['401'], 'define-error-responses-401', /listRuns: /],
  ['no 500', (it) => delete it.paths[cancel].post.responses['500'], 'define-error-responses-500', /cancelRun: /],
  ['no 400', (it) => delete it.paths[cancel].post.responses['400'], 'define-error-validation', /cancelRun: /],
  [
    'an operation that needs no key',
    (it) => (it.paths[queue].put.security = []),
    'write-restricted',
    /queueRemoteRun: /,
  ],
  [
    'an id that can be counted up',
    (it) => (it.components.schemas.Uuid.type = 'integer'),
    'no-numeric-ids',
    /\/parameters\/0\/schema/,
  ],
  [
    'a key in the address',
    (it) =>
      it.paths[runs].get.parameters.push({ name: 'apiKey', in: 'query', schema: { type: 'string', maxLength: 1 } }),
    'no-credentials-in-url',
    /listRuns: /,
  ],
  [
    'text without an end',
    (it) => delete parameterOf(it, 'Prefer').schema.maxLength,
    'string-limit',
    /parameters\/Prefer/,
  ],
  ['a number without an end', (it) => delete parameterOf(it, 'Priority').schema.maximum, 'integer-limit', /Priority/],
  ['a list without an end', (it) => delete schemaOf(it, 'RunPage').properties.data.maxItems, 'array-limit', /RunPage/],
  ['a server without TLS', (it) => (it.servers[0].url = 'http://example.com'), 'no-server-http', /\/servers\/0\/url/],
]

describe('the lint of security', () => {
  let findings: Finding[]
  // All at once: a run of the lint takes a second on a busy machine.
  beforeAll(async () => {
    const alter = (copy: Part) => {
      for (const [, each] of insecure) each(copy)
    }
    findings = (await checkSecurity(both(alter).slice(0, 1))).findings
  })

  test.each(insecure)('finds %s', (_, __, rule, where) => {
    expect(findings).toContainEqual(
      expect.objectContaining({
        severity: 'error',
        where: expect.stringMatching(where),
        mend: expect.stringContaining(`:2023-${rule}`),
      }),
    )
  })

  test('finds an exception that excuses nothing any more', () => {
    const leftOver = Object.keys(exceptions).find((it) => it.includes('StorageState'))
    expect(findings.map(({ what }) => what)).toContainEqual(expect.stringContaining(leftOver as string))
  })
})

test('patterns are found in the documents and in the code that sees requests, and an excuse for none of them too', () => {
  const found = [...both().flatMap(patternsOfDocument), ...patternsOfCode('.')]
  expect(found).toContainEqual(expect.objectContaining({ pattern: '^[!-~]+$', flags: 'u' }))
  expect(found).toContainEqual({
    pattern: '^bearer +([^ ]+)$',
    flags: 'i',
    where: expect.stringMatching(/^src\/contract\/credential\.ts:\d+$/),
  })
  expect(unusedExcuses([])).not.toEqual([])
})

test.each(['^(a+)+$', '^(a|a)*$', '^([a-z]+)*@', '^a*a*$', '[a-z]+!'])(
  'the pattern %s is found, where a caller could hold the service with it',
  (pattern) => {
    const { findings } = checkPatterns(patternsOf((it) => (parameterOf(it, 'IdempotencyKey').schema.pattern = pattern)))
    expect(findings).toMatchObject([
      {
        severity: 'error',
        what: expect.stringContaining(`\`${pattern}\``),
        where: expect.stringContaining('/components/parameters/IdempotencyKey/schema/pattern'),
      },
    ])
  },
)

test('a pattern in the variables of an example workflow is looked at too', () => {
  const found = patternsOf((it) => {
    it.components.examples.CountWords.value.variablesSchema.properties.path.pattern = '^(a+)+$'
  })
  expect(checkPatterns(found).findings).toHaveLength(1)
})

test.each([
  [
    'summary',
    (it: Part): unknown => (it.paths[run].get.summary = 'Get teh run'),
    'teh',
    /getRun: \/paths\/.*\/summary/,
  ],
  ['description', (it: Part): unknown => (it.info.description = 'The color.'), 'color', /\/info\/description/],
  [
    'decision',
    (it: Part): unknown => (it.paths[run].get['x-decision-reason'] = 'It is recieved.'),
    'recieved',
    /getRun: /,
  ],
] as const)('a misspelt or American word is found in a %s', (_, alter, word, where) => {
  const { findings } = checkSpelling(both(alter).slice(0, 1).flatMap(proseOfDocument))
  expect(findings).toMatchObject([{ what: expect.stringContaining(`“${word}”`), where: expect.stringMatching(where) }])
})

test('a misspelt word of a guide is found by its line; code, addresses and link targets are left out', () => {
  const guide = [
    '# The run’s end',
    'See `recieve()` at https://exampel.com/teh and [here](teh.md).',
    '```sh',
    'teh',
    '```',
    'Waht now?',
  ].join('\n')
  expect(checkSpelling(proseOfMarkdown('docs/guide.md', guide)).findings).toMatchObject([
    { what: expect.stringContaining('“Waht”'), where: 'docs/guide.md:6' },
  ])
})

test('what a reference leads to is reachable as a whole, also where a part of it was reached before', () => {
  const found = requestPointers({
    paths: {
      '/a': { post: { requestBody: { $ref: '#/components/b/Part' }, parameters: [{ $ref: '#/components/b/All' }] } },
    },
    components: { b: { Part: { $ref: '#/components/b/All/properties/x' }, All: { properties: { x: {}, y: {} } } } },
  })
  expect(found).toContain('/components/b/All/properties/y')
})

test('a misspelt word of a document is shown with its lines in openapi/, and with what may be meant', () => {
  const prose = [{ text: 'Operatoin operationId', where: 'openapi/execution.v1.yaml, /info' }]
  const [first, second] = checkSpelling(prose).findings
  expect(first?.mend).toContain('“Operation”?')
  expect(second?.where).toMatch(/\(openapi\/[\w./-]+\.yaml:\d+, /)
})

test('the list of our own words is sorted, has each once, and says when one is not needed', () => {
  expect(ownWords).toEqual([...new Set(ownWords)].sort())
  expect(unusedWords([]).map(({ what }) => what)).toContainEqual(expect.stringContaining('“idempotency”'))
})
