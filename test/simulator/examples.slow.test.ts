/** Runs the examples of the guides to scenarios and to the simulator, in a browser that is found as the service finds its own. */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Locator } from 'playwright-core'
import { beforeAll, describe, test } from 'vitest'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { findBrowser } from '../../src/worker/browser/find-browser.ts'

const { executable, environment } = await findBrowser(process.env.BROWSER_PATH, process.env)

beforeAll(async () => {
  Object.assign(process.env, environment)
})

// `chromium.launch` has no executable in the examples, as in projects that have installed Playwright's browser.
const { chromium } = await import('playwright-core')
const launch = chromium.launch.bind(chromium)
chromium.launch = (options) => launch({ executablePath: executable, chromiumSandbox: false, ...options })

describe.each(['orders', 'order-page'])('the example %s', async (name) => {
  await import(`../../examples/front-end/${name}.test.ts`)
})

/** A shop whose page takes some time before it sends an order. */
const shop = (api: string, key: string) => `<!doctype html>
<button type="button">Order</button><p></p>
<script type="module">
  const Authorization = 'Bearer ${key}'
  const call = async (path, { headers, ...options } = {}) =>
    (await fetch('${api}/v1/execution/' + path, { headers: { Authorization, ...headers }, ...options })).json()
  const follow = async (id) => {
    const { status } = await call('runs/' + id)
    document.querySelector('p').textContent = status === 'succeeded' ? 'Delivered' : 'Ordered'
    if (status !== 'succeeded') setTimeout(follow, 50, id)
  }
  document.querySelector('button').onclick = () => setTimeout(async () => {
    const body = JSON.stringify({ variableData: { url: 'https://shop.example/' } })
    const headers = { 'Content-Type': 'application/json' }
    follow((await call('queue-remote/page-title', { method: 'PUT', headers, body })).id)
  }, 200)
</script>`

test('the sample for Playwright of the guide to the simulator passes, however late the page sends its request', async (context) => {
  const guide = await readFile('docs/guides/simulator.md', 'utf8')
  const [, sample = ''] = /such as with Playwright.*?```ts\n(.*?)```/s.exec(guide) ?? []
  const simulator = await startSimulator({ workflows: 'examples/workflows' })
  context.onTestFinished(() => simulator.stop())
  const browser = await chromium.launch()
  context.onTestFinished(() => browser.close())
  const page = await browser.newPage()
  const server = createServer((_request, response) =>
    response.setHeader('Content-Type', 'text/html').end(shop(simulator.executionUrl, simulator.apiKey)),
  )
  context.onTestFinished(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  const code = sample.replace('http://127.0.0.1:4003', simulator.managementUrl)
  // The runner of Playwright's tests gives these; its `toBeVisible` waits.
  const expectVisible = (locator: Locator) => ({ toBeVisible: () => locator.waitFor({ timeout: 5000 }) })
  const AsyncFunction = (async () => {}).constructor as new (
    ...texts: string[]
  ) => (...values: unknown[]) => Promise<void>
  await new AsyncFunction('page', 'request', 'expect', code)(page, page.request, expectVisible)
})
