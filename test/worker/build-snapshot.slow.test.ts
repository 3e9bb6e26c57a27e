/** Building a deployment: a separate process loads and checks its modules, and leaves nothing behind. */
import { chmodSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test, vi } from 'vitest'
import { buildSnapshot } from '../../src/domain/deployments/build-snapshot.ts'
import { snapshotId } from '../../src/domain/deployments/snapshot.ts'
import { WorkflowError } from '../../src/domain/workflows/workflow.ts'
import { newDirectory } from '../support/domain.ts'
import { moduleText, writeModules } from '../support/worker.ts'

const pattern = "{ type: 'object', properties: { name: { type: 'string', pattern: '^(a+)+$' } } }"
const header = "import { defineWorkflow } from 'execution-service/workflow'\n"

const refused: [string, Record<string, string>, string | RegExp][] = [
  [
    'throws',
    { 'a.ts': 'type A = 1\n\nthrow new Error("no network\\nhere")' },
    'DIR/a.ts:3 failed to load: Error: no network here.',
  ],
  [
    'exports nothing',
    { 'a.mjs': 'console.log("a")' },
    'DIR/a.mjs is not a valid workflow: its default export must be the result of defineWorkflow; a module that workflows import belongs in a subdirectory.',
  ],
  [
    'has an unknown option',
    {
      'a.ts': `${header}export default defineWorkflow({\n  id: 'a', version: '1', title: 'A',\n  atempts: 3,\n  variables: { type: 'object' }, output: {}, run: () => 1 })`,
    },
    'DIR/a.ts:4 is not a valid workflow: atempts is not an option of defineWorkflow: the options are id, version, title, variables, output, run, description, retry, timeLimitSeconds, concurrency, throttle, browser, evidence, signsIn, signedOut, waits, secrets, settings, deprecated.',
  ],
  [
    'has an invalid option',
    { 'a.mjs': moduleText('a', 'run: () => null,\nconcurrency: { limit: 0 }') },
    'DIR/a.mjs:2 is not a valid workflow: concurrency.limit must be an integer of at least 1 and at most 1000000000.',
  ],
  [
    'has the id of another',
    { 'a.mjs': moduleText('same'), 'b.mjs': moduleText('same') },
    'DIR/a.mjs and DIR/b.mjs have the same id "same": rename one of them.',
  ],
  ['ends its process', { 'a.mjs': 'process.exit(3)' }, 'DIR/a.mjs ended its process while loading (exit code 3).'],
  [
    'ends its process and says why',
    { 'a.mjs': 'console.error("TOKEN is missing")\nprocess.exit(3)' },
    'DIR/a.mjs ended its process while loading (exit code 3) after it had printed: TOKEN is missing.',
  ],
  [
    'fails for several reasons',
    {
      'a.mjs':
        'const cause = new Error("connect ECONNREFUSED")\nawait Promise.any([Promise.reject(new Error("fetch failed", { cause }))])',
    },
    'DIR/a.mjs failed to load: AggregateError: All promises were rejected: fetch failed: connect ECONNREFUSED.',
  ],
  [
    'reads a file next to it',
    { 'a.mjs': 'import { readFileSync } from "node:fs"\nreadFileSync(`${import.meta.dirname}/fonts/a.ttf`)' },
    "DIR/a.mjs:2 failed to load: Error: ENOENT: no such file or directory, open 'fonts/a.ttf'.",
  ],
  [
    'prints more than the log takes',
    {
      'a.mjs':
        'for (let line = 0; line < 2000; line += 1) console.log("x")\nawait new Promise((resolve) => setTimeout(resolve, 60_000))',
    },
    'DIR/a.mjs prints more than 1000 lines or 256 KiB while it is loaded: print in `run`, or less.',
  ],
  [
    'awaits a promise that never resolves',
    { 'a.mjs': 'await new Promise(() => {})' },
    'DIR/a.mjs did not load: its top-level await never completes.',
  ],
  [
    'is in a loop',
    { 'a.mjs': 'for (;;);' },
    'DIR/a.mjs did not load within 1.5 seconds: check for a top-level await or a loop that does not end.',
  ],
  [
    'has an invalid schema',
    { 'a.mjs': moduleText('a', "output: {\n  items: {\n    type: 'strnig' } }, run: () => null") },
    /^DIR\/a\.mjs:3: The output schema of workflow "a" is invalid: \/items\/type is "strnig", which is no type of JSON\. .+$/,
  ],
  [
    'has a misspelt keyword',
    {
      'a.mjs': moduleText(
        'a',
        "variables: { type: 'object', properties: { maximumLength: {\nmaximumLength: 1 } } }, run: () => null",
      ),
    },
    'DIR/a.mjs:2: The variables schema of workflow "a" is invalid: /properties/maximumLength/maximumLength is an unknown keyword. Names of extensions begin with `x-`.',
  ],
  [
    'has a reference to nothing',
    { 'a.mjs': moduleText('a', "output: { $defs: { a: {} },\n items: {\n$ref: '#/$defs/b' } }, run: () => null") },
    'DIR/a.mjs:3: The output schema of workflow "a" is invalid: /items/$ref refers to #/$defs/b, which the schema does not have.',
  ],
  [
    'has an unknown format',
    {
      'a.ts': `${header}const text = () => ({ type: 'string', format: 'mail' }) as const
        export default defineWorkflow({ id: 'a', version: '1', title: 'A', variables: { type: 'object' },
          output: { type: 'array', items: text() }, run: () => [] })`,
    },
    'DIR/a.ts:4: The output schema of workflow "a" is invalid: /items/format is "mail", which is no known format. Write a `pattern` instead.',
  ],
  [
    'has a pattern that can take very long',
    { 'a.mjs': moduleText('a', `variables: ${pattern}, run: () => null`) },
    /^DIR\/a\.mjs:\d+: The pattern `\^\(a\+\)\+\$` at \/properties\/name\/pattern in the variables schema of workflow "a" may take very long on some input\. /,
  ],
]

