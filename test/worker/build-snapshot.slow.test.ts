/** Building a deployment: its modules are loaded and checked in a process of their own, of which nothing is left. */
import { readdirSync } from 'node:fs'
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
    'DIR/a.ts:3 failed to load: Error: no network.',
  ],
  [
    'exports nothing',
    { 'a.mjs': 'console.log("a")' },
    'DIR/a.mjs is not a valid workflow: its default export must be the result of defineWorkflow.',
  ],
  [
    'has an unknown option',
    {
      'a.ts': `${header}export default defineWorkflow({\n  id: 'a', version: '1', title: 'A',\n  atempts: 3,\n  variables: { type: 'object' }, output: {}, run: () => 1 })`,
    },
    'DIR/a.ts:4 is not a valid workflow: atempts is not an option of defineWorkflow: the options are id, version, title, variables, output, run, description, retry, timeLimitSeconds, concurrencyLimit, concurrency, throttle, browser, evidence, deprecated.',
  ],
  [
    'has an invalid option',
    { 'a.mjs': moduleText('a', 'run: () => null,\nconcurrencyLimit: 0') },
    'DIR/a.mjs:2 is not a valid workflow: concurrencyLimit must be an integer of at least 1.',
  ],
  [
    'has the id of another',
    { 'a.mjs': moduleText('same'), 'b.mjs': moduleText('same') },
    'DIR/a.mjs and DIR/b.mjs have the same id "same": rename one of them.',
  ],
  ['ends its process', { 'a.mjs': 'process.exit(3)' }, 'DIR/a.mjs ended its process while loading (exit code 3).'],
  [
    'awaits a promise that never settles',
    { 'a.mjs': 'await new Promise(() => {})' },
    'DIR/a.mjs did not load: its top-level await never settles.',
  ],
  [
    'is in a loop',
    { 'a.mjs': 'for (;;);' },
    'DIR/a.mjs did not load within 1.5 seconds: check for a top-level await or a loop that does not end.',
  ],
  [
    'has an invalid schema',
    { 'a.mjs': moduleText('a', "output: { type: 'strnig' }, run: () => null") },
    /^DIR\/a\.mjs:\d+: The output schema of workflow "a" is invalid: \/type must be .+\.$/,
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
    const error = await buildSnapshot(directory, { loadSecondsMax: 1.5 }).catch((reason: unknown) => reason)
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
      'one.mjs': moduleText('two', `description: '${'x'.repeat(1_000_000)}', run: () => null`),
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
})

const forged = {
  'a package that leads out of the deployment': { files: [{ path: 'a.js', content: '' }], externals: ['../../x/y'] },
  'a file that leads out of the deployment': { files: [{ path: '../a.js', content: '' }], externals: [] },
  'no files': { externals: [] },
}

describe('a module that reports in place of the loader', () => {
  test.for(Object.entries(forged))('cannot deploy %s', async ([, content], test) => {
    const report = JSON.stringify({ kind: 'loaded', content, loaded: [] })
    const write = `import { writeSync } from 'node:fs'\nwriteSync(3, ${JSON.stringify(`${report}\n`)})\n`
    const directory = await writeModules(test, { 'a.mjs': write + moduleText('a', 'run: () => null') })
    await expect(buildSnapshot(directory)).rejects.toThrow(
      'The workflows were not built: their process has reported an invalid snapshot.',
    )
  })

  test('cannot deploy a definition that parseWorkflow refuses', async (test) => {
    const workflow = { id: '../a', version: '1', title: 'A', variables: { type: 'object' }, output: {}, module: 'a.js' }
    const content = { files: [{ path: 'a.js', content: '' }], externals: [] }
    const report = JSON.stringify({ kind: 'loaded', content, loaded: [{ workflow, file: 'a.mjs', lines: {} }] })
    const write = `import { writeSync } from 'node:fs'\nwriteSync(3, ${JSON.stringify(`${report}\n`)})\n`
    const directory = await writeModules(test, { 'a.mjs': write + moduleText('a', 'run: () => null') })
    await expect(buildSnapshot(directory)).rejects.toThrow('a.mjs is not a valid workflow: id must be')
  })

  test('cannot fill the memory with a line without an end', async (test) => {
    const write = `import { writeSync } from 'node:fs'
      const chunk = 'x'.repeat(1024 * 1024)
      for (;;) try { writeSync(3, chunk) } catch {}\n`
    const directory = await writeModules(test, { 'a.mjs': write + moduleText('a', 'run: () => null') })
    await expect(buildSnapshot(directory)).rejects.toThrow('has sent an invalid report')
    expect(process.memoryUsage().rss).toBeLessThan(1024 ** 3)
  })
})

test('a detached process that a module starts ends with the build', async (test) => {
  const start = `import { spawn } from 'node:child_process'
    const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' })
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
  test.onTestFinished(() => void vi.unstubAllEnvs())
  const seen = "Object.keys(process.env).filter((name) => process.env[name] === 'canary').join()"
  const directory = await writeModules(test, { 'a.mjs': moduleText('a', `title: ${seen}, run: () => null`) })
  expect((await buildSnapshot(directory)).workflows).toMatchObject([{ title: 'SETTING_OF_A_WORKFLOW' }])
})
