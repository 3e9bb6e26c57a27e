/** What an attempt leaves: nothing of it reaches another account, and no process outlives it. */
import { describe, expect, test } from 'vitest'
import { newAccount, queueRun } from '../support/domain.ts'
import { waitForProcessEnd } from '../support/processes.ts'
import { openInstallation, startWorker, waitForRun, waitForSpread } from '../support/worker.ts'

describe.concurrent('a worker', () => {
  test('lets a process serve one account only, and reuses it for that account', async (test) => {
    const { domain, principal } = await openInstallation(test)
    await startWorker(test, domain, { slots: 1 })
    const run = async (caller: typeof principal, secret: string) => {
      const queued = await queueRun(domain, caller, { workflowId: 'remember', variables: { secret } })
      return (await waitForRun(domain, queued)).output as { pid: number; kept: string[] }
    }
    const first = await run(principal, 'first')
    expect(first.kept).toEqual([])
    expect(await run(principal, 'second')).toEqual({ pid: first.pid, kept: ['first'] })
    for (let other = 0; other < 4; other += 1) {
      const { kept, pid } = await run((await newAccount(domain)).principal, 'other')
      expect(kept).toEqual([])
      expect(pid).not.toBe(first.pid)
    }
    expect((await run(principal, 'third')).kept).not.toContain('other')
  })

  test.for(['return', 'exit', 'wait'])(
    'leaves no process that a run has started, also none that left its group (%s)',
    async (how, test) => {
      const { domain, principal, file } = await openInstallation(test)
      await startWorker(test, domain)
      const variables = { file: file('pids'), how }
      const run = await queueRun(domain, principal, { workflowId: 'spread', variables })
      const pids = await waitForSpread(variables.file)
      if (how === 'wait') await domain.runs.cancel(principal.accountId, run.id)
      await waitForRun(domain, run)
      for (const pid of pids) await waitForProcessEnd(pid)
    },
  )
})