describe('a directory', () => {
  test.for(refused)('is refused when a module %s', async ([, modules, message], test) => {
    const directory = await writeModules(test, modules)
    const temporary = await newDirectory(test)
    vi.stubEnv('TMPDIR', temporary)
    test.onTestFinished(() => void vi.unstubAllEnvs())
    const error = await buildSnapshot(directory, { loadSecondsMax: 1.5, onOutput: () => {} }).catch(
      (reason: unknown) => reason,
    )
    expect(error).toBeInstanceOf(WorkflowError)
    const text = (error as Error).message.replaceAll(directory, 'DIR')
    if (typeof message === 'string') expect(text).toBe(message)
    else expect(text).toMatch(message)
    expect(readdirSync(temporary)).toEqual([])
  })

  test('has a workflow in each module, built to the same snapshot each time', async (test) => {
    const directory = await writeModules(test, {
      'two.ts': `${header}enum Colour { Red = 'red' }
        export default defineWorkflow({ id: 'one', version: '1', title: Colour.Red, variables: { type: 'object' }, output: {}, run: () => 1 })`,
      'one.mjs': moduleText('two', `description: '${'x'.repeat(8192)}', run: () => null`),
      'two.test.ts': 'throw new Error("a test is no workflow")',
    })
    const snapshot = await buildSnapshot(directory)
    expect(snapshot.workflows.map(({ id, title, module }) => [id, title, module])).toEqual([
      ['one', 'red', 'two.js'],
      ['two', 'A test', 'one.js'],
    ])
    expect(snapshotId(await buildSnapshot(directory), null)).toBe(snapshotId(snapshot, null))
    expect(snapshotId(snapshot, 'an account')).not.toBe(snapshotId(snapshot, null))
  })

  test('may have modules of every kind that TypeScript and Node.js know', async (test) => {
    // As tsc writes it.
    const compiled = `"use strict"; Object.defineProperty(exports, "__esModule", { value: true });
      const workflow_1 = require("execution-service/workflow");
      exports.default = (0, workflow_1.defineWorkflow)({ id: 'ID', version: '1', title: 'A', variables: { type: 'object' }, output: {}, run: () => 1 });`
    const source = (id: string) =>
      `${header}const run = (): unknown => 1\nexport default defineWorkflow({ id: '${id}', version: '1', title: 'A', variables: { type: 'object' }, output: {}, run })`
    const directory = await writeModules(test, {
      'a.cjs': compiled.replace('ID', 'a'),
      'b.js': compiled.replace('ID', 'b'),
      'c.cjs': compiled.replace('ID', 'c').replace('exports.default', 'module.exports'),
      'd.cts': source('d'),
      'e.tsx': source('e'),
    })
    writeFileSync(join(directory, 'package.json'), '{"type":"commonjs"}')
    const { workflows } = await buildSnapshot(directory)
    expect(workflows.map(({ id }) => id)).toEqual(['a', 'b', 'c', 'd', 'e'])
  })

  test('prints lines that are handed over one by one, without control characters and in full', async (test) => {
    const print = 'console.log("\\x1b[31m{\\"level\\":30}")\nprocess.stderr.write("last")\n'
    const directory = await writeModules(test, { 'a.mjs': print + moduleText('a', 'run: () => null') })
    const lines: string[] = []
    await buildSnapshot(directory, { onOutput: (line) => lines.push(line) })
    expect(lines.sort()).toEqual(['last', '{"level":30}'])
  })
})

