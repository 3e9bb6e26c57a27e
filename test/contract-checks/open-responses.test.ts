/** The check that schemas of responses allow unknown members. */
import { expect, test } from 'vitest'
import { checkOpenResponses } from '../../src/tools/contract-checks/document-checks.ts'
import { modify, type Part, readCurrent, run, schemaOf } from './modified-documents.ts'

const document = readCurrent()
const places = (change: (copy: Part) => void) =>
  checkOpenResponses([{ name: 'execution.v1', current: modify(document, change) }]).map(({ location }) => location)

test('both documents pass', () => {
  const contracts = [
    { name: 'execution.v1', current: document },
    { name: 'browser-context.alpha', current: readCurrent('browser-context.alpha') },
  ] as const
  expect(checkOpenResponses(contracts)).toEqual([])
})

test.each<[string, (copy: Part) => void]>([
  ['additionalProperties: false', (it) => (schemaOf(it, 'Run').additionalProperties = false)],
  ['unevaluatedProperties: false', (it) => (schemaOf(it, 'Run').unevaluatedProperties = false)],
  ['maxProperties', (it) => (schemaOf(it, 'Run').maxProperties = 40)],
])('%s in a component of a response is found', (_, change) => {
  expect(places(change)).toEqual(['openapi/execution.v1.yaml, /components/schemas/Run'])
})

test('a closed schema inside a response is found, and one in a request is not', () => {
  const [inResponse] = places((it) => {
    const schema = { type: 'object', additionalProperties: false }
    it.paths[run].get.responses['200'].content['application/json'].schema = schema
  })
  expect(inResponse).toContain('getRun: ')
  expect(places((it) => (schemaOf(it, 'QueueRemoteRunRequest').additionalProperties = false))).toEqual([])
})
