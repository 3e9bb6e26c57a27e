/** A caller that ends while its call is being stored loses no slot: the worker executes all runs afterwards. */
import { describe, expect, test } from 'vitest'
import { queueRun } from '../support/domain.ts'
import { writtenSnapshot } from '../support/snapshots.ts'
import { stores } from '../support/store-kinds.ts'
import { openInstallation, startWorker, waitForRun } from '../support/worker.ts'

const toModule = (code: string) => ({
  module: `const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
    export default { run: async ({ variables, call }) => { ${code} } }`,
})

const snapshot = writtenSnapshot({
  leaf: toModule('return 1'),
  race: toModule("return Promise.race([call('c', 'leaf'), pause(variables.ms)]).then(() => 'ended')"),
  loop: { ...toModule("for (let index = 0; ; index += 1) await call('c' + index, 'leaf')"), timeLimitSeconds: 1 },
})

const limits = { timeout: 60_000, interval: 50 }

describe.each(stores)('a worker whose callers end during their calls, on $name', { timeout: 300_000 }, (kind) => {
  test('executes 150 races of a call and a timer on four slots', async (test) => {
    const { domain, principal } = await openInstallation(test, kind, snapshot)
    await startWorker(test, domain, { slots: 4 })
    const queued = Array.from({ length: 150 }, (_, index) =>
      queueRun(domain, principal, { workflowId: 'race', variables: { ms: index % 15 } }),
    )
    for (const run of await Promise.all(queued))
      expect(await waitForRun(domain, run, limits)).toMatchObject({ status: 'succeeded', output: 'ended' })
  })

  test('executes further runs after 30 callers have reached their time limit', async (test) => {
    const { domain, principal } = await openInstallation(test, kind, snapshot)
    await startWorker(test, domain, { slots: 4 })
    const queue = (count: number, workflowId: string) =>
      Promise.all(Array.from({ length: count }, () => queueRun(domain, principal, { workflowId })))
    for (const run of await queue(30, 'loop'))
      expect(await waitForRun(domain, run, limits)).toMatchObject({ status: 'timedOut' })
    for (const run of await queue(4, 'leaf')) expect(await waitForRun(domain, run, limits)).toMatchObject({ output: 1 })
  })
})
