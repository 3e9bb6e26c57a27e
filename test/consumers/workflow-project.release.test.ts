/**
 * A project that `workflows init` makes outside this checkout: installed without a network, type-checked, tested, and
 * deployed and run, with its own dependencies.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createExecutionClient, unwrap } from '../../src/client/index.ts'
import { type Installation, newInstallation } from '../support/installation.ts'
import { removeDirectory, temporaryDirectory } from '../support/service.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const installed = (name: string) => join(root, 'node_modules', name)

const directory = temporaryDirectory()
const project = join(directory, 'My Workflows')
const workflows = join(project, 'workflows')
let installation: Installation

beforeAll(async () => {
  installation = await newInstallation({ WORKFLOWS_DIR: workflows })
  const { code, stderr } = await installation.runCommand('workflows', 'init', project)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  await install()
})
afterAll(async () => {
  await installation.remove()
  removeDirectory(directory)
})

const run = promisify(execFile)

/** Runs a script of the project with the version of Node that it would install. */
async function npm(...args: string[]): Promise<{ code: number; output: string }> {
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
    NO_COLOR: '1',
  }
  // A test of the project is not a part of this test run.
  delete env.NODE_TEST_CONTEXT
  const options = { cwd: project, env, maxBuffer: 16 * 1024 * 1024 }
  return run('npm', args, options).then(
    ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
    ({ code, stdout, stderr }) => ({ code, output: stdout + stderr }),
  )
}

/** The directories of the packages that the project names, and of those that they need. */
function closure(names: string[]): string[] {
  const found = new Set<string>()
  const visit = (directory: string) => {
    if (found.has(directory)) return
    found.add(directory)
    const { dependencies = {} } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'))
    for (const name of Object.keys(dependencies)) {
      // Of another version than the one that all others share.
      const own = join(directory, 'node_modules', name)
      visit(existsSync(own) ? own : installed(name))
    }
  }
  for (const name of names) visit(installed(name))
  return [...found]
}

/** Packs what this checkout has installed: with an empty cache and no network, nothing else can be installed. */
async function install(): Promise<void> {
  const packs = join(directory, 'packs')
  mkdirSync(packs)
  const own = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))
  const packageFile = own.devDependencies['execution-service'].slice('file:'.length)
  expect(readdirSync(project)).toContain(packageFile)
  const ofPackage = ['@sinonjs/fake-timers', 'ajv', 'ajv-formats', 'fflate', 'otpauth', 'playwright-core', 'typebox']
  const directories = closure(['typescript', '@types/node', ...ofPackage])
  await run('npm', ['pack', '--ignore-scripts', '--silent', ...directories], { cwd: packs })
  const files = readdirSync(packs).map((name) => join(packs, name))
  const offline = ['--offline', '--omit=optional', '--ignore-scripts', '--cache', join(directory, 'cache')]
  const { code, output } = await npm('install', ...offline, '--save-dev', ...files)
  expect(code, output).toBe(0)
}

test('the project has a manifest that names only its own files and versions of this checkout', () => {
  expect(readdirSync(project).sort()).toEqual(
    [
      '.gitignore',
      'README.md',
      'execution-service-0.2.0.tgz',
      'node_modules',
      'package-lock.json',
      'package.json',
      'tsconfig.json',
      'workflows',
    ].sort(),
  )
  const { name, optionalDependencies } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))
  expect(name).toBe('my-workflows')
  expect(optionalDependencies).toEqual(
    JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).optionalDependencies,
  )
})

