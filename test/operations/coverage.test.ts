/** Fails when an operation of the documents has no file in this folder, or a documented status no block in its file. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { problemTypes } from '../../src/domain/problems.ts'
import { operations } from './document.ts'

const folder = new URL('.', import.meta.url)

describe.each(operations)('$id', ({ id, responses }) => {
  const file = new URL(`${id}.test.ts`, folder)

  test('has a file of its own, which describes it', () => {
    expect(existsSync(file)).toBe(true)
    expect(readFileSync(file, 'utf8')).toMatch(new RegExp(`^describeOperation\\(\\s*'${id}'`, 'm'))
  })

  test('has a block for each documented status, and no other', () => {
    // The blocks are the members of the one object that the file hands to describeOperation.
    const blocks = [...readFileSync(file, 'utf8').matchAll(/^ {2,4}(\d{3})[:(]/gm)].map(([, status]) => Number(status))
    expect(blocks).toEqual([...responses.keys()].sort())
  })
})

test('no file describes an operation that the documents do not have', () => {
  const files = readdirSync(folder).filter((file) => file.endsWith('.test.ts'))
  const described = files.filter((file) => /^describeOperation\(/m.test(readFileSync(new URL(file, folder), 'utf8')))
  expect(described.sort()).toEqual(operations.map(({ id }) => `${id}.test.ts`).sort())
})

test('every kind of problem is expected by a test of this folder', () => {
  const files = readdirSync(folder).filter((file) => file.endsWith('.ts'))
  const text = files.map((file) => readFileSync(new URL(file, folder), 'utf8')).join('\n')
  expect(Object.keys(problemTypes).filter((kind) => !text.includes(`'${kind}'`))).toEqual([])
})
