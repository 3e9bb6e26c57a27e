/** What the comparison of two documents says, for every kind of change that one of ours can have. */
import { describe, expect, test } from 'vitest'
import type { Kind } from '../../src/tools/contract-checks/compare/change.ts'
import { compareDocuments } from '../../src/tools/contract-checks/compare/documents.ts'
import { type Sentence, sentences } from '../../src/tools/contract-checks/compare/sentences.ts'
import { altered, current, type Part } from './altered.ts'
import { memberChanges, statusChanges } from './answer-changes.ts'
import { keywordChanges, sameMeanings } from './keyword-changes.ts'
import { type Alteration, bodyChanges, operationChanges, parameterChanges } from './request-changes.ts'

const tables: Record<string, Alteration[]> = {
  operations: operationChanges,
  parameters: parameterChanges,
  bodies: bodyChanges,
  answers: statusChanges,
  'members of answers': memberChanges,
  'what is easily overlooked': keywordChanges,
}

const document = current()

function found(alter: (copy: Part) => void, prepare: (copy: Part) => void = () => {}): Sentence[] {
  const before = altered(document, prepare)
  return sentences(compareDocuments(before, altered(before, alter)), before)
}

/** A change that breaks clients says whom and how, which operations it concerns, and where it is. */
function expectExplained({ text, why, pointer, operations }: Sentence): void {
  expect(why, text).not.toBe('')
  expect(pointer, text).toMatch(/^\//)
  if (!text.startsWith('The security scheme')) expect(operations, text).not.toEqual([])
}

/** The gravest first. */
const kinds: Kind[] = ['breaking', 'added', 'deprecated', 'changed']

describe.each(Object.entries(tables))('changes of %s', (_, alterations) => {
  test.each(alterations)('$title: $kind', ({ alter, prepare, kind, says }) => {
    const all = found(alter, prepare)
    expect(kinds.find((each) => all.some((it) => it.kind === each))).toBe(kind)
    const told = all.filter((it) => it.kind === kind).map(({ text }) => text)
    expect(told).toContainEqual(expect.stringMatching(says))
    for (const breaking of all.filter((it) => it.kind === 'breaking')) expectExplained(breaking)
  })
})

test('a document that is as it was has no changes, in whatever order its members stand', () => {
  const turned = altered(document, (it) => {
    for (const schema of Object.values<Part>(it.components.schemas)) {
      if (schema.properties) schema.properties = Object.fromEntries(Object.entries(schema.properties).reverse())
    }
  })
  expect(compareDocuments(document, turned)).toEqual([])
})

test.each(sameMeanings)('nothing breaks, and nothing is new, when %s', (_, alter) => {
  expect(found(alter).filter(({ kind }) => kind !== 'changed')).toEqual([])
})

test('what every operation has in the same way is said once', () => {
  const all = found((it) => {
    for (const path of Object.values<Part>(it.paths)) {
      for (const method of ['get', 'put', 'post']) {
        if (!path[method]) continue
        for (const answer of Object.values<Part>(path[method].responses)) {
          const { headers } = answer.$ref ? it.components.responses[answer.$ref.split('/').at(-1)] : answer
          headers['X-Shard'] = { schema: { type: 'string' } }
        }
        path[method].responses['451'] = { description: 'Refused for legal reasons. Do not ask.' }
      }
    }
  })
  expect(all.map(({ text }) => text)).toEqual([
    'Every answer of every operation has the new header `X-Shard`.',
    'Every operation may answer 451 (refused for legal reasons).',
  ])
})

test('a change of what the comparison does not look at is a change all the same', () => {
  expect(found((it) => (it['x-owner'] = 'us')).map(({ kind }) => kind)).toEqual(['changed'])
})