test('the package has the two modules, and nothing of the service that they do not use', () => {
  const packageDirectory = join(project, 'node_modules/execution-service')
  const files = readdirSync(packageDirectory, { recursive: true, encoding: 'utf8' })
  expect(files.filter((file) => /storage\/(?!$|temporary-directory)|surfaces|config\.js/.test(file))).toEqual([])
  const code = files
    .filter((file) => file.endsWith('.js'))
    .map((file) => readFileSync(join(packageDirectory, file), 'utf8'))
  const imported = code.flatMap((text) =>
    [...text.matchAll(/(?:^import|\bfrom|\bimport\()\s*(["'])([\w@./:-]+)\1/gm)].map(([, , it = '']) => it),
  )
  const packages = new Set(imported.filter((each) => !/^(\.|node:)/.test(each)))
  const { dependencies } = JSON.parse(readFileSync(join(packageDirectory, 'package.json'), 'utf8'))
  // The bundler is used if the project has it.
  const optional = ['rolldown', 'rolldown/parseAst']
  const expected = [...Object.keys(dependencies), ...optional, 'ajv/dist/2020.js'].filter(
    (it) => !/^(ajv|typebox)$/.test(it),
  )
  expect([...packages].sort()).toEqual(expected.sort())
})

test('a second init in the directory is refused with one sentence, and changes nothing', async () => {
  const before = readFileSync(join(project, 'package.json'), 'utf8')
  const { code, stderr } = await installation.runCommand('workflows', 'init', project)
  expect({ code, stderr }).toEqual({ code: 1, stderr: `${project} is not empty: name a new or an empty directory.\n` })
  expect(readFileSync(join(project, 'package.json'), 'utf8')).toBe(before)
  const file = join(project, 'README.md')
  expect((await installation.runCommand('workflows', 'init', file)).stderr).toBe(
    `${file} cannot be made (EEXIST): name a directory that you may write to.\n`,
  )
})

test('its tests pass, and its types fit', async () => {
  const tests = await npm('test')
  expect(tests.output).toMatch(/pass 5\b/)
  expect(tests.code, tests.output).toBe(0)
  expect(await npm('run', '--silent', 'types')).toEqual({ code: 0, output: '' })
})

test('a test with variables or an output that the schemas do not have does not compile', async () => {
  const file = join(workflows, 'wrong.test.ts')
  writeFileSync(
    file,
    `import { runWorkflow } from 'execution-service/testing'
import greet from './greet.ts'
const run = await runWorkflow(greet, { variables: { nam: 'Ada' } })
if (run.status === 'succeeded') run.output.text.toFixed()
`,
  )
  const { code, output } = await npm('run', '--silent', 'types')
  rmSync(file)
  expect(code).not.toBe(0)
  expect(output).toMatch(/wrong\.test\.ts\(3,\d+\): error TS2561: .*Did you mean to write 'name'/)
  expect(output).toMatch(/wrong\.test\.ts\(4,\d+\): error TS2551: Property 'toFixed' does not exist on type 'string'/)
  expect(output.match(/error TS/g)).toHaveLength(2)
})

test('it is deployed and run, with a package of the project and one that has native code', async () => {
  const dependency = join(project, 'node_modules/shout')
  mkdirSync(dependency)
  writeFileSync(join(dependency, 'package.json'), '{ "name": "shout", "version": "1.0.0", "main": "index.cjs" }')
  writeFileSync(join(dependency, 'index.cjs'), 'exports.shout = (text) => text.toUpperCase()\n')
  symlinkSync(installed('@node-rs'), join(project, 'node_modules/@node-rs'))
  writeFileSync(
    join(workflows, 'shout.js'),
    `import { hash } from '@node-rs/argon2'
import { shout } from 'shout'
import { defineWorkflow } from 'execution-service/workflow'
export default defineWorkflow({
  id: 'shout', version: '1.0.0', title: 'Shout', variables: { type: 'object' }, output: { type: 'array' },
  run: async () => [shout('hello'), (await hash('hello')).slice(0, 9)],
})
`,
  )
  const deployed = await installation.runCommand('workflows', 'deploy', workflows)
  expect(deployed).toMatchObject({ code: 0, stdout: expect.stringContaining('  shout 1.0.0 is new\n') })
  const { executionUrl } = await installation.start()
  const { key: apiKey } = await installation.createAccount()
  const client = createExecutionClient({ baseUrl: executionUrl, apiKey })
  const greeted = unwrap(await client.runs.queueAndWait('greet', { name: 'Ada' }))
  expect(greeted).toMatchObject({ status: 'succeeded', output: { text: 'Hello, Ada!', characters: 11 } })
  const shouted = unwrap(await client.runs.queueAndWait('shout', {}))
  expect(shouted).toMatchObject({ status: 'succeeded', output: ['HELLO', '$argon2id'] })
})
