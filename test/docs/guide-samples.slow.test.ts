/** The TypeScript samples of the guides for authors of workflows compile, and their tests pass. */
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { removeDirectory, temporaryDirectory } from '../support/service.ts'

const blocks = ['writing-workflows', 'runs-that-wait'].flatMap(blocksOf)

function blocksOf(guide: string): string[] {
  const text = readFileSync(`docs/guides/${guide}.md`, 'utf8')
  return [...text.matchAll(/^```ts\n(.*?)^```/gms)].map(([, code = '']) => code)
}

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
export default defineWorkflow({ waits: { approval: { schema: {} } }, id: 'sample', version: '1.0.0', title: 'Sample', ${missing.join('\n')}
${block}})
export const used = [setTimeout, charge, notify]
`
  return {
    file: /^import /.test(block) ? 'called-workflows.ts' : `sample-${index}.ts`,
    code: /^import /.test(block) ? block : code,
  }
}

/** Modules that the samples of the guides import. */
const tested = {
  'workflow-types.ts': 'export interface Workflows {}\n',
  'order.ts': `import { defineWorkflow } from 'execution-service/workflow'
export default defineWorkflow({
  id: 'order', version: '1.0.0', title: 'Order', retry: { maxAttempts: 2 },
  variables: { type: 'object', required: ['orderId'], properties: { orderId: { type: 'integer' } } },
  output: { type: 'object', required: ['charged'], properties: { charged: { type: 'number' } } },
  async run({ step }) {
    const { amount } = await step('charge', () => ({ amount: 12 }))
    await step('notify', () => {})
    return { charged: amount }
  },
})
`,
  'watch.ts': `import { defineWorkflow } from 'execution-service/workflow'
export default defineWorkflow({
  id: 'watch', version: '1.0.0', title: 'Watch', output: {}, timeLimitSeconds: 3600,
  variables: { type: 'object', required: ['url'], properties: { url: { type: 'string' } } },
  async run() {
    for (;;) await new Promise((resolve) => setTimeout(resolve, 60_000))
  },
})
`,
  'page-title.ts': `import { defineWorkflow } from 'execution-service/workflow'
export default defineWorkflow({
  id: 'page-title', version: '1.0.0', title: 'Page title', output: {}, browser: true,
  variables: { type: 'object', required: ['url'], properties: { url: { type: 'string' } } },
  async run({ variables: { url }, browser }) {
    const page = await (await browser()).newPage()
    await page.goto(url)
    return page.title()
  },
})
`,
}

/** The samples of the guide to projects, as one module of tests. */
function projectTests(): { file: string; code: string }[] {
  const [first = '', ...others] = blocksOf('your-own-project')
  const bodies = others.map((block) =>
    block.startsWith('test(') ? block : `test('sample', async () => {\n${block}})\n`,
  )
  const imports = `import watch from './watch.ts'\nimport pageTitle from './page-title.ts'\nconst url = 'http://127.0.0.1'\n`
  const tests = { file: 'order.test.ts', code: [imports, first, ...bodies].join('\n') }
  return [...Object.entries(tested).map(([file, code]) => ({ file, code })), tests]
}

test('the samples compile, and the sample tests pass', async (context) => {
  const directory = temporaryDirectory()
  context.onTestFinished(() => removeDirectory(directory))
  const workflows = join(directory, 'workflows')
  mkdirSync(workflows)
  // The service's packages, and the service itself, as the guide says.
  mkdirSync(join(directory, 'node_modules'))
  symlinkSync(process.cwd(), join(directory, 'node_modules/execution-service'))
  for (const name of ['typebox', '@types'])
    symlinkSync(join(process.cwd(), 'node_modules', name), join(directory, 'node_modules', name))
  const modules = [...blocks.map(moduleFor), ...projectTests()]
  expect(modules.length).toBeGreaterThan(7)
  for (const { file, code } of modules) writeFileSync(join(workflows, file), code)
  writeFileSync(join(directory, 'package.json'), '{ "type": "module" }')

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
  expect(stdout).toContain('pass 8')
})
