/** Requires a file in this folder for each operation, and a test of each documented status. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { problemTypes } from '../../src/domain/problems.ts'
import { browserContextScopes } from '../../src/surfaces/browser-context-api.ts'
import { executionScopes } from '../../src/surfaces/execution-api.ts'
import { operations } from './document.ts'
import { guardsOf } from './guards.ts'

const folder = new URL('.', import.meta.url)
const fileOf = (id: string) => new URL(`${id}.test.ts`, folder)
const textOf = (id: string) => readFileSync(fileOf(id), 'utf8')

test('each operation has its own file, which describes it', () => {
  const missing = operations.filter(
    ({ id }) => !existsSync(fileOf(id)) || !new RegExp(`^describeOperation\\(\\s*'${id}'`, 'm').test(textOf(id)),
  )
  expect(missing.map(({ id }) => id)).toEqual([])
})

test('each documented status of an operation has a guard, or a block in the file of the operation', () => {
  const untested = operations.flatMap((operation) => {
    // The blocks are the members of the object that the file passes to describeOperation.
    const blocks = [...textOf(operation.id).matchAll(/^ {2,4}(\d{3})[:(]/gm)].map(([, status]) => Number(status))
    const tested = new Set([...blocks, ...guardsOf(operation).map(({ status }) => status)])
    return [...operation.responses.keys()].filter((status) => !tested.has(status)).map((it) => [operation.id, it])
  })
  expect(untested).toEqual([])
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
