/** Secrets of an answer: masked in everything that a run with a browser leaves, like secret variables. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { unzipSync } from 'fflate'
import { expect, test, vi } from 'vitest'
import type { Run } from '../../src/domain/runs/run.ts'
import { readBodies } from '../../src/domain/webhooks/webhook-deliveries.ts'
import { findCanaries } from '../support/canaries.ts'
import { type Domain, queueRun, type Test } from '../support/domain.ts'
import { snapshotOf } from '../support/snapshots.ts'
import { sqlite } from '../support/store-kinds.ts'
import { waitLimits } from '../support/timeouts.ts'
import { moduleText, openInstallation, startWorker, untilWaiting, waitForRun, writeModules } from '../support/worker.ts'

/** A site that shows what it was sent, in its text, its title and its address. */
async function startSite(test: Test): Promise<string> {
  const server = createServer(async (request, response) => {
    const sent = new URLSearchParams(Buffer.concat((await request.toArray()) as Buffer[]).toString())
    const shown = `${sent.get('pin') ?? ''} ${request.url}`
    response.setHeader('Content-Type', 'text/html')
    if (request.url?.startsWith('/missing')) return response.writeHead(404).end(shown)
    response.end(`<!doctype html><title>Shows ${shown}</title><form method="post"><input id="pin" name="pin"></form>
      <pre>${shown}</pre><script>console.log(document.title)</script>`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  test.onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const pin = `{ type: 'object', properties: { pin: { type: 'string', writeOnly: true }, hint: { type: 'string' } } }`

/** Asks for a PIN, waits again, types the PIN into a page, and ends with it. */
const workflow = moduleText(
  'sign-in',
  `browser: true, evidence: 'always', retry: { maxAttempts: 2, backoffSeconds: 0 },
  waits: { code: { schema: ${pin} }, next: { schema: { type: 'boolean' } } },
  run: async ({ browser, variables: { url, fails }, waitFor, step, log, progress }) => {
    const { value } = await waitFor('code')
    const message = 'The PIN is ' + value.pin + '.'
    await waitFor('next', { title: message, show: { message } })
    log(message)
    log(JSON.stringify(value))
    console.log(value)
    process.stdout.write(message + '\\n')
    progress(10, message)
    await step('remember', () => message)
    const context = await browser({ extraHTTPHeaders: { 'X-Pin': value.pin } })
    const page = await context.newPage()
    await page.goto(url + '/?pin=' + value.pin)
    await page.fill('#pin', value.pin)
    await page.press('#pin', 'Enter')
    await page.waitForURL(/pin/)
    await page.locator('pre', { hasText: value.pin }).waitFor()
    await page.evaluate((text) => { console.log(text); return fetch('/missing/' + text, { method: 'POST', body: text }) }, value.pin)
    if (fails) throw new Error(message, { cause: new Error(value.pin) })
    return { message, [value.pin]: [value.pin], hint: value.hint }
  }`,
)

/** Everything that is kept of the run, as it is shown; of archives each file. Pictures show what the page has shown. */
async function readPlaces({ store, waits, artifacts }: Domain, run: Run): Promise<[string, Buffer | string][]> {
  const { query } = store.read
  const events = await query.selectFrom('run_events').selectAll().where('run_id', '=', run.id).execute()
  const deliveries = await query.selectFrom('webhook_deliveries').selectAll().execute()
  const audited = await query.selectFrom('audit_log').selectAll().execute()
  const places: [string, Buffer | string][] = [
    ['the run', JSON.stringify(run)],
    ['its waits', JSON.stringify(await waits.latestOfRun(run, 10))],
    ['its events', JSON.stringify(events)],
    ['webhooks', JSON.stringify([...(await readBodies(store.read, deliveries)).values()])],
    ['the audit log', JSON.stringify(audited)],
  ]
  for (const { name } of run.artifacts) {
    const artifact = await artifacts.read(run.accountId, run.id, name)
    const content = Buffer.from(artifact?.content ?? [])
    const files = name.endsWith('.zip') ? Object.entries(unzipSync(content)) : [['', content] as const]
    for (const [file, data] of files) places.push([`${name}/${file}`, Buffer.from(data)])
  }
  return places.filter(([name]) => !/\.(jpe?g|png)\/?$/.test(name))
}

test.for([
  { fails: false, status: 'succeeded', attempts: 1 },
  { fails: true, status: 'failed', attempts: 2 },
])("a run that has $status leaves no secret of its answer, but the answer's other members", async (expected, test) => {
  const { fails, status, attempts } = expected
  const snapshot = await snapshotOf(await writeModules(test, { 'sign-in.ts': workflow }))
  const { domain, principal } = await openInstallation(test, undefined, snapshot)
  const events = ['run.waiting', 'run.succeeded', 'run.failed']
  const endpoint = { url: 'https://example.com/hooks', events, workflowIds: [], tags: [] }
  await domain.webhookEndpoints.create(principal.accountId, endpoint as never, { kind: 'user', id: null, name: 'me' })
  const { log } = await startWorker(test, domain, { memoryMegabytesMax: 256 })
  const variables = { url: await startSite(test), fails }
  const run = await queueRun(domain, principal, { workflowId: 'sign-in', variables })
  await untilWaiting(domain, run, 'answer')
  const secret = `canary-${crypto.randomUUID()} & "more"`
  const hint = `hint-${crypto.randomUUID()}`
  const by = { link: 'test', address: '203.0.113.7' }
  const answer = (name: string, value: unknown) => domain.waits.answer(principal.accountId, run.id, name, value, by)
  expect(await answer('code', { pin: secret, hint })).toMatchObject({ kind: 'answered' })
  await vi.waitUntil(async () => {
    const waits = await domain.waits.latestOfRun(run, 10)
    return waits.some(({ name, status }) => name === 'next' && status === 'open')
  }, waitLimits)
  expect(await answer('next', true)).toMatchObject({ kind: 'answered' })
  const ended = await waitForRun(domain, run)
  expect(ended).toMatchObject({ status, attempts })
  const names = ['browser.json', 'page-1.jpg', 'trace.zip'].map((name) => `attempt-${attempts}-${name}`)
  expect(ended.artifacts.map(({ name }) => name)).toEqual(expect.arrayContaining(names))
  const places = await readPlaces(domain, ended)
  places.push(['the log of the worker', log.join('')])
  expect(findCanaries(places, [secret])).toEqual([])
  // The search finds what is there: the hint, and in each place the mask of what was replaced.
  const masked = findCanaries(places, ['********'])
  const shown = ['the run', 'its waits', 'its events', 'webhooks', `attempt-${attempts}-browser.json/`]
  expect(masked).toEqual(expect.arrayContaining([...shown, `attempt-${attempts}-trace.zip/0-trace.trace`]))
  expect(findCanaries(places, [hint])).toEqual(expect.arrayContaining(['its waits', 'its events']))
  expect((await sqlite.contents(domain.location)).includes(secret)).toBe(false)
})
