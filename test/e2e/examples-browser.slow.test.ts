/** The browser examples, run by a real service against the example website. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Site, startSite } from '../../examples/site/site.ts'
import { createBrowserContextClient } from '../../src/client/index.ts'
import { type Installation, newInstallation, type ServiceProcess } from '../support/installation.ts'
import { callerOf, collect, queue } from './caller.ts'

const password = 'canary-of-a-password-9041'

let installation: Installation
let service: ServiceProcess
let site: Site

beforeAll(async () => {
  const workflows = fileURLToPath(new URL('../../examples/workflows', import.meta.url))
  const access = { EXAMPLE_PRIVATE_ADDRESSES: '127.0.0.1', EXECUTOR_ENV: 'EXAMPLE_*' }
  installation = await newInstallation({ WORKFLOWS_DIR: workflows, LOG_LEVEL: 'trace', ...access })
  site = await startSite({ token: 'of no member here', password })
  service = await installation.start()
})
afterAll(async () => {
  await installation.remove()
  await site.stop()
})

/** A caller with a browser context for its runs. */
async function newCustomer() {
  const { account, client } = await callerOf(installation, service)
  const contexts = createBrowserContextClient({ apiKey: account.key, baseUrl: service.browserContextUrl })
  const { data } = await contexts.createBrowserContext({})
  const browserContextId = data?.id ?? ''
  const run = async (workflowId: string, variables: object = {}, query: object = { browserContextId }) =>
    (await queue(client, workflowId, { url: site.url, ...variables }, query, { Prefer: 'wait=30' })).run
  const storageState = () => contexts.getStorageState({ params: { path: { browserContextId } } })
  const version = async () =>
    (await contexts.getBrowserContext({ params: { path: { browserContextId } } })).data?.version
  return { client, run, storageState, version }
}

const noSession =
  'The browser context has no session in the shop, or the session has expired: set its sign-in, or run shop-sign-in ' +
  'with the same browserContextId first.'

test('one run signs in, later runs reuse the session, and its cookie is exposed nowhere', async () => {
  const { client, run, storageState, version } = await newCustomer()
  const signedIn = await run('shop-sign-in', { userName: 'ada', password })
  expect(signedIn).toMatchObject({ status: 'succeeded', error: null })
  const { orders } = signedIn.output as { orders: object[] }
  expect(orders).toHaveLength(3)
  expect(orders[0]).toEqual({ number: 'L-1042', date: '2026-03-02', item: 'Storm lantern', total: '€ 39.00' })
  const read = await run('shop-orders')
  expect(read).toMatchObject({ status: 'succeeded', output: { orders } })
  expect(site.counts().signIns).toBe(1)
  // The second run has changed nothing and created no version.
  expect(await version()).toBe(1)

  const { data } = await storageState()
  const session = data?.cookies.find(({ name }) => name === 'session')?.value ?? ''
  expect(session).toMatch(/^[0-9a-f]{32}$/)
  const events = await Promise.all([signedIn, read].map(({ id }) => collect(client.runs.events(id))))
  const exposed = [JSON.stringify([signedIn, read, events]), service.output()]
  expect(exposed[0]).toContain('ada has 3 orders')
  for (const secret of [password, session]) for (const text of exposed) expect(text).not.toContain(secret)

  const headers = { Cookie: `session=${session}` }
  await fetch(`${site.url}/sign-out`, { method: 'POST', headers, redirect: 'manual' })
  expect(await run('shop-orders')).toMatchObject({ status: 'failed', error: { message: noSession } })
})

test('a run without a browser context or with a wrong password fails with advice', async () => {
  const { run, storageState } = await newCustomer()
  const [orders, signIn] = await Promise.all([
    run('shop-orders', {}, {}),
    run('shop-sign-in', { userName: 'ada', password: 'a guess' }),
  ])
  expect(orders).toMatchObject({ status: 'failed', error: { message: noSession } })
  const message = 'The shop refused the sign-in: The user name or the password is wrong.'
  expect(signIn).toMatchObject({ status: 'failed', error: { message } })
  expect((await storageState()).data).toEqual({ cookies: [], origins: [] })
})

test('a page is stored as a PDF, and as a picture of the requested size; an error page is not', async () => {
  const { client, run } = await newCustomer()
  const url = `${site.url}/products`
  const [pdf, png, missing] = await Promise.all([
    run('page-to-file', { url }, {}),
    run('page-to-file', { url, format: 'png' }, {}),
    run('page-to-file', { url: `${url}/teapot` }, {}),
  ])
  expect([pdf, png]).toMatchObject([
    { output: { artifact: 'page.pdf', title: 'Products' }, artifacts: [{ mediaType: 'application/pdf' }] },
    { output: { artifact: 'page.png', title: 'Products' }, artifacts: [{ mediaType: 'image/png' }] },
  ])
  const download = async ({ id: runId, artifacts }: typeof pdf) => {
    const path = { runId, artifactName: artifacts[0]?.name ?? '' }
    const { data } = await client.getRunArtifact({ params: { path }, parseAs: 'arrayBuffer' })
    return Buffer.from(data ?? new ArrayBuffer())
  }
  const document = (await download(pdf)).toString('latin1')
  expect(document).toMatch(/^%PDF-1\.\d/)
  expect(document).toMatch(/\/Type\s*\/Page\b/)
  const picture = await download(png)
  expect(picture.subarray(0, 8)).toEqual(Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'))
  // Width and height, at the start of the first chunk (PNG, section 11.2.1).
  expect([picture.readUInt32BE(16), picture.readUInt32BE(20)]).toEqual([1280, 720])
  expect(missing).toMatchObject({ status: 'failed', artifacts: [] })
  expect(missing.error?.message).toBe(`${url}/teapot responded with 404.`)
})

test('no page, redirect, frame or script reaches an address that is not public', async () => {
  const { run } = await newCustomer()
  const requests: string[] = []
  const listen = async (address: string, handle: Parameters<typeof createServer>[1]) => {
    const server = createServer(handle)
    onTestFinished(() => void server.close().closeAllConnections())
    await once(server.listen(0, address), 'listening')
    return `${address}:${(server.address() as AddressInfo).port}`
  }
  const inner = await listen('127.0.0.2', ({ url = '' }, response) => {
    requests.push(url)
    response.setHeader('Access-Control-Allow-Origin', '*').end('internal')
  })
  const outer = await listen('127.0.0.1', ({ url = '' }, response) => {
    const redirect = url === '/redirect'
    if (redirect) return response.writeHead(302, { Location: `http://${inner}/redirected` }).end()
    return response.setHeader('Content-Type', 'text/html').end(`<title>Loading</title>
      <iframe src="http://${inner}/frame"></iframe><img src="https://${inner}/image">
      <script>
        const done = (text) => { document.title = text }
        fetch('http://${inner}/fetch').then((it) => it.text()).then(done, (error) => done(error.message))
        new WebSocket('ws://${inner}/socket')
      </script>`)
  })
  const [direct, redirected, loaded] = await Promise.all([
    run('page-to-file', { url: `http://${inner}/` }, {}),
    run('page-to-file', { url: `http://${outer}/redirect` }, {}),
    run('page-to-file', { url: `http://${outer}/` }, {}),
  ])
  const refused = (message: unknown) => ({ status: 'failed', error: { message } })
  expect(direct).toMatchObject(
    refused(expect.stringMatching(/^127\.0\.0\.2 is not a public address: EXAMPLE_PRIVATE_/)),
  )
  expect(redirected).toMatchObject(refused(`http://${outer}/redirect responded with 403.`))
  expect(loaded.status).toBe('succeeded')
  expect(requests).toEqual([])
})
