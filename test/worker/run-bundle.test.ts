/** The option `bundle` of the test kit: the run executes what a deployment would contain. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { runWorkflow } from 'execution-service/testing'
import { defineWorkflow } from 'execution-service/workflow'
import { expect, test } from 'vitest'
import { newDirectory } from '../support/domain.ts'

const definition = (run: string) => `import { defineWorkflow } from 'execution-service/workflow'
export default defineWorkflow({
  id: 'read', version: '1.0.0', title: 'Read', variables: { type: 'object' }, output: { type: 'string' }, run: ${run},
})
`
const files = {
  'node_modules/data/package.json': '{ "name": "data", "version": "1.0.0", "type": "commonjs" }',
  'node_modules/data/index.js': 'exports.read = () => require("node:fs").readFileSync(__dirname + "/text.txt", "utf8")',
  'node_modules/data/text.txt': 'of the package',
  'text.txt': 'of the author',
  'package.js': `import { read } from 'data'\n${definition('() => read()')}`,
  'own.js': `import { readFileSync } from 'node:fs'
${definition("() => readFileSync(new URL('text.txt', import.meta.url), 'utf8')")}`,
}

const read = defineWorkflow({
  id: 'read',
  version: '1.0.0',
  title: 'Read',
  variables: { type: 'object' },
  output: { type: 'string' },
  run: () => 'of the source',
})

test('runs the bundle of the module, which has the packages that a deployment has, and no other files', async (context) => {
  const directory = await newDirectory(context)
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), text)
  }
  expect((await runWorkflow(read)).output).toBe('of the source')
  expect((await runWorkflow(read, { bundle: join(directory, 'package.js') })).output).toBe('of the package')
  const { status, error } = await runWorkflow(read, { bundle: pathToFileURL(join(directory, 'own.js')) })
  expect({ status, error }).toEqual({
    status: 'failed',
    error: { name: 'Error', message: expect.stringContaining('ENOENT: no such file or directory') },
  })
})

test('a module that has another workflow, or that a deployment would refuse, is an error', async (context) => {
  const directory = await newDirectory(context)
  const other = join(directory, 'other.js')
  writeFileSync(other, definition('() => ""').replace("'read'", "'write'"))
  await expect(runWorkflow(read, { bundle: other })).rejects.toThrow(
    `The option \`bundle\` names ${other}, whose default export is not the workflow "read".`,
  )
  await expect(runWorkflow(read, { bundle: join(directory, 'gone.js') })).rejects.toThrow('gone.js')
})
