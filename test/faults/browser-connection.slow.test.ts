/** A run's context in its worker's browser: its state is restored, it is isolated, and it ends. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { afterAll, beforeAll, expect, onTestFinished, type TestContext, test, vi } from 'vitest'
import type { BrowserEndpoint, BrowserHost } from '../../src/worker/browser/browser-host.ts'
import { type OpenBrowser, openBrowser } from '../../src/worker/browser/connection.ts'
import { checkIsolation } from '../../src/worker/browser/isolation.ts'
import { RunBrowser } from '../../src/worker/executors/run-browser.ts'
import { contextCount, openBrowserHost, startReportingProcess } from '../support/browser-host.ts'
import { removeDirectory } from '../support/service.ts'
import { waitLimits } from '../support/timeouts.ts'

// Short, so that Chromium's sockets fit below it.
const directory = mkdtempSync('/tmp/test-')
const ends: (() => unknown)[] = []
let host: BrowserHost
let endpoint: BrowserEndpoint
let log: Awaited<ReturnType<typeof openBrowserHost>>['log']

beforeAll(async () => {
  vi.stubEnv('TMPDIR', directory)
  const opened = await openBrowserHost({ onTestFinished: (end) => void ends.push(end as () => unknown) })
  host = opened.host
  log = opened.log
  endpoint = await host.acquire()
})
afterAll(async () => {
  for (const end of ends) await end()
  vi.unstubAllEnvs()
  removeDirectory(directory)
})

async function open(test: TestContext, storageState?: string): Promise<OpenBrowser> {
  const opened = await openBrowser(endpoint, storageState)
  test.onTestFinished(() => opened.close())
  return opened
}

/** A page of a site that only exists in the test. */
async function visit({ context }: Pick<OpenBrowser, 'context'>) {
  await context.route('https://shop.test/', (route) => route.fulfill({ contentType: 'text/html', body: '<p>Shop</p>' }))
  const page = await context.newPage()
  await page.goto('https://shop.test/')
  return page
}

const remember = `new Promise((resolve) => {
  document.cookie = 'cookie=canary-jar; max-age=3600'
  localStorage.setItem('local', 'canary-local')
  const opening = indexedDB.open('base')
  opening.onupgradeneeded = () => opening.result.createObjectStore('store').put('canary-base', 'key')
  opening.onsuccess = () => resolve(opening.result.close())
})`

const recall = `new Promise((resolve) => {
  const opening = indexedDB.open('base')
  opening.onsuccess = () => {
    const reading = opening.result.transaction('store').objectStore('store').get('key')
    reading.onsuccess = () => resolve([document.cookie, localStorage.getItem('local'), reading.result])
  }
})`

test('cookies, local storage and databases are restored in the next context', async (test) => {
  const first = await open(test)
  await (await visit(first)).evaluate(remember)
  const state = await first.storageState()
  expect(JSON.stringify(JSON.parse(state))).toBe(state)
  const second = await open(test, state)
  expect(await (await visit(second)).evaluate(recall)).toEqual(['cookie=canary-jar', 'canary-local', 'canary-base'])
  expect(JSON.parse(await second.storageState())).toEqual(JSON.parse(state))
})

test('no data of a page is written to a file', async (test) => {
  const opened = await open(test)
  const page = await visit(opened)
  await page.evaluate(remember)
  const findCanaries = () => {
    // grep's exit code for no match.
    const script = `test -d "$1"/execution-service-browser-* && ! grep -rlF canary- "$1"`
    return execFileSync('sh', ['-c', script, 'sh', directory], { encoding: 'utf8' })
  }
  expect(findCanaries()).toBe('')
  await opened.close()
  expect(findCanaries()).toBe('')
})

