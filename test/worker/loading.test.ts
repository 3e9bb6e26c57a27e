/** Loading workflows: an invalid module prevents the start, with one sentence that names the file and the error. */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { describeWorkflows } from '../../src/domain/workflows/describe-workflows.ts'
import { WorkflowError } from '../../src/domain/workflows/workflow.ts'
import type { Worker } from '../../src/worker/worker.ts'
import { newAccount, newDirectory, openDomain, queueRun, type Test } from '../support/domain.ts'
import { waitLimits } from '../support/timeouts.ts'
import { moduleText, startWorker, waitForRun, writeModules } from '../support/worker.ts'

/** Counts the processes that were started for the folder. */
function countProcesses(folder: string): number {
  return execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).split(folder).length - 1
}

/** The errors with which the service and a worker fail to start. */
async function startErrors(test: Test, folder: string, loadSecondsMax = 20): Promise<unknown[]> {
  const domain = await openDomain(test)
  const reason = (promise: Promise<unknown>) =>
    promise.then(
      () => 'started',
      (error) => error,
    )
  return Promise.all([
    reason(describeWorkflows(folder, loadSecondsMax)),
    reason(startWorker(test, domain, { workflowsDirectory: folder, loadSecondsMax })),
  ])
}

const invalid: [string, Record<string, string>, RegExp][] = [
  ['has a syntax error', { 'a.mjs': 'export default {' }, /^\S*a\.mjs failed to load: SyntaxError: .+\.$/],
  ['throws', { 'a.mjs': 'throw new Error("no network\\nhere")' }, /^\S*a\.mjs failed to load: Error: no network\.$/],
  [
    'imports a missing module',
    { 'a.mjs': 'import "./b.js"' },
    /^\S*a\.mjs failed to load: Error: Cannot find module .+\.$/,
  ],
  [
    'exports nothing',
    { 'a.mjs': '' },
    /^\S*a\.mjs is not a valid workflow: its default export must be the result of defineWorkflow\.$/,
  ],
  [
    'has an invalid option',
    { 'a.mjs': moduleText('a', 'run: () => null, concurrencyLimit: 0') },
    /^\S*a\.mjs is not a valid workflow: concurrencyLimit must be an integer of at least 1\.$/,
  ],
  [
    'repeats the id of another',
    { 'a.mjs': moduleText('same'), 'b.mjs': moduleText('same') },
    /^\S*a\.mjs and \S*b\.mjs have the same id "same": rename one of them\.$/,
  ],
  [
    'ends its process',
    { 'a.mjs': 'process.exit(3)' },
    /^A module of WORKFLOWS_DIR \(\S+\) ended its process while loading \(exit code 3\)\.$/,
  ],
]

describe.concurrent('a folder of workflows', () => {
  test.for(invalid)('is rejected when a module %s', async ([, modules, sentence], test) => {
    const folder = await writeModules(test, modules)
    for (const error of await startErrors(test, folder)) {
      expect(error).toBeInstanceOf(WorkflowError)
      expect((error as Error).message).toMatch(sentence)
    }
    await vi.waitUntil(() => countProcesses(folder) === 0, waitLimits)
  })

  test('is rejected when a schema is invalid, and no process is left', async (test) => {
    const folder = await writeModules(test, { 'a.mjs': moduleText('a', "output: { type: 'strnig' }, run: () => null") })
    const [, error] = await startErrors(test, folder)
    expect(error).toBeInstanceOf(WorkflowError)
    expect((error as Error).message).toMatch(/^The output schema of workflow "a" is invalid: .+\.$/)
    await vi.waitUntil(() => countProcesses(folder) === 0, waitLimits)
  })

  test('is rejected by the API when a pattern can take very long', async (test) => {
    const schema = "{ type: 'object', properties: { name: { type: 'string', pattern: '^(a+)+$' } } }"
    const folder = await writeModules(test, { 'a.mjs': moduleText('a', `variables: ${schema}, run: () => null`) })
    const sentence =
      /^The pattern `\^\(a\+\)\+\$` at \/properties\/name\/pattern in the variables schema of workflow "a" /
    await expect(describeWorkflows(folder)).rejects.toThrow(sentence)
  })

  test('is rejected when a module awaits a promise that never settles', async (test) => {
    const folder = await writeModules(test, { 'a.mjs': 'await new Promise(() => {})' })
    const sentence = `A module of WORKFLOWS_DIR (${folder}) ended its process while loading (exit code 13).`
    await expect(describeWorkflows(folder)).rejects.toThrow(new WorkflowError(sentence))
  })

  test.for([
    ['waits and keeps its process alive', 'setInterval(() => {}, 1000); await new Promise(() => {})'],
    ['is in a loop', 'for (;;);'],
  ] as const)('is rejected when a module %s beyond the time limit', async ([, text], test) => {
    const folder = await writeModules(test, { 'a.mjs': text })
    for (const error of await startErrors(test, folder, 0.5)) {
      expect(error).toBeInstanceOf(WorkflowError)
      expect((error as Error).message).toBe(
        `The modules of WORKFLOWS_DIR (${folder}) did not load within 0.5 seconds: check for a top-level await or a loop that does not end.`,
      )
    }
    await vi.waitUntil(() => countProcesses(folder) === 0, waitLimits)
  })

  test('is rejected when it does not exist', async (test) => {
    const folder = join(await newDirectory(test), 'missing')
    for (const error of await startErrors(test, folder)) {
      expect(error).toBeInstanceOf(WorkflowError)
      expect((error as Error).message).toMatch(/^WORKFLOWS_DIR \(\S+missing\) cannot be read: .+\.$/)
    }
  })

  test('has a workflow in each module; tests, types and other files are ignored', async (test) => {
    const folder = await writeModules(test, {
      'one.ts': `import { defineWorkflow } from 'execution-service/workflow'
        const id: string = 'one'
        export default defineWorkflow({ id, version: '1', title: 'One', variables: { type: 'object' }, output: {}, run: () => 1 })`,
      'two.mjs': moduleText('two'),
      'two.test.ts': 'throw new Error("a test is no workflow")',
      'types.d.ts': 'throw new Error("nor are types")',
      'README.md': 'Nor is this.',
    })
    expect((await describeWorkflows(folder)).map(({ id }) => id)).toEqual(['one', 'two'])
  })

  test('may have large definitions', async (test) => {
    const description = `description: '${'x'.repeat(1_000_000)}', run: () => null`
    const folder = await writeModules(test, {
      'a.mjs': moduleText('a', description),
      'b.mjs': moduleText('b', description),
    })
    expect(await describeWorkflows(folder)).toHaveLength(2)
  })
})

