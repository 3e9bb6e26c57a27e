/** The writers of generated/ on documents that are not as ours are today. */
import { parseAst } from 'rolldown/parseAst'
import { expect, test } from 'vitest'
import { writeClient } from '../../src/tools/generate/client.ts'
import { missingIn } from '../../src/tools/generate/document.ts'
import { writeServer } from '../../src/tools/generate/server.ts'
import { modify, type Part, parameterOf, queue, readCurrent, run } from '../contract-checks/modified-documents.ts'

const events = '/v1/execution/runs/{runId}/events'

test('the end of a comment in a description or a summary does not end the comment that it stands in', () => {
  const document = modify(readCurrent(), (it) => {
    it.paths[run].get.description = 'Reads text/*, or */* if you like.'
    it.paths[run].get.summary = 'Read */ a run'
  })
  for (const write of [writeClient, writeServer]) {
    expect(() => parseAst(write(document, 'execution.v1'), { lang: 'ts' })).not.toThrow()
  }
})

test('an event stream that is referred to is read as one', () => {
  const document = modify(readCurrent(), (it) => {
    const { responses } = it.paths[events].get
    it.components.responses.Events = responses['200']
    responses['200'] = { $ref: '#/components/responses/Events' }
  })
  const [was, is] = [readCurrent(), document].map((it) => writeClient(it, 'execution.v1').split('\n').slice(10))
  expect(is?.filter((line) => line.includes("'stream'"))).toEqual(was?.filter((line) => line.includes("'stream'")))
  expect(is?.join('\n')).toContain("'stream'")
})

test.each([
  ['security', (it: Part) => delete it.paths[run].get.security, 'getRun has no `security`; write it.'],
  ['tags', (it: Part) => delete it.paths[run].get.tags, 'getRun has no `tags`; write it.'],
  ['description', (it: Part) => delete it.paths[run].get.description, 'getRun has no `description`; write it.'],
  ['operationId', (it: Part) => delete it.paths[run].get.operationId, `GET ${run} has no \`operationId\`; write it.`],
  [
    'bound of a body',
    (it: Part) => delete it.paths[queue].put.requestBody['x-body-bytes-max'],
    'The body of queueRemoteRun has no `x-body-bytes-max`; write how many bytes it may have.',
  ],
  [
    'description of a parameter',
    (it: Part) => delete parameterOf(it, 'Priority').description,
    'The parameter priority of queueRemoteRun has no `description`; write it.',
  ],
] as const)('a missing %s is told with the operation that lacks it', (_, alter, sentence) => {
  expect(missingIn(modify(readCurrent(), alter))).toBe(sentence)
  expect(missingIn(readCurrent())).toBeUndefined()
})
