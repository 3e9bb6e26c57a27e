/** The comparison of two documents, for every kind of change. */
import { describe, expect, test } from 'vitest'
import { compareDocuments } from '../../src/openapi/compare/documents.ts'
import { type Kind, type Sentence, toSentences } from '../../src/openapi/compare/place.ts'
import { equivalentDocuments, keywordChanges } from './keyword-changes.ts'
import { type ExpectedChange, modify, type Part, readCurrent } from './modified-documents.ts'
import { bodyChanges, operationChanges, parameterChanges } from './request-changes.ts'
import { memberChanges, openings, statusChanges } from './response-changes.ts'

const tables: Record<string, ExpectedChange[]> = {
  operations: operationChanges,
  parameters: parameterChanges,
  bodies: bodyChanges,
  responses: statusChanges,
  'members of responses': [...memberChanges, ...openings],
  keywords: keywordChanges,
}

/** Without operations that no change below concerns: each comparison reads the whole document. */
const document = modify(readCurrent(), ({ paths }) => {
  for (const path of Object.keys(paths)) if (/scheduleId|deliveries|bulk|rerun|batch/.test(path)) delete paths[path]
})

function compare(change: (copy: Part) => void, prepare: (copy: Part) => void = () => {}): Sentence[] {
  const before = modify(document, prepare)
  return toSentences(compareDocuments(before, modify(before, change)), before)
}

function expectExplained({ text, reason, pointer, operations }: Sentence): void {
  expect(reason, text).not.toBe('')
  expect(pointer, text).toMatch(/^\//)
  if (!text.startsWith('The security scheme')) expect(operations, text).not.toEqual([])
}

/** The most severe first. */
const kinds: Kind[] = ['breaking', 'added', 'deprecated', 'changed']

describe.each(Object.entries(tables))('changes of %s', (_, changes) => {
  test.each(changes)('$title: $kind', ({ change, prepare, kind, sentence }) => {
    const sentences = compare(change, prepare)
    expect(kinds.find((each) => sentences.some((it) => it.kind === each))).toBe(kind)
    const texts = sentences.filter((it) => it.kind === kind).map(({ text }) => text)
    expect(texts).toContainEqual(expect.stringMatching(sentence))
    for (const breaking of sentences.filter((it) => it.kind === 'breaking')) expectExplained(breaking)
  })
})

test('the order of members is not a change', () => {
  const reordered = modify(document, (it) => {
    for (const schema of Object.values<Part>(it.components.schemas)) {
      if (schema.properties) schema.properties = Object.fromEntries(Object.entries(schema.properties).reverse())
    }
  })
  expect(compareDocuments(document, reordered)).toEqual([])
})

test.each(equivalentDocuments)('nothing breaks and nothing is added when %s', (_, change) => {
  expect(compare(change).filter(({ kind }) => kind !== 'changed')).toEqual([])
})

test('the same change of every operation is one sentence', () => {
  const sentences = compare((it) => {
    for (const path of Object.values<Part>(it.paths)) {
      for (const method of ['get', 'put', 'post', 'patch', 'delete']) {
        if (!path[method]) continue
        for (const response of Object.values<Part>(path[method].responses)) {
          const { headers } = response.$ref ? it.components.responses[response.$ref.split('/').at(-1)] : response
          headers['X-Shard'] = { schema: { type: 'string' } }
        }
        path[method].responses['451'] = { description: 'Refused for legal reasons. Do not ask.' }
      }
    }
  })
  expect(sentences.map(({ text }) => text)).toEqual([
    'Every response of every operation has the new header `X-Shard`.',
    'Every operation can respond with 451 (refused for legal reasons).',
  ])
})

test('a change that the comparison does not handle is still reported', () => {
  expect(compare((it) => (it['x-owner'] = 'us')).map(({ kind }) => kind)).toEqual(['changed'])
})