/** Code that writes a line to the pipe of the process that loads modules. */
function reporting(line: string): string {
  return `import { writeSync } from 'node:fs'\nwriteSync(3, ${JSON.stringify(`${line}\n`)})\n`
}

const definition = { version: '1', title: 'A', variables: { type: 'object' }, output: {} }
const invalidReport = 'The workflows were not built: the process that loads them has sent an invalid report.'
/** Its conversion to text throws. */
const textless = { toString: 1, valueOf: 1 }

const forged: [string, unknown, string][] = [
  ['no JSON', undefined, invalidReport],
  ['no message', 7, invalidReport],
  ['an unknown message', { kind: textless }, invalidReport],
  ['the report of another step', { kind: 'checked', workflows: [] }, invalidReport],
  ['other files', { kind: 'bundled', content: { files: [], externals: ['../x'] }, modules: [] }, invalidReport],
  ['no definitions', { kind: 'loaded', definitions: 1 }, invalidReport],
  ['definitions of more modules', { kind: 'loaded', definitions: [definition, definition] }, invalidReport],
  ['a module without a number', { kind: 'loading', index: textless }, invalidReport],
  ['a refusal without a text', { kind: 'refused', message: textless, isEmpty: false }, invalidReport],
  ['a refusal with control characters', { kind: 'refused', message: 'no\x1b[31m', isEmpty: textless }, 'no'],
  [
    'a definition that cannot be one',
    { kind: 'loaded', definitions: [{ ...definition, id: '../a' }] },
    'DIR/a.mjs is not a valid workflow: id must be 1 to 128 letters, digits, dots, underscores and hyphens, and not only one or two dots.',
  ],
  [
    'a schema that can take very long',
    {
      kind: 'loaded',
      definitions: [{ ...definition, id: 'a', output: { type: 'string', pattern: '^(a+)+$' } }],
    },
    'DIR/a.mjs: The pattern `^(a+)+$` at /pattern in the output schema of workflow "a" may take very long on some input. Anchor it with ^, and let no two adjacent or nested repetitions match the same character.',
  ],
]

describe('a module that reports in place of the process that loads it', () => {
  test.for(forged)('cannot deploy with %s', async ([, message, refusal], test) => {
    const uncaught = vi.fn()
    process.on('uncaughtExceptionMonitor', uncaught)
    test.onTestFinished(() => void process.off('uncaughtExceptionMonitor', uncaught))
    const line = message === undefined ? '{' : JSON.stringify(message)
    // Afterwards, the report of the process itself is ignored.
    const directory = await writeModules(test, { 'a.mjs': `${reporting(line)}await new Promise(() => {})` })
    const error = await buildSnapshot(directory).catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(WorkflowError)
    expect((error as Error).message.replaceAll(directory, 'DIR')).toBe(refusal)
    expect(uncaught).not.toHaveBeenCalled()
  })

  test('cannot deploy definitions that are nested too deep for the service', async (test) => {
    const report =
      '{"kind":"loaded","definitions":[{"id":"a","version":"1","title":"A","output":{},"variables":{"type":"object","x":'
    const write = `import { writeSync } from 'node:fs'
      writeSync(3, ${JSON.stringify(report)} + '['.repeat(20_000) + ']'.repeat(20_000) + '}}]}\\n')
      await new Promise(() => {})`
    const directory = await writeModules(test, { 'a.mjs': write })
    await expect(buildSnapshot(directory)).rejects.toThrow(new WorkflowError(invalidReport))
  })

  test('cannot change the files that are deployed', async (test) => {
    const change = `import { readdirSync, writeFileSync } from 'node:fs'
      const at = (path) => import.meta.dirname + '/' + path
      for (const path of readdirSync(import.meta.dirname)) try { writeFileSync(at(path), 'changed') } catch {}\n`
    const directory = await writeModules(test, { 'a.mjs': change + moduleText('a') })
    const { files } = await buildSnapshot(directory)
    expect(files.find(({ path }) => path === 'a.js')?.content).toContain('readdirSync')
  })

  test('cannot fill the memory with a line without an end', async (test) => {
    const write = `import { writeSync } from 'node:fs'
      const chunk = 'x'.repeat(1024 * 1024)
      for (;;) try { writeSync(3, chunk) } catch {}\n`
    const directory = await writeModules(test, { 'a.mjs': write + moduleText('a', 'run: () => null') })
    await expect(buildSnapshot(directory)).rejects.toThrow(new WorkflowError(invalidReport))
    expect(process.memoryUsage().rss).toBeLessThan(1024 ** 3)
  })
})