test('a module sees no secret of the service in its environment', async (test) => {
  const names = ['BROWSER_CDP_URL', 'DATABASE_URL', 'ENCRYPTION_KEY', 'ENCRYPTION_KEY_PREVIOUS']
  for (const name of names) vi.stubEnv(name, 'canary')
  vi.stubEnv('SETTING_OF_A_WORKFLOW', 'canary')
  test.onTestFinished(() => void vi.unstubAllEnvs())
  const seen = "Object.keys(process.env).filter((name) => process.env[name] === 'canary').join()"
  const folder = await writeModules(test, { 'a.mjs': moduleText('a', `title: ${seen}, run: () => null`) })
  expect(await describeWorkflows(folder)).toMatchObject([{ title: 'SETTING_OF_A_WORKFLOW' }])
})

describe.concurrent('a worker', () => {
  const secret = "variables: { type: 'object', properties: { password: { type: 'string', writeOnly: true } } }"

  async function openFolder(test: Test, modules: Record<string, string>) {
    const folder = await writeModules(test, modules)
    const domain = await openDomain(test, { workflows: await describeWorkflows(folder) })
    return { folder, domain, principal: (await newAccount(domain)).principal }
  }

  async function startHere(test: Test, { folder, domain }: Awaited<ReturnType<typeof openFolder>>) {
    return startWorker(test, domain, { workflowsDirectory: folder, slots: 1 })
  }

  async function stopAndCount(worker: Worker, folder: string): Promise<void> {
    await worker.stop(0)
    await vi.waitUntil(() => countProcesses(folder) === 0, waitLimits)
  }

  test('fails a run whose secrets cannot be decrypted, and leaves no lease and no process', async (test) => {
    const opened = await openFolder(test, {
      'a.mjs': moduleText('a', `${secret}, run: ({ variables }) => variables.password.length`),
    })
    const { domain, principal, folder } = opened
    const queue = (password: string) => queueRun(domain, principal, { workflowId: 'a', variables: { password } })
    const [damaged, whole] = [await queue('first'), await queue('second')]
    const secrets = Buffer.from('not the ciphertext')
    await domain.store.write(({ query }) =>
      query.updateTable('runs').set({ secrets }).where('id', '=', damaged.id).execute(),
    )
    const { worker } = await startHere(test, opened)
    expect(await waitForRun(domain, whole)).toMatchObject({ status: 'succeeded', output: 6 })
    expect(await waitForRun(domain, damaged)).toMatchObject({
      status: 'failed',
      reason: 'workerLost',
      startedAt: expect.any(Number),
    })
    await stopAndCount(worker, folder)
  })

  test('whose workflows no longer load returns its runs to the queue and reports a fatal error', async (test) => {
    const opened = await openFolder(test, { 'a.mjs': moduleText('a', 'run: () => process.exit()') })
    const { domain, principal, folder } = opened
    const { worker, fatal } = await startHere(test, opened)
    writeFileSync(join(folder, 'a.mjs'), 'throw new Error("broken since")')
    const first = await queueRun(domain, principal, { workflowId: 'a' })
    expect(await waitForRun(domain, first)).toMatchObject({ status: 'failed', reason: 'workflowExited' })
    const second = await queueRun(domain, principal, { workflowId: 'a' })
    await vi.waitUntil(() => fatal.length > 0, waitLimits)
    expect(fatal).toEqual([expect.any(WorkflowError)])
    const back = { status: 'queued', reason: 'workerStopped' }
    expect(await domain.runs.get(principal.accountId, second.id)).toMatchObject(back)
    await stopAndCount(worker, folder)
  })
})
