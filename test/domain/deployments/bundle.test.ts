/** Bundling a directory of workflows: what is refused, in one sentence with file and line, and what the bundle has. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { bundleDirectory, findOptionLines, NoWorkflows } from '../../../src/domain/deployments/bundle.ts'
import { DeploymentFiles } from '../../../src/domain/deployments/deployment-files.ts'
import {
  checkContent,
  limitToWorkflows,
  type SnapshotContent,
  snapshotBytesMax,
  snapshotId,
} from '../../../src/domain/deployments/snapshot.ts'
import { WorkflowError } from '../../../src/domain/workflows/workflow.ts'
import { newDirectory, type Test } from '../../support/domain.ts'
import { workflow } from '../../support/snapshots.ts'

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
    'a missing package, in a project of pnpm',
    { 'a.ts': 'import ms from "ms"\nexport default ms', 'pnpm-lock.yaml': '' },
    'DIR/a.ts:1 imports ms, which was not found: install the package with `pnpm add ms`.',
  ],
  [
    "packages of yarn's Plug'n'Play",
    { 'a.ts': 'import ms from "ms"\nexport default ms', '.pnp.cjs': '', 'yarn.lock': '' },
    "DIR/a.ts:1 imports ms, which was not found: this is a Plug'n'Play project of yarn, whose packages lie in archives, while a bundle needs them in node_modules: set `nodeLinker: node-modules` in .yarnrc.yml, and run `yarn install`.",
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
    'Modules import each other in a cycle (lib/b.ts → lib/c.ts → lib/b.ts): move the shared code into another module.',
  ],
  [
    'no module',
    { 'README.md': '', 'a.test.ts': '', 'types.d.ts': '', 'lib/a.ts': '' },
    'DIR has no workflows: put a .ts, .tsx, .js, .jsx, .mts, .mjs, .cts or .cjs file with a workflow directly into it.',
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

describe('a package that cannot be bundled is carried as it is, with what it needs', () => {
  const manifest = (name: string, more = {}) => JSON.stringify({ name, version: '1.0.0', main: 'index.js', ...more })
  /** Loads `a.js` of the deployment in a separate process. */
  const load = async (test: Test, content: SnapshotContent): Promise<unknown> => {
    const written = new DeploymentFiles(undefined)
    test.onTestFinished(() => written.close())
    const directory = await written.write('deployment', content, [])
    const module = JSON.stringify(join(directory, 'a.js'))
    const code = `import(${module}).then((it) => { console.log(JSON.stringify(it.default)); process.exit() })`
    return JSON.parse(execFileSync(process.execPath, ['-e', code], { encoding: 'utf8' }))
  }

  test.for<[string, string]>([
    ['a module by its own import, when it runs', 'require("module").createRequire(__filename)("#data")'],
    ['a module by a computed name', 'require("./" + ["data"].join("") + ".js")'],
    ['the path of a module', 'require(require.resolve("./data.js"))'],
    ['a file beside it', 'require("fs").readFileSync(__dirname + "/data.txt", "utf8")'],
    ['what its package depends on', 'module.require("needed")'],
    ['an indirect require', 'eval("req" + "uire")("needed")'],
  ])('which loads %s', async ([, code], context) => {
    const files = {
      'node_modules/odd/package.json': manifest('odd', {
        imports: { '#data': './data.js' },
        dependencies: { needed: '1' },
      }),
      'node_modules/odd/index.js': `exports.load = () => ${code}`,
      'node_modules/odd/data.js': 'module.exports = "data"',
      'node_modules/odd/data.txt': 'data',
      'node_modules/needed/package.json': manifest('needed'),
      'node_modules/needed/index.js': 'module.exports = "data"',
      'a.ts': 'import { load } from "odd"\nexport default load()',
    }
    const { content } = await bundleDirectory(await writeFiles(context, files))
    expect(await load(context, content)).toBe('data')
  })

  test('also as a module of ESM with a worker, binary data and a name that package.json has', async (context) => {
    const files = {
      'package.json': '{"execution-service":{"external":["named"]}}',
      'node_modules/odd/package.json': manifest('odd', { type: 'module' }),
      'node_modules/odd/index.js': `import { readFileSync } from 'node:fs'
        import { once } from 'node:events'
        import { Worker } from 'node:worker_threads'
        export const size = () => readFileSync(new URL('./data.bin', import.meta.url)).toString('hex')
        export const answer = async () => (await once(new Worker(new URL('./worker.js', import.meta.url)), 'message'))[0]`,
      'node_modules/odd/worker.js':
        "import { parentPort } from 'node:worker_threads'\nparentPort.postMessage('worked')",
      'node_modules/odd/data.bin': '',
      'node_modules/named/package.json': manifest('named'),
      'node_modules/named/index.js': 'module.exports = "named"',
      'a.js': `import { createRequire } from 'node:module'
        import { answer, size } from 'odd'
        export default [await answer(), size(), createRequire(import.meta.url)('named')]`,
    }
    const directory = await writeFiles(context, files)
    writeFileSync(join(directory, 'node_modules/odd/data.bin'), Buffer.from('ff00fe', 'hex'))
    const { content } = await bundleDirectory(directory)
    expect(content.files.find(({ path }) => path === 'node_modules/odd/data.bin')).toMatchObject({ encoding: 'base64' })
    checkContent(content)
    expect(await load(context, content)).toEqual(['worked', 'ff00fe', 'named'])
  })

  test('in the versions that each package has', async (context) => {
    const version = (path: string, text: string) => ({
      [`${path}/package.json`]: manifest('shared', { version: text }),
      [`${path}/index.js`]: `module.exports = [__dirname && '${text}'].join()`,
    })
    const files = {
      ...version('node_modules/shared', '1.0.0'),
      ...version('node_modules/plain/node_modules/shared', '2.0.0'),
      ...version('node_modules/odd/node_modules/shared', '3.0.0'),
      'node_modules/plain/package.json': manifest('plain'),
      'node_modules/plain/index.js': 'module.exports = require("shared")',
      'node_modules/odd/package.json': manifest('odd', { dependencies: { shared: '3' } }),
      'node_modules/odd/index.js': 'module.exports = __dirname && require("shared")',
      'a.ts': `import odd from 'odd'\nimport plain from 'plain'\nimport shared from 'shared'
        export default [shared, plain, odd]`,
    }
    const { content } = await bundleDirectory(await writeFiles(context, files))
    expect(await load(context, content)).toEqual(['1.0.0', '2.0.0', '3.0.0'])
  })

  test('without declarations, source maps and optional native code', async (context) => {
    const directory = await writeFiles(context, {
      'node_modules/odd/package.json': manifest('odd', { optionalDependencies: { fast: '1', nan: '2' } }),
      'node_modules/odd/index.js':
        'try { require("./build/x.node"); require("fast") } catch {}\nexports.at = __dirname',
      ...Object.fromEntries(['index.d.ts', 'index.js.map', 'lib.d.ts'].map((name) => [`node_modules/odd/${name}`, ''])),
      'node_modules/fast/package.json': manifest('fast', { dependencies: { 'node-gyp-build': '1' } }),
      'node_modules/fast/index.js': '',
      'a.ts': 'import { at } from "odd"\nexport default at',
    })
    const { content } = await bundleDirectory(directory)
    expect(content.externals).toEqual([])
    const carried = content.files.map(({ path }) => path).filter((path) => path.startsWith('node_modules/'))
    expect(carried).toEqual(['index.js', 'lib.d.ts', 'package.json'].map((name) => `node_modules/odd/${name}`))
  })

  test.for<[string, Record<string, string>, string]>([
    [
      'a package that it needs is not installed',
      { 'node_modules/odd/package.json': manifest('odd', { dependencies: { gone: '1' } }) },
      'odd cannot be bundled and needs gone, which is not installed: install the package with `npm install gone`.',
    ],
    [
      'it is larger than a deployment may be',
      { 'node_modules/odd/data.bin': 'x'.repeat(snapshotBytesMax) },
      'Packages that cannot be bundled have 3 files of 51 MiB, and a deployment may have 10000 of 50 MiB: the largest package is odd with 51 MiB (index.js uses __dirname), and its largest file data.bin.',
    ],
    [
      'package.json names a package that is not installed',
      { 'package.json': '{"execution-service":{"external":["gone"]}}' },
      '"external" in package.json names gone, which is not installed: install the package with `npm install gone`.',
    ],
    [
      'package.json has a member that is unknown',
      { 'package.json': '{"execution-service":{"externals":["odd"]}}' },
      'DIR/package.json: "execution-service" has the unknown member "externals".',
    ],
    [
      'package.json names what cannot be a package',
      { 'package.json': '{"execution-service":{"external":["../odd"]}}' },
      'DIR/package.json: "execution-service" must be an object like { "external": ["a-package"] }.',
    ],
  ])('and the directory is refused when %s', async ([, files, message], context) => {
    const directory = await writeFiles(context, {
      'node_modules/odd/package.json': manifest('odd'),
      'node_modules/odd/index.js': 'exports.at = __dirname',
      'a.ts': 'import { at } from "odd"\nexport default at',
      ...files,
    })
    const error = await bundleDirectory(directory).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(WorkflowError)
    expect((error as Error).message.replaceAll(directory, 'DIR')).toBe(message)
  })
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

