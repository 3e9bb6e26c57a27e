/** Tests of a page in a browser, against the simulator: no run takes time, and the API fails when the test wants it to. */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Simulator, startSimulator } from 'execution-service/simulator'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'

/** Serves the front end. */
const server = createServer()
let simulator: Simulator
let browser: Browser
let page: Page

beforeAll(async () => {
  simulator = await startSimulator({ workflows: 'examples/workflows' })
  browser = await chromium.launch()
  const html = await readFile('examples/front-end/order-page.html')
  server.on('request', (_request, response) => response.setHeader('Content-Type', 'text/html').end(html))
  await once(server.listen(0, '127.0.0.1'), 'listening')
})

beforeEach(async () => {
  await simulator.reset()
  page = await browser.newPage()
  const { port } = server.address() as AddressInfo
  const { executionUrl: api, apiKey: key } = simulator
  await page.goto(`http://127.0.0.1:${port}/?${new URLSearchParams({ api, key })}`)
})

afterAll(async () => {
  await browser?.close()
  server.close()
  await simulator?.stop()
})

/** Waits until the page has the text. */
const expectStatus = (text: string) =>
  vi.waitFor(async () => expect(await page.getByRole('status').textContent()).toBe(text), 5000)

test('the page lets a person answer, and shows the end of the run', async () => {
  await page.getByRole('button', { name: 'Release' }).click()
  await expectStatus('The run is queued')
  await simulator.advance({ seconds: 60 })
  await expectStatus('Waiting for a review')
  await page.getByRole('button', { name: 'Approve' }).click()
  await expectStatus('The run is queued')
  await simulator.advance({ seconds: 60 })
  await expectStatus('The run is succeeded')
})

test('the page shows a failure', async () => {
  await simulator.setScenarios([{ workflow: 'review-text', error: { message: 'The file is missing' } }])
  await page.getByRole('button', { name: 'Release' }).click()
  await expectStatus('The run is queued')
  await simulator.advance({ seconds: 60 })
  await expectStatus('The run is failed')
})

test('the page asks to try again if the service is busy', async () => {
  await simulator.setFaults({ queueRemoteRun: { statuses: [503] } })
  await page.getByRole('button', { name: 'Release' }).click()
  await expectStatus('Try again in 1 seconds')
})
