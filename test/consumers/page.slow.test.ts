/** A page of an origin in CORS_ORIGINS reads and follows a run with its token, in a browser; other pages cannot. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { queueRun, send } from '../operations/requests.ts'
import { type Browser, startBrowser } from '../support/browser.ts'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService
let browser: Browser
const sites = [0, 1].map(() =>
  createServer((_request, response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end('<p>')),
)
const originOf = (site: number) => `http://127.0.0.1:${(sites.at(site)?.address() as AddressInfo | undefined)?.port}`

beforeAll(async () => {
  for (const site of sites) await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
  service = await startTestService({ settings: { CORS_ORIGINS: originOf(0) } })
  browser = await startBrowser()
})
afterAll(async () => {
  for (const site of sites) site.close()
  await browser.close()
  await service.stop()
})

test('a page of a named origin follows the run and reads its headers; a page of another origin cannot', async (context) => {
  const account = await service.createAccount()
  const runId = await queueRun(service, account, { query: '' })
  const body = { runId, expiresInSeconds: 60 }
  const { token } = (await send(service, 'createRunToken', account.key, { body }).expect(201)).body
  const follow = async (site: number) => {
    const page = await browser.newPage(context)
    await page.goto(originOf(site))
    const read = async ([address, bearer]: [string, string]) => {
      const headers = { Authorization: `Bearer ${bearer}`, 'Last-Event-ID': '0' }
      const response = await fetch(address, { headers }).catch(() => undefined)
      if (!response) return 'refused by the browser'
      return { status: response.status, headers: [...response.headers.keys()], text: await response.text() }
    }
    return page.evaluate(read, [`${service.executionUrl}/v1/execution/runs/${runId}/events`, token] as [string, string])
  }
  const followed = await follow(0)
  expect(followed).toMatchObject({ status: 200, text: expect.stringContaining('"status":"succeeded"') })
  expect(followed).toMatchObject({
    headers: expect.arrayContaining(['x-request-id', 'x-document-hash', 'ratelimit', 'ratelimit-policy']),
  })
  expect(await follow(1)).toBe('refused by the browser')
})