test.for([
  ['{"cookies', 'it is not JSON'],
  [
    JSON.stringify({ cookies: [{ name: 'a', value: 'canary', domain: 'a.test', path: '/', sameSite: 'canary' }] }),
    'storageState.cookies[0].sameSite is not as Playwright writes it',
  ],
  [JSON.stringify({ cookies: [{ name: 'a', value: 'canary', domain: '', path: '/' }], origins: [] }), ''],
] as const)(
  'a state that cannot be restored is refused and the error contains none of it: %s',
  async ([state, reason]) => {
    const error: Error = await openBrowser(endpoint, state).then(
      () => expect.unreachable(),
      (error) => error,
    )
    const start = "The browser context's storage state could not be restored"
    expect(error.message).toBe(reason ? `${start}: ${reason}.` : `${start}.`)
    expect(error.cause).toBe(undefined)
    expect(`${error.stack}`).not.toContain('canary')
  },
)

test('closing leaves no open resource in the process and no context in the browser', async (test) => {
  const contexts = await contextCount(endpoint.url)
  const { message } = await startReportingProcess(
    test,
    new URL('../browser/closing-process.ts', import.meta.url),
    endpoint.url,
  )
  const [before, ...after] = JSON.parse(message)
  expect(after).toEqual([before, before])
  expect(await contextCount(endpoint.url)).toBe(contexts)
})

test('a killed process leaves no context in the browser, and others go on', async (test) => {
  const opened = await open(test)
  const page = await visit(opened)
  const contexts = await contextCount(endpoint.url)
  const { child } = await startReportingProcess(
    test,
    new URL('../browser/executor-process.ts', import.meta.url),
    endpoint.url,
  )
  expect(await contextCount(endpoint.url)).toBe(contexts + 1)
  child.kill('SIGKILL')
  await vi.waitUntil(async () => (await contextCount(endpoint.url)) === contexts, waitLimits)
  expect(await page.innerText('p')).toBe('Shop')
})

test('when the browser ends, its contexts close, and no other can be opened', async () => {
  const other = await openBrowserHost({ onTestFinished })
  const otherEndpoint = await other.host.acquire()
  const opened = await openBrowser(otherEndpoint, undefined)
  await other.host.close()
  await opened.close()
  await expect(openBrowser(otherEndpoint, undefined)).rejects.toThrow(
    'The browser could not be reached: it has just ended, or the machine is overloaded.',
  )
})

test.for([
  ['that stores a cyclic value', `all = {}, all.all = all, ${remember.replace("'canary-base'", 'all')}`, ['TypeError']],
  ['in a loop', `localStorage.setItem('local', ''), setTimeout(() => { for (;;); })`, []],
] as const)('a page %s neither blocks the end of its run nor affects other runs', async ([, script, errors], test) => {
  const before = log.length
  const other = await visit(await open(test))
  const { signal } = new AbortController()
  const browser: RunBrowser = new RunBrowser(
    () => browser.provide(endpoint, undefined),
    signal,
    'always',
    undefined,
    300,
  )
  const context = await browser.open()
  await (await visit({ context })).evaluate(script)
  context.storageState({ indexedDB: true }).catch(() => {})
  await vi.waitUntil(() => log.length - before >= errors.length, waitLimits)
  const unreadable = expect.stringMatching('^it was not read within 0.3 s: a page may be in a loop, or ')
  expect(await browser.end(true)).toEqual({ unreadable })
  expect(await other.innerText('p')).toBe('Shop')
  expect(new Set(log.slice(before).map(({ error }) => error))).toEqual(new Set(errors))
})

test('simultaneous contexts are isolated', async () => {
  expect(await checkIsolation(endpoint)).toEqual([])
})

test('the isolation check finds what is shared', async (test) => {
  const shared = await open(test)
  expect(await checkIsolation(endpoint, async () => ({ ...shared, close: async () => {} }))).toEqual([
    'a cookie of one context is visible in another',
    'local storage of one context is visible in another',
    'an IndexedDB database of one context is visible in another',
    'a cache of one context is visible in another',
    'the storage state of one context is visible in another',
    'a page of one context is visible in another',
  ])
})
