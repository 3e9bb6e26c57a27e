/** Requires a file in this folder for each operation, and a block in it for each documented status. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { problemTypes } from '../../src/domain/problems.ts'
import { browserContextScopes } from '../../src/surfaces/browser-context-api.ts'
import { executionScopes } from '../../src/surfaces/execution-api.ts'
import { operations } from './document.ts'

const folder = new URL('.', import.meta.url)

describe.each(operations)('$id', ({ id, responses }) => {
  const file = new URL(`${id}.test.ts`, folder)

  test('has its own file, which describes it', () => {
    expect(existsSync(file)).toBe(true)
    expect(readFileSync(file, 'utf8')).toMatch(new RegExp(`^describeOperation\\(\\s*'${id}'`, 'm'))
  })

  test('has a block for each documented status and no other', () => {
    // The blocks are the members of the object that the file passes to describeOperation.
    const blocks = [...readFileSync(file, 'utf8').matchAll(/^ {2,4}(\d{3})[:(]/gm)].map(([, status]) => Number(status))
    expect(blocks).toEqual([...responses.keys()].sort())
  })
})

test('every file that describes an operation belongs to an operation of the documents', () => {
  const files = readdirSync(folder).filter((file) => file.endsWith('.test.ts'))
  const described = files.filter((file) => /^describeOperation\(/m.test(readFileSync(new URL(file, folder), 'utf8')))
  expect(described.sort()).toEqual(operations.map(({ id }) => `${id}.test.ts`).sort())
})

test('every problem type is expected by a test over HTTP', () => {
  const files = readdirSync(folder).filter((file) => file.endsWith('.ts'))
  const texts = [...files, '../contract/tenant-limits.test.ts'].map((file) =>
    readFileSync(new URL(file, folder), 'utf8'),
  )
  const text = texts.join('\n')
  expect(Object.keys(problemTypes).filter((kind) => !text.includes(`'${kind}'`))).toEqual([])
})

test('each surface lists its operations with the scopes of the documents', () => {
  const documented = operations.map(({ id, scopes }) => [id, scopes])
  const listed = Object.entries({ ...executionScopes, ...browserContextScopes }).map(([id, scope]) => [id, [scope]])
  expect(Object.fromEntries(listed)).toEqual(Object.fromEntries(documented))
})
