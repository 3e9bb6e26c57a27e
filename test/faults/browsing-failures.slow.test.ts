/** Runs with a browser when processes are killed or something is missing. */
import { existsSync, writeFileSync } from 'node:fs'
import { describe, expect, test, vi } from 'vitest'
import { createState } from '../support/browser-contexts.ts'
import { findDescendants, openBrowsing } from '../support/browsing.ts'
import { queueRun } from '../support/domain.ts'
import { waitForProcessEnd } from '../support/processes.ts'
import { waitLimits } from '../support/timeouts.ts'
import { startWorker, startWorkerProcess, waitForRun, waitForStart } from '../support/worker.ts'

const apiKey = { apiKeyId: 'a key' }

/** The browser's processes below the worker, the main process first. */
function browsersBelow(pid: number): number[] {
  const browsers = findDescendants(pid).filter(({ command }) => /remote-debugging/.test(command))
  const isFirst = (command: string) => !/--type=/.test(command)
  return browsers.toSorted((a, b) => Number(isFirst(b.command)) - Number(isFirst(a.command))).map((each) => each.pid)
}

describe.concurrent('a run with a browser', () => {
  test.skipIf(!existsSync('/proc'))(
    'fails when its browser is killed; the next run gets a new one, which does not outlive its worker',
    async (test) => {
      const site = await openBrowsing(test)
      const { domain, accountId } = site
      const contextId = await site.createContext()
      await domain.contextVersions.replace(accountId, contextId, createState('before'), apiKey)
      const worker = await startWorkerProcess(test, domain)
      const pid = worker.pid ?? 0

      const [until, held] = [site.file('until killed'), site.site.held()]
      const run = await site.visit({ contextId, value: 'lost', how: 'holding', until, persist: 'always' })
      await held
      const [browser = 0] = browsersBelow(pid)
      const host = findDescendants(pid).find(({ command }) => command.includes('host-process.ts'))?.pid ?? 0
      process.kill(browser, 'SIGKILL')
      await waitForProcessEnd(host)
      writeFileSync(until, '')
      const ended = await waitForRun(domain, run)
      const message = expect.stringMatching(/^The browser ended while the run used it: /)
      expect(ended).toMatchObject({ status: 'failed', error: { name: 'BrowserEnded', message } })
      expect(await site.stored(contextId)).toBe(createState('before'))

      const heldAgain = site.site.held()
      const options = { contextId, value: 'lost too', how: 'holding', persist: 'always' } as const
      const second = await site.visit({ ...options, until: site.file('never there') })
      const { closed } = await heldAgain
      expect(await site.context(contextId)).toMatchObject({ status: 'inUse', heldByRunId: second.id })
      const processes = findDescendants(pid).map((each) => each.pid)
      expect(browsersBelow(pid)).not.toContain(browser)
      worker.kill('SIGKILL')
      await closed
      await Promise.all(processes.map(waitForProcessEnd))
      // Another worker finds that the lease has expired.
      await vi.waitUntil(async () => {
        await domain.maintenance.once()
        return (await site.context(contextId))?.heldByRunId === null
      }, waitLimits)
      expect(await site.context(contextId)).toMatchObject({ status: 'ready', version: 1 })
      expect(await site.stored(contextId)).toBe(createState('before'))
      const again = { status: 'queued', reason: 'workerLost', waitingFor: 'worker' }
      expect(await domain.runs.get(accountId, second.id)).toMatchObject(again)
    },
  )

  test('fails with advice when no browser is installed; other runs go on', async (test) => {
    const site = await openBrowsing(test)
    await startWorker(test, site.domain, { browserPath: '/no/such/browser' })
    const contextId = await site.createContext()
    const ended = await waitForRun(site.domain, await site.visit({ contextId, persist: 'always' }))
    const sentence =
      'BROWSER_PATH is "/no/such/browser", which does not run (ENOENT): set it to the executable of Chrome or Chromium.'
    expect(ended).toMatchObject({ status: 'failed', error: { name: 'BrowserUnavailable', message: sentence } })
    expect(await site.context(contextId)).toMatchObject({ status: 'empty', heldByRunId: null })
    const idle = await site.visit({ contextId, how: 'idle' })
    const other = await queueRun(site.domain, site.principal, { workflowId: 'talk' })
    for (const run of [idle, other]) expect(await waitForRun(site.domain, run)).toMatchObject({ status: 'succeeded' })
    // A workflow without `browser: true` gets none.
    const forgetful = await queueRun(site.domain, site.principal, { workflowId: 'forgetful' })
    const message = 'This workflow uses no browser: set `browser: true` in its definition to get one.'
    expect(await waitForRun(site.domain, forgetful)).toMatchObject({ status: 'failed', error: { message } })
  })

  test('fails when its context cannot be decrypted or was deleted', async (test) => {
    const site = await openBrowsing(test)
    const { store, contextVersions, browserContexts } = site.domain
    const [swapped, other, deleted] = [
      await site.createContext(),
      await site.createContext(),
      await site.createContext(),
    ]
    for (const id of [swapped, other]) await contextVersions.replace(site.accountId, id, createState(id), apiKey)
    const swap = `UPDATE browser_context_versions SET state = (
      SELECT state FROM browser_context_versions WHERE browser_context_id = ?) WHERE browser_context_id = ?`
    await store.write((tx) => tx.all(swap, [other, swapped]))
    const runs = [await site.visit({ contextId: swapped }), await site.visit({ contextId: deleted })]
    await browserContexts.delete(site.accountId, deleted)
    await startWorker(test, site.domain, { browserPath: '/not/needed' })
    const [first, second] = await Promise.all(runs.map((run) => waitForRun(site.domain, run)))
    const doesNotOpen = expect.stringMatching(
      /^The run's browser context cannot be decrypted: replace or restore it: An encrypted value in the store was changed/,
    )
    expect(first).toMatchObject({ status: 'failed', error: { name: 'BrowserUnavailable', message: doesNotOpen } })
    const wasDeleted = 'The browser context of this run was deleted.'
    expect(second).toMatchObject({ status: 'failed', error: { name: 'BrowserUnavailable', message: wasDeleted } })
  })

  test('does not get the browser that the previous run in its process requested but did not await', async (test) => {
    const site = await openBrowsing(test)
    const value = 'canary-of-the-run-before'
    const contextId = await site.createContext()
    await site.domain.contextVersions.replace(site.accountId, contextId, createState(value, '127.0.0.1'), apiKey)
    // The browser is still starting when the second run asks for it.
    await startWorker(test, site.domain, { slots: 1, memoryMegabytesMax: 256 })
    const carelessRun = await site.visit({ contextId, how: 'carelessly', persist: 'never' })
    const next = await site.visit({ until: site.file('until'), started: site.file('started') })
    await waitForStart(site.file('started'))
    writeFileSync(site.file('until'), '')
    const [before, after] = await Promise.all([carelessRun, next].map((run) => waitForRun(site.domain, run)))
    const pid = (before?.output as { pid: number } | undefined)?.pid
    const noData = { cookies: '', local: '', database: '', session: '' }
    expect(after).toMatchObject({ status: 'succeeded', output: { pid, before: noData } })
    expect(JSON.stringify(after?.output)).not.toContain(value)
  })
})