test('a snapshot with some of its workflows has the modules that these need, and no others', async (test) => {
  const directory = await writeFiles(test, {
    'a.ts': 'import { shared } from "./lib/shared.ts"\nimport { ofA } from "./lib/a.ts"\nexport default shared + ofA',
    'b.ts': 'import { shared } from "./lib/shared.ts"\nimport { ofB } from "./lib/b.ts"\nexport default shared + ofB',
    'c.ts': 'import { ofB } from "./lib/b.ts"\nexport default async () => (await import("./lib/late.ts")).late + ofB',
    'lib/shared.ts': 'export const shared = "of both"',
    'lib/a.ts': 'export const ofA = "of a"',
    'lib/b.ts': 'export const ofB = "of b and c"',
    'lib/late.ts': 'export const late = "loaded later"',
  })
  const { content } = await bundleDirectory(directory)
  const carried = { path: 'node_modules/carried/index.js', content: 'exports.a = 1' }
  const workflows = ['a', 'b', 'c'].map((id) => ({ ...workflow({ id }), module: `${id}.js` }))
  const snapshot = { ...content, files: [...content.files, carried], workflows }
  const textOf = (...ids: string[]) => {
    const limited = limitToWorkflows(snapshot, (id) => ids.includes(id))
    expect(limited.workflows.map(({ id }) => id)).toEqual(ids)
    expect(limited.files).toContain(carried)
    const texts = ['of both', 'of a', 'of b and c', 'loaded later']
    return texts.filter((text) => limited.files.some((file) => file.content.includes(`"${text}"`)))
  }
  expect(textOf('a')).toEqual(['of both', 'of a'])
  expect(textOf('b')).toEqual(['of both', 'of b and c'])
  expect(textOf('c')).toEqual(['of b and c', 'loaded later'])
  expect(limitToWorkflows(snapshot, () => true)).toEqual(snapshot)
})
