/** `npm run generate`: its output for unusual documents, and how it updates generated/. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAst } from 'rolldown/parseAst'
import { expect, onTestFinished, test } from 'vitest'
import { findMissing } from '../../src/tools/generate/bundle.ts'
import { updateFolder, writeClient, writeServer } from '../../src/tools/generate/generate.ts'
import { modify, type Part, parameterOf, queue, readCurrent, run } from '../contract-checks/modified-documents.ts'
import { removeDirectory, temporaryDirectory } from '../support/service.ts'

test('the end of a comment in a description or summary is escaped', () => {
  const document = modify(readCurrent(), (it) => {
    it.paths[run].get.description = 'Reads text/*, or */* if you like.'
    it.paths[run].get.summary = 'Read */ a run'
  })
  for (const write of [writeClient, writeServer]) {
    expect(() => parseAst(write(document, 'execution.v1'), { lang: 'ts' })).not.toThrow()
  }
})

test('an event stream behind a reference is recognised', () => {
  const document = modify(readCurrent(), (it) => {
    const { responses } = it.paths['/v1/execution/runs/{runId}/events'].get
    it.components.responses.Events = responses['200']
    responses['200'] = { $ref: '#/components/responses/Events' }
  })
  const [before, after] = [readCurrent(), document].map((it) =>
    writeClient(it, 'execution.v1')
      .split('\n')
      .filter((line) => line.includes("'stream'")),
  )
  expect(before).not.toEqual([])
  expect(after).toEqual(before)
})

test.each([
  ['security', (it: Part) => delete it.paths[run].get.security, 'getRun has no `security`: add it.'],
  ['tags', (it: Part) => delete it.paths[run].get.tags, 'getRun has no `tags`: add it.'],
  ['description', (it: Part) => delete it.paths[run].get.description, 'getRun has no `description`: add it.'],
  ['operationId', (it: Part) => delete it.paths[run].get.operationId, `GET ${run} has no \`operationId\`: add it.`],
  [
    'maximum size of a body',
    (it: Part) => delete it.paths[queue].put.requestBody['x-body-bytes-max'],
    'The body of queueRemoteRun has no `x-body-bytes-max`: add its maximum size in bytes.',
  ],
  [
    'description of a parameter',
    (it: Part) => delete parameterOf(it, 'Priority').description,
    'The parameter priority of queueRemoteRun has no `description`: add it.',
  ],
] as const)('a missing %s is reported with its operation', (_, change, message) => {
  expect(findMissing(modify(readCurrent(), change))).toBe(message)
  expect(findMissing(readCurrent())).toBeUndefined()
})

const files = new Map([
  ['same.ts', 'same'],
  ['changed.ts', 'new'],
  ['bruno/new.bru', 'new'],
])

/** Creates a folder with a current file, an outdated one, and one that is no longer generated. */
function createFolder(): string {
  const directory = temporaryDirectory()
  onTestFinished(() => removeDirectory(directory))
  mkdirSync(join(directory, 'bruno'))
  for (const [name, text] of Object.entries({ 'same.ts': 'same', 'changed.ts': 'old', 'bruno/left.bru': 'left' })) {
    writeFileSync(join(directory, name), text)
  }
  return directory
}

const list = (directory: string) => readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort()

test('--check reports missing, outdated and superfluous files and changes nothing', async () => {
  const directory = createFolder()
  const before = list(directory)
  expect(await updateFolder(files, directory, true)).toEqual([
    `out of date: ${directory}/changed.ts`,
    `out of date: ${directory}/bruno/new.bru`,
    `no longer generated: ${directory}/bruno/left.bru`,
  ])
  expect(list(directory)).toEqual(before)
  expect(readFileSync(join(directory, 'changed.ts'), 'utf8')).toBe('old')
})

test('the folder contains exactly the generated files afterwards', async () => {
  const directory = createFolder()
  expect(await updateFolder(files, directory, false)).toHaveLength(3)
  expect(list(directory)).toEqual(['bruno', 'bruno/new.bru', 'changed.ts', 'same.ts'])
  expect(readFileSync(join(directory, 'changed.ts'), 'utf8')).toBe('new')
  expect(await updateFolder(files, directory, true)).toEqual([])
})
