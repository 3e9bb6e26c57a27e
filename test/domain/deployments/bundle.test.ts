/** Bundling a directory of workflows: what is refused, in one sentence with file and line, and what the bundle has. */
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { bundleDirectory, findOptionLines, NoWorkflows } from '../../../src/domain/deployments/bundle.ts'
import { snapshotBytesMax, snapshotId } from '../../../src/domain/deployments/snapshot.ts'
import { WorkflowError } from '../../../src/domain/workflows/workflow.ts'
import { newDirectory, type Test } from '../../support/domain.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))

/** Writes files by path to a new directory. */
async function writeFiles(test: Test, files: Record<string, string>): Promise<string> {
  const directory = await newDirectory(test)
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), text)
  }
  return directory
}

const refused: [string, Record<string, string>, string][] = [
  [
    'a syntax error',
    { 'a.ts': 'const a = 1\nexport default {\n' },
    'DIR/a.ts:3 has a syntax error: Expected `}` but found `EOF`.',
  ],
  [
    'a missing package',
    { 'a.ts': '\nimport parse from "@scope/parser/lib"\nexport default parse' },
    'DIR/a.ts:2 imports @scope/parser/lib, which was not found: install the package with `npm install @scope/parser`.',
  ],
  [
    'a missing module',
    { 'a.ts': 'import "./lib/b.ts"', 'lib/b.ts': 'import "../gone.ts"' },
    'DIR/lib/b.ts:1 imports ../gone.ts, which was not found: check the path.',
  ],
  [
    'an import of a name that the module does not export',
    { 'a.ts': 'import { b } from "./lib/b.ts"\nexport default b', 'lib/b.ts': 'export const c = 1' },
    'DIR/a.ts:1 cannot be bundled: "b" is not exported by "lib/b.ts".',
  ],
  [
    'a cyclic import',
    {
      'a.ts': 'import { b } from "./lib/b.ts"\nexport default b',
      'lib/b.ts': 'import { c } from "./c.ts"\nexport const b = () => c',
      'lib/c.ts': 'import { b } from "./b.ts"\nexport const c = () => b',
    },
    'Modules import each other in a cycle (lib/b.ts → lib/c.ts → lib/b.ts): move what they share into a module of its own.',
  ],
  [
    'no module',
    { 'README.md': '', 'a.test.ts': '', 'types.d.ts': '', 'lib/a.ts': '' },
    'DIR has no workflows: put a .ts, .mts, .js or .mjs file with a workflow directly into it.',
  ],
  [
    'more files than a deployment may have',
    {
      'a.ts': 'import data from "./data.json"\nexport default data',
      'data.json': JSON.stringify('x'.repeat(snapshotBytesMax)),
    },
    'The workflows with all that they import have 51 MiB, and a deployment may have 50 MiB: the largest module is DIR/data.json.',
  ],
]

describe('a directory is refused', () => {
  test.for(refused)('with %s', async ([, files, message], context) => {
    const directory = await writeFiles(context, files)
    const error = await bundleDirectory(directory).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(WorkflowError)
    expect((error as Error).message.replaceAll(directory, 'DIR')).toBe(message)
  })

  test('when it does not exist', async (context) => {
    const directory = join(await newDirectory(context), 'missing')
    const error = await bundleDirectory(directory).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(WorkflowError)
    expect(error).not.toBeInstanceOf(NoWorkflows)
    expect((error as Error).message).toMatch(/^The directory of workflows \(\S+missing\) cannot be read: .+\.$/)
  })
})

test('a bundle has the packages, and is the same wherever the directory and its packages are', async (context) => {
  const directory = await newDirectory(context)
  cpSync(join(root, 'examples/workflows'), join(directory, 'deeper/workflows'), { recursive: true })
  writeFileSync(join(directory, 'package.json'), '{"type":"module"}')
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  const bundle = await bundleDirectory(join(root, 'examples/workflows'))
  const copy = await bundleDirectory(join(directory, 'deeper/workflows'))
  expect(snapshotId({ ...copy.content, workflows: [] }, null)).toBe(
    snapshotId({ ...bundle.content, workflows: [] }, null),
  )
  const names = bundle.modules.map(({ file, path }) => [file.split('/').pop(), path])
  expect(names).toContainEqual(['count-words.ts', 'count-words.js'])
  const text = bundle.content.files.map(({ content }) => content).join('')
  expect(text).not.toContain(root)
  // Neither a package nor its TypeScript is needed any more.
  const imports = [...text.matchAll(/^import .*?"([^"]+)";$/gm)].map(([, specifier]) => specifier ?? '')
  expect(imports.filter((specifier) => !/^(\.\/|\.\.\/|node:)/.test(specifier))).toEqual([])
})

test('a package with native code is not in the bundle, and maps lead to the sources', async (context) => {
  const directory = await writeFiles(context, {
    'node_modules/native-one/package.json': '{"name":"native-one","gypfile":true,"main":"index.js"}',
    'node_modules/native-one/index.js': 'module.exports = require("./build/addon.node")',
    'node_modules/plain/package.json': '{"name":"plain","main":"index.js"}',
    'node_modules/plain/index.js': 'try { require("optional") } catch {}\nmodule.exports = require("native-one/extra")',
    'node_modules/native-one/extra.js': '',
    'lib/shared.ts': 'import plain from "plain"\nexport const shared = plain',
    'a.ts':
      'import native from "native-one"\nimport { shared } from "./lib/shared.ts"\nexport default [native, shared]',
    'a.js': 'import { shared } from "./lib/shared.ts"\nexport default shared',
  })
  const { content, modules } = await bundleDirectory(directory)
  const { externals, files } = content
  expect(externals).toEqual(['native-one'])
  expect(modules.map(({ path }) => path).sort()).toEqual(['a.js', 'a.ts.js'])
  const sources = files
    .filter(({ path }) => path.endsWith('.map'))
    .flatMap(({ content }) => JSON.parse(content).sources)
  expect([...new Set(sources)].sort()).toEqual(['../lib/shared.ts', '../node_modules/plain/index.js', 'a.js', 'a.ts'])
})

test.for<[string, string, string, number | undefined]>([
  ['a literal', 'export default {\n  id: 1,\n  retry: {\n    maxAttempts: 0,\n  },\n}', '/retry/maxAttempts', 4],
  ['a call', "export default defineWorkflow({\n  run() {},\n  'colour': 1 })", '/colour', 3],
  [
    'variables',
    'const retry = {\n  backoff: 1 }\nconst w = define({\n  id: 1,\n  retry } satisfies X)\nexport default w',
    '/retry/backoff',
    2,
  ],
  ['a spread', 'export default { ...base }', '/colour', undefined],
  ['a cycle of variables', 'const a = {\n  b: a }\nexport default a', '/b/b', 2],
])('the line of an option is found in %s', async ([, text, option, line], context) => {
  const directory = await writeFiles(context, { 'a.ts': text })
  expect((await findOptionLines(join(directory, 'a.ts')))[option]).toBe(line)
})
