/** The TypeScript samples of the guide to writing workflows compile, and its test passes. */
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { removeDirectory, temporaryDirectory } from '../support/service.ts'

const guide = readFileSync('docs/guides/writing-workflows.md', 'utf8')
const blocks = [...guide.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code = '']) => code)

/** Blocks that begin with a file name are modules; the others are options of a workflow. */
function moduleFor(block: string, index: number): { file: string; code: string } {
  const file = /^\/\/ workflows\/(\S+)\n/.exec(block)?.[1]
  if (file) return { file, code: block }
  const defaults = {
    variables: `variables: { type: 'object', required: ['url', 'orderId'], properties: { url: { type: 'string' }, orderId: { type: 'string' } } },`,
    output: 'output: {},',
    run: 'run: () => ({}),',
  }
  const missing = Object.entries(defaults).flatMap(([name, code]) => {
    return new RegExp(`^(async )?${name}\\b`, 'm').test(block) ? [] : [code]
  })
  const code = `import { setTimeout } from 'node:timers/promises'
import { defineWorkflow } from 'execution-service/workflow'
declare function charge(orderId: string): Promise<{ amount: number; customer: string }>
declare function notify(customer: string): Promise<void>
export default defineWorkflow({ id: 'sample', version: '1.0.0', title: 'Sample', ${missing.join('\n')}
${block}})
export const used = [setTimeout, charge, notify]
`
  return { file: `sample-${index}.ts`, code }
}

test('the samples compile, and the sample test passes', async (context) => {
  const directory = temporaryDirectory()
  context.onTestFinished(() => removeDirectory(directory))
  const workflows = join(directory, 'workflows')
  mkdirSync(workflows)
  // The service's packages, and the service itself, as the guide says.
  mkdirSync(join(directory, 'node_modules'))
  symlinkSync(process.cwd(), join(directory, 'node_modules/execution-service'))
  for (const name of ['typebox', '@types'])
    symlinkSync(join(process.cwd(), 'node_modules', name), join(directory, 'node_modules', name))
  const modules = blocks.map(moduleFor)
  expect(modules.length).toBeGreaterThan(7)
  for (const { file, code } of modules) writeFileSync(join(workflows, file), code)

  const program = ts.createProgram(
    modules.map(({ file }) => join(workflows, file)),
    {
      strict: true,
      noEmit: true,
      skipLibCheck: true,
      allowImportingTsExtensions: true,
      target: ts.ScriptTarget.ESNext,
      module: ts.ModuleKind.NodeNext,
      types: ['node'],
      typeRoots: [join(directory, 'node_modules/@types')],
    },
  )
  const errors = ts.getPreEmitDiagnostics(program)
  expect(
    ts.formatDiagnostics(errors, {
      getCanonicalFileName: String,
      getCurrentDirectory: () => workflows,
      getNewLine: () => '\n',
    }),
  ).toBe('')
  const { stdout } = await promisify(execFile)(process.execPath, ['--test'], {
    cwd: workflows,
    env: { PATH: process.env.PATH },
  })
  expect(stdout).toContain('pass 1')
})