test.runIf(process.getuid?.() === 0)(
  'a module that another user executes can neither change nor add files while it is loaded',
  async (test) => {
    const attempts = `import { lchownSync, symlinkSync, writeFileSync } from 'node:fs'
      const own = import.meta.dirname
      const codes = []
      const attempt = (act) => { try { act(); codes.push('done') } catch (error) { codes.push(error.code) } }
      attempt(() => writeFileSync(own + '/a.js', ''))
      attempt(() => writeFileSync(own + '/b.js', ''))
      attempt(() => symlinkSync('/etc', own + '/node_modules'))
      attempt(() => symlinkSync('/etc', own + '/../link'))\n`
    const directory = await writeModules(test, {
      'a.mjs': `${attempts}${moduleText('a', 'title: `${process.getuid()} ${codes}`, run: () => null')}`,
    })
    const temporary = await newDirectory(test)
    for (const path of [directory, temporary]) chmodSync(path, 0o755)
    vi.stubEnv('TMPDIR', temporary)
    test.onTestFinished(() => void vi.unstubAllEnvs())
    const { workflows } = await buildSnapshot(directory, { identity: { uid: 61234, gid: 61234 } })
    expect(workflows[0]?.title).toBe('61234 EACCES,EACCES,EACCES,EACCES')
    expect(readdirSync(temporary)).toEqual([])
  },
)

test.for([
  ['that leaves its group', "spawn('sleep', ['600'], { detached: true, stdio: 'ignore' })"],
  ['that has another environment', "spawn('sleep', ['600'], { env: { PATH: process.env.PATH }, stdio: 'ignore' })"],
])('a process %s, which a module starts, ends with the build', async ([, spawn], test) => {
  const start = `import { spawn } from 'node:child_process'
    const child = ${spawn}
    child.unref()\n`
  const text = start + moduleText('a', 'title: String(child.pid), run: () => null')
  const { workflows } = await buildSnapshot(await writeModules(test, { 'a.mjs': text }))
  const pid = Number(workflows[0]?.title)
  expect(pid).toBeGreaterThan(0)
  await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow('ESRCH'), { timeout: 10_000 })
})

test('packages with native code are found where the workflows are', async () => {
  // This directory is below the packages of the service.
  const directory = fileURLToPath(new URL('./native-workflows', import.meta.url))
  const { externals, workflows } = await buildSnapshot(directory)
  expect(externals).toEqual(['@node-rs/argon2'])
  expect(workflows).toMatchObject([{ id: 'hash', title: 'function' }])
})

test('a module sees no secret of the service in its environment', async (test) => {
  const names = ['BROWSER_CDP_URL', 'DATABASE_URL', 'ENCRYPTION_KEY', 'ENCRYPTION_KEY_PREVIOUS']
  for (const name of names) vi.stubEnv(name, 'canary')
  vi.stubEnv('SETTING_OF_A_WORKFLOW', 'canary')
  vi.stubEnv('ANOTHER_SETTING', 'canary')
  vi.stubEnv('EXECUTOR_ENV', 'SETTING_*')
  test.onTestFinished(() => void vi.unstubAllEnvs())
  const seen = "Object.keys(process.env).filter((name) => process.env[name] === 'canary').join()"
  const directory = await writeModules(test, { 'a.mjs': moduleText('a', `title: ${seen}, run: () => null`) })
  expect((await buildSnapshot(directory)).workflows).toMatchObject([{ title: 'SETTING_OF_A_WORKFLOW' }])
})
