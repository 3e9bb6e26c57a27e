/** What an attempt leaves in its process is not there for the next one: the process ends, unless it left nothing. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { queueRun } from '../support/domain.ts'
import { writtenSnapshot } from '../support/snapshots.ts'
import { sqlite } from '../support/store-kinds.ts'
import { describeEvents, openInstallation, startWorker, untilWaiting, waitForRun } from '../support/worker.ts'

interface Observed {
  pid: number
  found: string[]
  changes: string[]
}

async function openWorker(test: Parameters<typeof openInstallation>[0]) {
  const { domain, principal } = await openInstallation(test)
  await startWorker(test, domain, { slots: 1 })
  const run = async (variables: Record<string, unknown>) =>
    waitForRun(domain, await queueRun(domain, principal, { workflowId: 'process-state', variables }))
  const observe = async (variables: Record<string, unknown>) => (await run(variables)).output as Observed
  const logOf = async (ended: Awaited<ReturnType<typeof run>>) =>
    (await describeEvents(domain, ended)).filter((line) => /^(info|warn)/.test(line))
  return { domain, principal, run, observe, logOf }
}

describe.concurrent('the process of an attempt', () => {
  test('executes the next one if nothing was left, and ends otherwise', async (test) => {
    const { observe } = await openWorker(test)
    const { changes, pid } = await observe({})
    expect(changes.length).toBeGreaterThan(20)
    expect(await observe({ change: 'nothing' })).toMatchObject({ pid, found: [] })
    const reused = []
    for (const change of changes) {
      const first = await observe({ change })
      const next = await observe({})
      expect({ change, found: next.found }).toEqual({ change, found: [] })
      if (first.pid === next.pid) reused.push(change)
    }
    expect(reused).toEqual(['nothing'])
  })

  test('executes the next one after one that has used the network, whose connections Node.js keeps', async (test) => {
    const server = createServer((_, response) => response.end('x')).listen(0, '127.0.0.1')
    test.onTestFinished(() => void server.close())
    await once(server, 'listening')
    const module = `import { get } from 'node:http'
      import { text } from 'node:stream/consumers'
      export default { async run({ variables: { url } }) {
        await (await fetch(url)).text()
        await new Promise((resolve) => get(url, (response) => text(response).then(resolve)))
        return process.pid
      } }`
    const { domain, principal } = await openInstallation(test, sqlite, writtenSnapshot({ use: { module } }))
    await startWorker(test, domain, { slots: 1 })
    const variables = { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
    const pids = []
    for (let round = 0; round < 3; round += 1)
      pids.push((await waitForRun(domain, await queueRun(domain, principal, { workflowId: 'use', variables }))).output)
    expect(new Set(pids).size).toBe(1)
  })
})

describe.concurrent('output without a final newline', () => {
  const secret = 'tok-4711-SECRET'
  const masked = ['info: calling with ******** ', 'warn: raw with ******** ']

  test.for([false, true])(
    'is in the log of its run, masked, and of no other (the run throws: %s)',
    async (throws, test) => {
      const { run, observe, logOf } = await openWorker(test)
      for (let round = 0; round < 10; round += 1) {
        expect((await logOf(await run({ write: secret, throws }))).toSorted()).toEqual(masked)
        expect(await logOf(await run({}))).toEqual([])
      }
      expect(await observe({})).toMatchObject({ found: [] })
    },
  )

  test('is in the log when the run waits', async (test) => {
    const module = `export default { async run({ sleep }) {
      process.stdout.write('about to wait ')
      await sleep('long', { hours: 1 })
    } }`
    const { domain, principal } = await openInstallation(test, sqlite, writtenSnapshot({ pause: { module } }))
    await startWorker(test, domain)
    const run = await queueRun(domain, principal, { workflowId: 'pause' })
    await untilWaiting(domain, run, 'sleep')
    expect(await describeEvents(domain, run)).toContain('info: about to wait ')
  })

  test('of a module that is loaded is in no log', async (test) => {
    const module = `import { writeSync } from 'node:fs'
      process.stdout.write('loaded')
      writeSync(1, ' and loaded')
      export default { run() { process.stdout.write('hello from B\\n') } }`
    const { domain, principal } = await openInstallation(test, sqlite, writtenSnapshot({ load: { module } }))
    await startWorker(test, domain)
    const ended = await waitForRun(domain, await queueRun(domain, principal, { workflowId: 'load' }))
    expect((await describeEvents(domain, ended)).filter((line) => line.startsWith('info'))).toEqual([
      'info: hello from B',
    ])
  })
})
