/** A browser at BROWSER_CDP_URL: runs get isolated contexts in it and leave it unchanged. */
import { chromium } from 'playwright-core'
import { expect, test, vi } from 'vitest'
import { openBrowser } from '../../src/worker/browser/connection.ts'
import { checkIsolation } from '../../src/worker/browser/isolation.ts'
import {
  findHostProcesses,
  openBrowserHost,
  startRemoteBrowser,
  startReportingProcess,
} from '../support/browser-host.ts'
import { waitForProcessEnd } from '../support/processes.ts'
import { waitLimits } from '../support/timeouts.ts'

test('runs share a remote browser, are isolated from each other and its owner, and leave it unchanged', async (test) => {
  const remote = await startRemoteBrowser(test)
  const owner = await chromium.connectOverCDP(remote.httpUrl)
  test.onTestFinished(() => owner.close())
  const [context] = owner.contexts()
  await context?.addCookies([{ name: 'owner', value: 'canary', url: 'https://isolation.test/' }])
  const session = await owner.newBrowserCDPSession()
  const contexts = async () => (await session.send('Target.getBrowserContexts')).browserContextIds.length
  const became = (count: number) => {
    return vi.waitUntil(async () => (await contexts()) === count, waitLimits)
  }

  // One worker has the HTTP address, the other the browser's WebSocket address.
  const { host } = await openBrowserHost(test, { cdpUrl: remote.httpUrl })
  const other = await openBrowserHost(test, { cdpUrl: remote.webSocketUrl })
  const [endpoint, another] = await Promise.all([host.acquire(), other.host.acquire()])
  expect(host.describe()).toMatchObject({ from: 'BROWSER_CDP_URL', version: expect.stringMatching(/^\d+\./) })
  let opened = 0
  const alternately: typeof openBrowser = (_, state) => {
    opened += 1
    return openBrowser(opened % 2 ? endpoint : another, state)
  }
  expect(await checkIsolation(endpoint, alternately)).toEqual([])
  const mine = await openBrowser(another, undefined)
  expect(await mine.context.cookies('https://isolation.test/')).toEqual([])

  const { child } = await startReportingProcess(
    test,
    new URL('../browser/executor-process.ts', import.meta.url),
    endpoint.url,
  )
  expect(await contexts()).toBe(2)
  child.kill('SIGKILL')
  await became(1)
  for (const pid of findHostProcesses(process.pid)) process.kill(pid, 'SIGKILL')
  await became(0)
  await host.acquire()
  await host.close()
  expect(remote.child.exitCode).toBe(null)
  expect(owner.isConnected()).toBe(true)
  expect(await context?.cookies()).toMatchObject([{ name: 'owner', value: 'canary' }])
})

test('the error without a remote browser says what to do', async (test) => {
  const remote = await startRemoteBrowser(test)
  const { host } = await openBrowserHost(test, { cdpUrl: remote.httpUrl })
  await host.acquire()
  remote.child.kill('SIGKILL')
  await waitForProcessEnd(remote.child.pid ?? 0)
  await expect(host.acquire()).rejects.toThrow(
    'No browser replies at BROWSER_CDP_URL (it refused the connection, ECONNREFUSED): start it, or set another address.',
  )
})

test.for([
  ['http://user:canary@127.0.0.1/', 'it has a user name or a password, which are not sent'],
  // Nothing listens on this port.
  ['http://127.0.0.1:1/?token=canary', 'the request failed'],
])('the error for %s does not contain the address', async ([cdpUrl = '', reason], test) => {
  const { host, log } = await openBrowserHost(test, { cdpUrl })
  await expect(host.acquire()).rejects.toThrow(
    `No browser replies at BROWSER_CDP_URL (${reason}): start it, or set another address.`,
  )
  expect(JSON.stringify(log)).not.toContain('canary')
})
