/** Evidence of what an attempt's browser did: when it is kept, that it has no secrets, and that it changes no outcome. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { strFromU8, unzipSync } from 'fflate'
import { expect, test } from 'vitest'
import type { Run } from '../../src/domain/runs/run.ts'
import { findCanaries } from '../support/canaries.ts'
import { queueRun, type Test } from '../support/domain.ts'
import { snapshotOf } from '../support/snapshots.ts'
import { moduleText, openInstallation, startWorker, waitForRun, writeModules } from '../support/worker.ts'

const page = `<!doctype html><title>Sign in</title>
  <form method="post" action="/signed-in"><input id="user" name="user"><input id="password" name="password" type="password">
  <button>Sign in</button></form>`

/** A site that sets cookies and storage, and repeats what it was sent. */
async function startSite(test: Test, values: Record<'cookie' | 'stored' | 'session', string>): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray()
    response.setHeader('Content-Type', 'text/html')
    response.setHeader('Set-Cookie', `sid=${values.cookie}; Path=/`)
    if (request.url === '/missing') return response.writeHead(404).end()
    const script = `localStorage.setItem('token', JSON.stringify({ value: ${JSON.stringify(values.stored)} }))
      sessionStorage.setItem('draft', ${JSON.stringify(values.session)})
      console.log('stored', localStorage.token, sessionStorage.draft)
      fetch('/missing')`
    response.end(`${page}<pre>${Buffer.concat(chunks as Buffer[])}</pre><script>${script}</script>`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  test.onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const schema = `{ type: 'object', properties: { url: { type: 'string' }, secret: { type: 'string', writeOnly: true }, how: { type: 'string' } } }`

/** A workflow that signs in and then ends in one of several ways. */
function signIn(id: string, options = ''): string {
  return moduleText(
    id,
    `variables: ${schema}, browser: true, ${options}
    run: async ({ browser, variables: { url, secret, how, typed }, signal }) => {
      const context = await browser({ extraHTTPHeaders: { Authorization: 'Bearer ' + typed + '-header' } })
      const page = await context.newPage()
      const missing = page.waitForResponse((response) => response.url().endsWith('/missing'))
      await page.goto(url)
      await missing
      await page.fill('#user', 'shopper')
      await page.fill('#password', typed)
      await page.click('button')
      await page.focus('#password')
      await page.keyboard.type(typed + '-keys')
      await page.evaluate((text) => console.log(text), secret)
      if (how === 'fail') throw new Error('The button is gone.')
      if (how === 'close and fail') { await context.close(); throw new Error('The button is gone.') }
      if (how === 'wait') await page.click('#never')
      if (how === 'ignore the signal') await new Promise((resolve) => setTimeout(resolve, 600000))
      if (how === 'trace') { await context.tracing.start({}); await context.tracing.stop(); throw new Error('The button is gone.') }
      return null
    }`,
  )
}

async function open(test: Test) {
  const modules = {
    'sign-in.ts': signIn('sign-in'),
    'always.ts': signIn('always', "evidence: 'always',"),
    'off.ts': signIn('off', "evidence: 'off',"),
    'twice.ts': signIn('twice', 'retry: { maxAttempts: 2, backoffSeconds: 0 },'),
    'short.ts': signIn('short', 'timeLimitSeconds: 8,'),
  }
  const installation = await openInstallation(test, undefined, await snapshotOf(await writeModules(test, modules)))
  const canaries = Object.fromEntries(
    ['cookie', 'stored', 'session', 'secret', 'typed'].map((name) => [name, `canary-${crypto.randomUUID()}`]),
  ) as Record<'cookie' | 'stored' | 'session' | 'secret' | 'typed', string>
  const url = await startSite(test, canaries)
  const { domain, principal } = installation
  await startWorker(test, domain, { memoryMegabytesMax: 256, abortGraceSeconds: 1 })
  return {
    canaries: Object.values(canaries),
    run: async (workflowId: string, how = 'end') => {
      const variables = { url, how, secret: canaries.secret, typed: canaries.typed }
      return waitForRun(domain, await queueRun(domain, principal, { workflowId, variables }))
    },
    contents: (run: Run) =>
      Promise.all(
        run.artifacts.map(async ({ name }) => {
          const artifact = await domain.artifacts.read(principal.accountId, run.id, name)
          return [name, Buffer.from(artifact?.content ?? [])] as [string, Buffer]
        }),
      ),
  }
}

const files = ['attempt-1-browser.json', 'attempt-1-page-1.jpg', 'attempt-1-trace.zip']
const namesOf = ({ artifacts }: Run) => artifacts.map(({ name }) => name).sort()

test('a failed attempt leaves its pages, their console and failed requests, and a trace, without secrets', async (test) => {
  const site = await open(test)
  const failed = await site.run('sign-in', 'fail')
  expect(failed).toMatchObject({ status: 'failed', error: { message: 'The button is gone.' } })
  expect(failed.artifacts).toHaveLength(3)
  expect(failed.artifacts).toMatchObject(failed.artifacts.map(() => ({ kind: 'evidence', attempt: 1 })))
  expect(namesOf(failed)).toEqual(files)
  const contents = new Map(await site.contents(failed))
  const summary = JSON.parse(contents.get('attempt-1-browser.json')?.toString() ?? '')
  expect(summary).toMatchObject({
    pages: [{ url: expect.stringContaining('/signed-in'), title: 'Sign in', screenshot: 'attempt-1-page-1.jpg' }],
    trace: 'attempt-1-trace.zip',
  })
  expect(summary.console).toContainEqual({
    level: 'log',
    text: expect.stringContaining('stored'),
    url: expect.anything(),
  })
  expect(summary.failedRequests).toContainEqual(expect.objectContaining({ method: 'GET', status: 404 }))
  const trace = Object.entries(unzipSync(contents.get('attempt-1-trace.zip') ?? new Uint8Array()))
  const events = trace
    .filter(([name]) => name.endsWith('.trace'))
    .map(([, data]) => strFromU8(data))
    .join('\n')
  expect(events).toContain('"method":"fill"')
  // Of the page as it is at the end.
  const snapshots = events.split('\n').filter((event) => event.includes('frame-snapshot'))
  expect(snapshots.filter((event) => !event.includes('No DOM was recorded')).length).toBeLessThan(5)
  const places = [...contents].filter(([name]) => !name.endsWith('.jpg'))
  const unpacked = trace
    .filter(([name]) => !/\.(jpe?g|png)$/.test(name))
    .map(([name, data]) => [name, Buffer.from(data)] as [string, Buffer])
  expect(unpacked.map(([name]) => name)).toEqual(expect.arrayContaining(['0-trace.trace', '1-trace.trace']))
  expect(findCanaries([...places, ...unpacked], site.canaries)).toEqual([])
})

test('an attempt that follows a failed one records the DOM of each action and the network, without secrets', async (test) => {
  const site = await open(test)
  const failed = await site.run('twice', 'fail')
  expect(failed).toMatchObject({ status: 'failed', attempts: 2 })
  const contents = new Map(await site.contents(failed))
  const trace = unzipSync(contents.get('attempt-2-trace.zip') ?? new Uint8Array())
  const unpacked = Object.entries(trace).map(([name, data]) => [name, Buffer.from(data)] as [string, Buffer])
  const events = String(trace['0-trace.trace'] && strFromU8(trace['0-trace.trace']))
  expect(events).toContain('"value":"shopper"')
  expect(events.split('\n').filter((event) => event.includes('frame-snapshot')).length).toBeGreaterThan(10)
  expect(Object.keys(trace).some((name) => name.startsWith('resources/'))).toBe(true)
  const texts = [...contents, ...unpacked].filter(([name]) => !/\.(jpe?g|png)$/.test(name))
  expect(findCanaries(texts, site.canaries)).toEqual([])
})

test('evidence is kept as the policy says, and of attempts that exceed their time limit', async (test) => {
  const site = await open(test)
  expect((await site.run('sign-in')).artifacts).toEqual([])
  expect(namesOf(await site.run('always'))).toEqual(files)
  expect((await site.run('off', 'fail')).artifacts).toEqual([])
  for (const how of ['wait', 'ignore the signal']) {
    const late = await site.run('short', how)
    expect(late).toMatchObject({ status: 'timedOut' })
    expect(namesOf(late)).toEqual(files)
  }
})

test('a workflow may close its browser or record its own trace', async (test) => {
  const site = await open(test)
  expect(namesOf(await site.run('sign-in', 'close and fail'))).toEqual(files)
  const traced = await site.run('sign-in', 'trace')
  expect(traced).toMatchObject({ status: 'failed', error: { message: 'The button is gone.' } })
  expect(namesOf(traced)).toEqual(files.slice(0, 2))
})
