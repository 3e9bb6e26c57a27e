/** Attempts that are interrupted: their run is cancelled, or their worker stops. */
import { writeFileSync } from 'node:fs'
import { describe, expect, test, vi } from 'vitest'
import { queueRun } from '../support/domain.ts'
import { waitForProcessEnd } from '../support/processes.ts'
import { waitLimits } from '../support/timeouts.ts'
import { describeEvents, openInstallation, startWorker, waitForRun, waitForStart } from '../support/worker.ts'

describe.concurrent('a worker', () => {
  describe('when a run is cancelled', () => {
    test.for(['patiently', 'ignoring its signal', 'blocking'])(
      'ends its attempt, even if it waits %s',
      async (how, test) => {
        const { domain, principal, file } = await openInstallation(test)
        await startWorker(test, domain)
        const variables = { started: file('started'), until: file('until'), how }
        const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
        const pid = await waitForStart(variables.started)
        expect(await domain.runs.cancel(principal.accountId, run.id)).toMatchObject({ cancelRequested: true })
        const ended = { status: 'cancelled', reason: 'cancelRequested', output: null, attempts: 1 }
        expect(await waitForRun(domain, run)).toMatchObject(ended)
        await waitForProcessEnd(pid)
        expect((await describeEvents(domain, run)).at(-1)).toBe('cancelled (1, cancelRequested)')
      },
    )

    test('ends an attempt that obeys its AbortSignal before the grace period is over', async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      await startWorker(test, domain, { abortGraceSeconds: 3600 })
      const variables = { started: file('started'), until: file('until') }
      const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
      await waitForStart(variables.started)
      await domain.runs.cancel(principal.accountId, run.id)
      expect(await waitForRun(domain, run)).toMatchObject({ status: 'cancelled' })
    })
  })

  describe('that stops', () => {
    test('lets attempts finish within the grace period, and starts no more', async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      const { worker } = await startWorker(test, domain)
      const variables = { started: file('started'), until: file('until') }
      const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
      await waitForStart(variables.started)
      const stopped = worker.stop(3600)
      const late = await queueRun(domain, principal, { workflowId: 'talk' })
      writeFileSync(variables.until, '')
      await stopped
      const get = ({ id }: { id: string }) => domain.runs.get(principal.accountId, id)
      expect(await get(run)).toMatchObject({ status: 'succeeded' })
      expect(await get(late)).toMatchObject({ status: 'queued', attempts: 0 })
    })

    test.for(['patiently', 'blocking'])(
      'returns unfinished runs to the queue, and another worker finishes them (%s)',
      async (how, test) => {
        const { domain, principal, file } = await openInstallation(test)
        const { worker } = await startWorker(test, domain)
        const variables = { started: file('started'), until: file('until'), how }
        const run = await queueRun(domain, principal, { workflowId: 'wait', variables })
        const pid = await waitForStart(variables.started)
        await worker.stop(0)
        const back = { status: 'queued', reason: 'workerStopped', attempts: 1, waitingFor: 'worker' }
        expect(await domain.runs.get(principal.accountId, run.id)).toMatchObject(back)
        await waitForProcessEnd(pid)
        await startWorker(test, domain)
        await waitForStart(variables.started, 2)
        writeFileSync(variables.until, '')
        expect(await waitForRun(domain, run)).toMatchObject({
          status: 'succeeded',
          attempts: 2,
          output: { attempt: 2 },
        })
      },
    )

    test('returns claimed runs to the queue that it has not started', async (test) => {
      const { domain, principal, file } = await openInstallation(test)
      const { worker } = await startWorker(test, domain, { slots: 3 })
      const variables = { started: file('started'), until: file('until'), how: 'ignoring its signal' }
      const runs = []
      for (let index = 0; index < 3; index += 1) {
        runs.push(await queueRun(domain, principal, { workflowId: 'wait', variables }))
      }
      // All are claimed, but two executors have yet to start.
      const status = async () =>
        (await domain.runs.list(principal.accountId, { limit: 9, status: 'running' }))?.runs.length
      await vi.waitUntil(async () => (await status()) === 3, { ...waitLimits, interval: 1 })
      await worker.stop(0)
      for (const { id } of runs) {
        const back = { status: 'queued', reason: 'workerStopped' }
        expect(await domain.runs.get(principal.accountId, id)).toMatchObject(back)
      }
    })
  })
})
