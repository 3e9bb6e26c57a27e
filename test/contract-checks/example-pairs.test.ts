/** The check that examples of requests and responses come in pairs. */
import { expect, test } from 'vitest'
import { checkExamplePairs } from '../../src/tools/contract-checks/document-checks.ts'
import { modify, type Part, queue, readCurrent } from './modified-documents.ts'

const document = readCurrent()
const check = (change: (copy: Part) => void) =>
  checkExamplePairs([{ name: 'execution.v1', current: modify(document, change) }]).map(({ message }) => message)

test('both documents pass', () => {
  expect(check(() => {})).toEqual([])
  const current = readCurrent('browser-context.alpha')
  expect(checkExamplePairs([{ name: 'browser-context.alpha', current }])).toEqual([])
})

const examplesOf = (it: Part, status: string) =>
  it.paths[queue].put.responses[status].content['application/json'].examples

test.each<[string, string, (copy: Part) => void]>([
  [
    'a request without a response',
    'The examples of the response 200 are not those of the request: countWords instead of countWords, other.',
    (it) => (it.paths[queue].put.requestBody.content['application/json'].examples.other = { value: {} }),
  ],
  [
    'a response without a request',
    'The examples of the response 202 are not those of the request: countWords, other instead of countWords.',
    (it) => (examplesOf(it, '202').other = examplesOf(it, '202').countWords),
  ],
])('finds %s', (_, message, change) => {
  expect(check(change)).toContain(message)
})
