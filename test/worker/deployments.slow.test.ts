/** Workers execute each run by its own deployment, and no workflow stops another. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import type { Snapshot } from '../../src/domain/deployments/snapshot.ts'
import { deploySnapshot, newAccount, newDirectory, openDomain, queueRun, type Test } from '../support/domain.ts'
import { runModule, writtenSnapshot } from '../support/snapshots.ts'
import { sqlite } from '../support/store-kinds.ts'
import { waitLimits } from '../support/timeouts.ts'
import { openInstallation, startWorker, waitForRun } from '../support/worker.ts'

const returning = (version: string) =>
  writtenSnapshot({ say: { version, module: runModule(`return '${version}'`) }, other: { module: runModule('') } })

const open = (test: Test, snapshot: Snapshot) => openInstallation(test, sqlite, snapshot)

/** Opens another domain on the store, after the deployment of this snapshot. */
const deploy = (test: Test, location: string, snapshot: Snapshot) => openDomain(test, { location, snapshot })

describe.concurrent('a worker', () => {
  test('executes each run by the deployment that validated it, and a new one without a restart', async (test) => {
    const { domain: first, principal } = await open(test, returning('1'))
    const early = await queueRun(first, principal, { workflowId: 'say' })
    const second = await deploy(test, first.location, returning('2'))
    await startWorker(test, first)
    const late = await queueRun(second, principal, { workflowId: 'say' })
    expect(await waitForRun(first, early)).toMatchObject({ output: '1', workflowVersion: '1' })
    expect(await waitForRun(first, late)).toMatchObject({ output: '2', workflowVersion: '2' })
    const third = await deploy(test, first.location, returning('3'))
    const next = await queueRun(third, principal, { workflowId: 'say' })
    expect(await waitForRun(first, next)).toMatchObject({ output: '3', workflowVersion: '3' })
    expect((await first.runs.get(principal.accountId, next.id))?.deploymentId).not.toBe(late.deploymentId)
    const again = await queueRun(first, principal, { workflowId: 'say' })
    expect(await waitForRun(first, again)).toMatchObject({ output: '1', deploymentId: early.deploymentId })
  })

  test('executes every attempt by the same deployment', async (test) => {
    const failing = (version: string) => {
      const module = runModule(`if (attempt < 3) throw new Error('once more'); return '${version}'`)
      return writtenSnapshot({
        say: { version, module, retry: { maxAttempts: 3, backoffSeconds: 0.3, backoffFactor: 1 } },
      })
    }
    const { domain, principal } = await open(test, failing('1'))
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId: 'say' })
    await vi.waitUntil(async () => (await domain.runs.get(principal.accountId, run.id))?.attempts === 1, waitLimits)
    await deploy(test, domain.location, failing('2'))
    expect(await waitForRun(domain, run)).toMatchObject({ status: 'succeeded', attempts: 3, output: '1' })
  })

  test('starts without a deployment, and serves the first one', async (test) => {
    const empty = await openDomain(test)
    const { principal } = await newAccount(empty)
    await startWorker(test, empty)
    const domain = await deploy(test, empty.location, returning('1'))
    expect(await waitForRun(domain, await queueRun(domain, principal, { workflowId: 'say' }))).toMatchObject({
      output: '1',
    })
  })

  test('executes the queued runs of a workflow that was removed', async (test) => {
    const { domain, principal } = await open(test, returning('1'))
    const run = await queueRun(domain, principal, { workflowId: 'say' })
    await deploy(test, domain.location, writtenSnapshot({ other: { module: runModule('') } }))
    await startWorker(test, domain)
    expect(await waitForRun(domain, run)).toMatchObject({ status: 'succeeded', output: '1' })
  })

  test('executes runs from before there were deployments by the current one', async (test) => {
    const before = await openDomain(test, { workflows: returning('0').workflows })
    const { principal } = await newAccount(before)
    const run = await queueRun(before, principal, { workflowId: 'say' })
    await deploy(test, before.location, returning('1'))
    await startWorker(test, before)
    expect(await waitForRun(before, run)).toMatchObject({ status: 'succeeded', output: '1', deploymentId: null })
  })

  test('fails a run whose secrets cannot be decrypted, and goes on', async (test) => {
    const variables = { type: 'object', properties: { password: { type: 'string', writeOnly: true } } }
    const module = runModule('return variables.password.length')
    const { domain, principal } = await open(test, writtenSnapshot({ measure: { module, variables } }))
    const queue = (password: string) => queueRun(domain, principal, { workflowId: 'measure', variables: { password } })
    const [damaged, whole] = [await queue('first'), await queue('second')]
    const secrets = Buffer.from('not the ciphertext')
    await domain.store.write(({ query }) =>
      query.updateTable('runs').set({ secrets }).where('id', '=', damaged.id).execute(),
    )
    await startWorker(test, domain, { slots: 1 })
    expect(await waitForRun(domain, whole)).toMatchObject({ status: 'succeeded', output: 6 })
    expect(await waitForRun(domain, damaged)).toMatchObject({ status: 'failed', reason: 'workerLost' })
  })

  test.for([
    ['throws', 'throw new RangeError("no network")', 'workflowFailed', 'RangeError', /^no network$/],
    ['has no workflow', 'export default 1', 'workflowFailed', 'TypeError', /has no function run/],
    [
      'ends its process',
      'process.exit(3)',
      'workflowExited',
      'ProcessExit',
      /exited with code 3 while its module loaded/,
    ],
    [
      'never loads',
      'setInterval(() => {}, 1000); await new Promise(() => {})',
      'workflowExited',
      'LoadTimeout',
      /did not load within/,
    ],
    ['ends its process later', 'setTimeout(() => process.exit(4), 30)', 'workflowExited', 'ProcessExit', /code 4/],
  ] as const)('fails only the runs of a module that %s', async ([, module, reason, name, message], test) => {
    const slow = 'await new Promise((resolve) => setTimeout(resolve, 500))'
    const bad = module.startsWith('setTimeout') ? `${module}\n${runModule(slow)}` : module
    const good = { module: runModule('return 1') }
    const { domain, principal } = await open(test, writtenSnapshot({ a: good, bad: { module: bad }, c: good }))
    const { fatal } = await startWorker(test, domain, { loadSecondsMax: 1.5 })
    const queue = (workflowId: string) => queueRun(domain, principal, { workflowId })
    // Its process ends shortly after it was started, so that the worker loads each module in a separate process.
    if (module.startsWith('setTimeout')) await waitForRun(domain, await queue('bad'))
    const runs = [await queue('a'), await queue('bad'), await queue('c')]
    const [a, failed, c] = await Promise.all(runs.map((run) => waitForRun(domain, run)))
    expect([a?.status, c?.status]).toEqual(['succeeded', 'succeeded'])
    const error = { name, message: expect.stringMatching(message) }
    expect(failed).toMatchObject({ status: 'failed', reason, attempts: 1, error })
    expect(fatal).toEqual([])
  })

  test('returns a run whose package is not installed, says so on the run, and goes on', async (test) => {
    const directory = await newDirectory(test)
    const snapshot = writtenSnapshot({ say: { module: `import value from 'native'\n${runModule('return value')}` } }, [
      'native',
    ])
    const { domain, principal } = await open(test, returning('1'))
    const other = await queueRun(domain, principal, { workflowId: 'say' })
    await deploySnapshot(domain.store, snapshot, directory)
    const missing = await deploy(test, domain.location, snapshot)
    const { log } = await startWorker(test, domain)
    const run = await queueRun(missing, principal, { workflowId: 'say' })
    const read = () => domain.runs.get(principal.accountId, run.id)
    await vi.waitUntil(async () => (await read())?.waitingFor === 'deployment', waitLimits)
    const message = 'The package "native", which has native code, is not installed on the worker\'s machine.'
    expect(await read()).toMatchObject({
      status: 'queued',
      attempts: 0,
      waitingForDetail: { message },
      deploymentId: run.deploymentId,
    })
    expect(log.some((line) => line.includes('run returned to the queue') && line.includes(run.id))).toBe(true)
    expect(await waitForRun(domain, other)).toMatchObject({ status: 'succeeded', output: '1' })
    const installed = join(directory, 'node_modules', 'native')
    mkdirSync(installed, { recursive: true })
    writeFileSync(join(installed, 'package.json'), '{"name":"native","exports":"./index.js","type":"module"}')
    writeFileSync(join(installed, 'index.js'), "export default 'from the addon'")
    expect(await waitForRun(domain, run)).toMatchObject({ status: 'succeeded', attempts: 1, output: 'from the addon' })
  })

  test.for([
    ['whose files are damaged', { files: Buffer.from('not a snapshot') }, 'It cannot be read from the store.'],
    ['whose definitions were changed', { workflows: '[]' }, 'It cannot be read from the store.'],
  ] as const)('returns a run of a deployment %s, and goes on', async ([, changes, message], test) => {
    const { domain, principal } = await open(test, returning('1'))
    const damaged = await deploy(test, domain.location, returning('2'))
    const run = await queueRun(damaged, principal, { workflowId: 'say' })
    await domain.store.write(({ query }) =>
      query.updateTable('deployments').set(changes).where('id', '=', run.deploymentId).execute(),
    )
    const other = await queueRun(domain, principal, { workflowId: 'say' })
    await startWorker(test, domain)
    expect(await waitForRun(domain, other)).toMatchObject({ status: 'succeeded', output: '1' })
    const read = () => domain.runs.get(principal.accountId, run.id)
    await vi.waitUntil(async () => (await read())?.waitingFor === 'deployment', waitLimits)
    expect(await read()).toMatchObject({ attempts: 0, waitingForDetail: { message } })
  })
})
