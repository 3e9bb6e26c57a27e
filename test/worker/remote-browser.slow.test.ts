/** A worker of this package that reaches the service over HTTP alone executes workflows that use a browser. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { strFromU8, unzipSync } from 'fflate'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createContext, putState, send } from '../operations/requests.ts'
import { createState } from '../support/browser-contexts.ts'
import { type Site, startSite, type Visited } from '../support/browsing.ts'
import { main, startTestService, type TestAccount, type TestService } from '../support/service.ts'
import { waitLimits } from '../support/timeouts.ts'
import { moduleText } from '../support/worker.ts'

const directory = mkdtempSync(join(tmpdir(), 'remote-browser-'))
const log: string[] = []
let service: TestService
let site: Site
let account: TestAccount
let worker: ChildProcess

/** Waits for an answer while its browser is open. */
const waiting = moduleText(
  'sign-in',
  `browser: true, timeLimitSeconds: 120,
  variables: { type: 'object', properties: { url: { type: 'string' }, secret: { type: 'string', writeOnly: true } } },
  waits: { code: { schema: { type: 'string' } } },
  run: async ({ browser, waitFor, step, variables }) => {
    await step('open', async () => {
      const page = await (await browser()).newPage()
      await page.goto(variables.url + '?cookie=' + variables.secret)
    })
    const code = await waitFor('code')
    const page = await (await browser()).newPage()
    await page.goto(variables.url)
    const seen = await page.evaluate('document.body.innerText')
    return { code, isSignedIn: seen.includes(variables.secret) }
  }`,
)

/** Types a secret into a page, and fails. */
const failing = moduleText(
  'fail',
  `browser: true, timeLimitSeconds: 120,
  variables: { type: 'object', properties: { url: { type: 'string' }, secret: { type: 'string', writeOnly: true } } },
  run: async ({ browser, variables }) => {
    const page = await (await browser()).newPage()
    await page.goto(variables.url + '?cookie=' + variables.secret + '-cookie')
    await page.goto(variables.url + '?q=' + variables.secret)
    await page.evaluate((text) => console.log(text), 'typed ' + variables.secret)
    throw new Error('No button for ' + variables.secret)
  }`,
)

beforeAll(async () => {
  site = await startSite()
  for (const name of ['browse.ts', 'browse-briefly.ts'])
    copyFileSync(fileURLToPath(new URL(`./workflows/${name}`, import.meta.url)), join(directory, name))
  writeFileSync(join(directory, 'sign-in.ts'), waiting)
  writeFileSync(join(directory, 'fail.ts'), failing)
  const settings = { WORKFLOWS_DIR: directory, LEASE_SECONDS: '5' }
  service = await startTestService({ worker: false, settings })
  account = await service.createAccount()
  worker = startWorker(account.key)
})
afterAll(async () => {
  await stop(worker)
  await service?.stop()
  site?.close()
  rmSync(directory, { recursive: true })
})

