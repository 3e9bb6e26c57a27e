/** Runs that call many others, in depth and at once: none of them blocks another, and errors name the limits. */
import { describe, expect, test } from 'vitest'
import { queueRun } from '../support/domain.ts'
import { writtenSnapshot } from '../support/snapshots.ts'
import { stores } from '../support/store-kinds.ts'
import { openInstallation, startWorker, waitForRun } from '../support/worker.ts'

const levels = 100
const stepsMax = 10_000

const toModule = (expression: string) => `export default { run: async ({ variables, call }) => ${expression} }\n`

/** Two runs of it never execute at once. */
const limited = (expression: string) => ({
  module: toModule(expression),
  concurrency: { limit: 1, per: 'workflow' as const },
})

const square = `call('square ' + index, 'square', { index })`

const snapshot = writtenSnapshot({
  ...Object.fromEntries(
    Array.from({ length: levels }, (_, level) => [
      `level-${level}`,
      limited(`1 + (await call('next', 'level-${level + 1}'))`),
    ]),
  ),
  [`level-${levels}`]: limited('0'),
  // Calls itself, and says why it cannot any more.
  deep: limited(`variables.left === 0 ? 'bottom' : await call('next', 'deep', { left: variables.left - 1 })
    .catch((error) => { if (error.name === 'CallRefused') return error.message; throw error })`),
  many: limited(`await Promise.all(Array.from({ length: variables.count }, (_, index) => ${square}))`),
  square: { module: toModule('variables.index ** 2') },
})

describe.each(stores)('runs that call others, on $name', (kind) => {
  test(`do not block each other on ${levels} levels, with a limit of one run for each workflow`, async (test) => {
    const { domain, principal } = await openInstallation(test, kind, snapshot)
    await startWorker(test, domain)
    const towers = await Promise.all([1, 2, 3].map(() => queueRun(domain, principal, { workflowId: 'level-0' })))
    const deep = await queueRun(domain, principal, { workflowId: 'deep', variables: { left: levels } })
    for (const run of towers) expect(await waitForRun(domain, run)).toMatchObject({ output: levels, attempts: 1 })
    expect(await waitForRun(domain, deep)).toMatchObject({ output: 'bottom', attempts: 1 })
  })

  test(`are refused below ${levels} levels`, async (test) => {
    const { domain, principal } = await openInstallation(test, kind, snapshot)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId: 'deep', variables: { left: levels + 1 } })
    const output = `Runs may call each other at most ${levels} levels deep.`
    expect(await waitForRun(domain, run)).toMatchObject({ status: 'succeeded', output })
    expect(await domain.store.read.all('SELECT COUNT(*) AS count FROM runs', [])).toEqual([{ count: levels + 1 }])
  })

  test('get 1,000 outputs at once, from one run for each call', async (test) => {
    const { domain, principal } = await openInstallation(test, kind, snapshot)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId: 'many', variables: { count: 1000 } })
    const ended = await waitForRun(domain, run)
    expect(ended).toMatchObject({ output: Array.from({ length: 1000 }, (_, index) => index ** 2), attempts: 1 })
    expect(ended.attemptHistory?.length).toBeLessThan(50)
    const children = await domain.store.read.all('SELECT id FROM runs WHERE parent_run_id = ?', [run.id])
    expect(children).toHaveLength(1000)
  })

  test('fail with a clear error beyond 10,000 steps and waits, before any run is called', async (test) => {
    const { domain, principal } = await openInstallation(test, kind, snapshot)
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId: 'many', variables: { count: stepsMax + 1 } })
    const error = { name: 'RangeError', message: 'A run may have at most 10000 steps and waits.' }
    expect(await waitForRun(domain, run)).toMatchObject({ status: 'failed', error })
    expect(await domain.store.read.all('SELECT COUNT(*) AS count FROM runs', [])).toEqual([{ count: 1 }])
  })
})