function startWorker(key: string, settings: Record<string, string> = {}): ChildProcess {
  const { PATH = '', BROWSER_PATH } = process.env
  const environment = { PATH, ...(BROWSER_PATH && { BROWSER_PATH }), ...settings, API_KEY: key, LOG_LEVEL: 'debug' }
  const args = [main, 'worker', '--url', service.executionUrl]
  const started = spawn(process.execPath, args, { cwd: tmpdir(), env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
  for (const stream of [started.stdout, started.stderr]) stream?.on('data', (data) => log.push(String(data)))
  return started
}

async function stop(started: ChildProcess | undefined): Promise<void> {
  if (!started || started.exitCode !== null) return
  started.kill('SIGTERM')
  await once(started, 'exit')
}

interface Options {
  workflowId?: string
  contextId?: string
  persist?: string
}

async function queue(variables: object, { workflowId = 'browse', contextId, persist = 'onSuccess' }: Options = {}) {
  const query = contextId === undefined ? '' : `browserContextId=${contextId}&persistContext=${persist}`
  const variableData = { url: site.url, ...(workflowId === 'browse' && { how: 'staying' }), ...variables }
  const filled = { path: { workflowId }, query, body: { variableData } }
  const queued = await send(service, 'queueRemoteRun', account.key, filled)
  expect(queued.status, queued.text).toBe(202)
  return queued.body.id as string
}

async function get(runId: string) {
  return (await send(service, 'getRun', account.key, { path: { runId } }).expect(200)).body
}

function ended(runId: string) {
  return vi.waitUntil(async () => {
    const run = await get(runId)
    return run.finishedAt !== null && run
  }, waitLimits)
}

async function visited(variables: object, options: Options = {}): Promise<Visited> {
  const run = await ended(await queue(variables, options))
  expect(run, log.join('')).toMatchObject({ status: 'succeeded' })
  return run.output
}

async function stored(browserContextId: string): Promise<string> {
  return JSON.stringify((await send(service, 'getStorageState', account.key, { path: { browserContextId } })).body)
}

async function contextOf(browserContextId: string) {
  return (await send(service, 'getBrowserContext', account.key, { path: { browserContextId } }).expect(200)).body
}

const canary = (name: string) => `canary-${name}-${crypto.randomUUID()}`
const file = (name: string) => join(directory, name)

test('a run starts with what the run before has saved, and only one run uses the context at a time', async () => {
  const contextId = await createContext(service, account)
  const [one, two, until] = [canary('one'), canary('two'), file('until two')]
  expect((await visited({ value: one }, { contextId })).before.cookies).toBe('')
  const started = file('started two')
  const second = await queue({ value: two, started, until }, { contextId })
  await vi.waitUntil(() => existsSync(started), waitLimits)
  const third = await queue({}, { contextId })
  await vi.waitUntil(async () => (await get(third)).waitingFor === 'browserContext', waitLimits)
  expect(await contextOf(contextId)).toMatchObject({ status: 'inUse', heldByRunId: second })
  writeFileSync(until, '')
  expect((await ended(second)).output.before).toMatchObject({ cookies: `visit=${one}`, local: one, database: one })
  expect((await ended(third)).output.before).toMatchObject({ cookies: `visit=${two}`, local: two, session: '' })
  // The last run has changed nothing.
  expect(await contextOf(contextId)).toMatchObject({ status: 'ready', version: 2 })
  expect(log.join('')).not.toMatch(/canary/)
})

test('a failed attempt leaves evidence without secrets, and its context as it was', async () => {
  const contextId = await createContext(service, account)
  await putState(service, account, contextId, JSON.parse(createState('before')))
  const secret = canary('secret')
  const runId = await queue({ secret }, { workflowId: 'fail', contextId })
  const run = await ended(runId)
  expect(run).toMatchObject({ status: 'failed', error: { message: 'No button for ********' } })
  const evidence = ['attempt-1-page-1.jpg', 'attempt-1-browser.json', 'attempt-1-trace.zip']
  expect(run.evidence.map(({ name }: { name: string }) => name).sort()).toEqual([...evidence].sort())
  const contents = await Promise.all(
    evidence.map(async (artifactName) => {
      const url = `${service.executionUrl}/v1/execution/runs/${runId}/artifacts/${artifactName}`
      const response = await fetch(url, { headers: { Authorization: `Bearer ${account.key}` } })
      return new Uint8Array(await response.arrayBuffer())
    }),
  )
  const [picture, summary, trace] = contents as [Uint8Array, Uint8Array, Uint8Array]
  expect([...picture.slice(0, 2)]).toEqual([0xff, 0xd8])
  expect(JSON.parse(strFromU8(summary)).console).toMatchObject([{ text: 'typed ********' }])
  const texts = [strFromU8(summary), ...Object.values(unzipSync(trace)).map((bytes) => strFromU8(bytes))]
  expect(texts.join('')).toContain('********')
  expect(texts.join('')).not.toContain(secret)
  expect(await stored(contextId)).toBe(JSON.stringify(JSON.parse(createState('before'))))
})

test.for([
  ['is cancelled', 'onSuccess', false],
  ['is cancelled', 'always', true],
  ['has too much to save', 'onSuccess', false],
] as const)('a run that %s with persistContext %s keeps what that says', async ([end, persist, isKept]) => {
  const contextId = await createContext(service, account)
  await putState(service, account, contextId, JSON.parse(createState('before')))
  const [value, started] = [canary('ending'), file(`started ${crypto.randomUUID()}`)]
  const more = end === 'is cancelled' ? { started, until: file('never there') } : { how: 'hoarding' }
  const runId = await queue({ value, ...more }, { contextId, persist })
  if (end === 'is cancelled') {
    await vi.waitUntil(() => existsSync(started), waitLimits)
    await send(service, 'cancelRun', account.key, { path: { runId } }).expect(200)
  }
  const expected = end === 'is cancelled' ? { status: 'cancelled' } : { status: 'failed', reason: 'contextNotSaved' }
  expect(await ended(runId), log.join('')).toMatchObject(expected)
  expect((await stored(contextId)).includes(value)).toBe(isKept)
  expect(await contextOf(contextId)).toMatchObject({ status: 'ready', version: isKept ? 2 : 1 })
})

test('cookies of the context are masked in logs, errors and progress', async () => {
  const contextId = await createContext(service, account)
  const value = canary('told')
  await visited({ value }, { contextId })
  const runId = await queue({ how: 'telling' }, { contextId })
  const run = await ended(runId)
  expect(run).toMatchObject({ status: 'failed', error: { message: 'The site says ********.' } })
  const events = await service.rows('SELECT data FROM run_events WHERE run_id = ?', runId)
  expect(JSON.stringify([run, events])).not.toContain(value)
  expect(JSON.stringify(events)).toContain('The site says ********.')
})

test('a run that waits saves the state of its browser, and goes on signed in', async () => {
  const contextId = await createContext(service, account)
  const secret = canary('session')
  const runId = await queue({ secret }, { workflowId: 'sign-in', contextId })
  await vi.waitUntil(async () => (await get(runId)).waitingFor === 'answer', waitLimits)
  expect(await contextOf(contextId)).toMatchObject({ status: 'ready', version: 1 })
  await send(service, 'completeWait', account.key, { path: { runId, name: 'code' }, body: { value: '42' } }).expect(200)
  expect(await ended(runId), log.join('')).toMatchObject({ status: 'succeeded', attempts: 1 })
  expect((await get(runId)).output).toMatchObject({ isSignedIn: true })
})

test('a worker that was frozen past its lease saves nothing, and the next attempt starts from what was there', async () => {
  const contextId = await createContext(service, account)
  await putState(service, account, contextId, JSON.parse(createState('before', '127.0.0.1')))
  const [value, started, until] = [canary('frozen'), file('started frozen'), file('until frozen')]
  const runId = await queue({ value, started, until }, { contextId, persist: 'always' })
  await vi.waitUntil(() => existsSync(started), waitLimits)
  worker.kill('SIGSTOP')
  const second = startWorker(account.key)
  try {
    await vi.waitUntil(async () => (await get(runId)).attempts === 2, waitLimits)
    worker.kill('SIGCONT')
    writeFileSync(until, '')
    const run = await ended(runId)
    expect(run, log.join('')).toMatchObject({ status: 'succeeded', attempts: 2 })
    // The cookie of the first attempt is not there.
    expect(run.output.before.cookies).toBe('session=before')
    expect(await contextOf(contextId)).toMatchObject({ status: 'ready', version: 2 })
  } finally {
    worker.kill('SIGCONT')
    await stop(second)
  }
})

test('a worker whose BROWSER_PATH is wrong says so, and does not start', async () => {
  const before = log.length
  const started = startWorker(account.key, { BROWSER_PATH: '/nowhere/chromium' })
  const [code] = await once(started, 'exit')
  expect(code).not.toBe(0)
  expect(log.slice(before).join('')).toMatch(/^BROWSER_PATH is "\/nowhere\/chromium", which does not run/m)
})
