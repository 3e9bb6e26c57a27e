/** What the tests of browser contexts have in common: storage states, sending them as files, and runs that hold contexts. */
import { fileURLToPath } from 'node:url'
import type { BrowserContext } from '../../src/domain/browser-contexts/browser-contexts.ts'
import type { Claim } from '../../src/domain/runs/attempts.ts'
import { type DashboardService, inputValue, type SignedInUser, startDashboardService } from '../support/dashboard.ts'

/** One that uses a browser, and one that does not. */
const workflows = fileURLToPath(new URL('workflows', import.meta.url))

/** A service without a worker: its runs stay queued until a test claims them. */
export function serveBrowsers(): Promise<DashboardService> {
  return startDashboardService({ WORKFLOWS_DIR: workflows })
}

/** As Playwright writes it, with a cookie for each of the sites. */
export function stateOf(sites: string[], { cookie = 'cookie-value', stored = 'stored-value' } = {}) {
  const rest = { path: '/', expires: -1, httpOnly: true, secure: true, sameSite: 'Lax' }
  return {
    cookies: sites.map((domain) => ({ name: 'session', value: cookie, domain, ...rest })),
    origins: [{ origin: 'https://example.com', localStorage: [{ name: 'token', value: stored }] }],
  }
}

/** Sends the file as a browser does from the page of the context. */
export function upload({ visitor }: SignedInUser, contextId: string, content: string | Buffer, field = 'state') {
  const boundary = '----WebKitFormBoundary7MA4YWxkTrZu0gW'
  const head = `Content-Disposition: form-data; name="${field}"; filename="state.json"\r\nContent-Type: application/json`
  const body = Buffer.concat([
    Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`),
    Buffer.from(content),
    Buffer.from(`\r\n--${boundary}--\r\n`),
  ])
  return sendMultipart(visitor, contextId, body, boundary)
}

export function sendMultipart(visitor: SignedInUser['visitor'], contextId: string, body: Buffer, boundary: string) {
  const type = `multipart/form-data; boundary=${boundary}`
  const headers = { 'Sec-Fetch-Site': 'same-origin', 'Content-Type': type }
  return visitor.send('POST', `/browser-contexts/${contextId}`, { headers, body })
}

export async function newContext(
  served: DashboardService,
  { accountId }: SignedInUser,
  name?: string,
): Promise<BrowserContext> {
  const context = await served.domain.browserContexts.create(accountId, name)
  if (!context) throw new Error('The name is taken.')
  return context
}

/** Queues a run of the workflow `browse` in the dashboard, and returns its id. */
export async function queueWith({ visitor }: SignedInUser, fields: Record<string, string>): Promise<string> {
  const key = inputValue(await visitor.get('/workflows/browse'), 'key') ?? ''
  const answer = await visitor.post('/workflows/browse', { key, 'variable-url': '', ...fields })
  const id = String(answer.headers.location ?? '').match(/^\/runs\/(.+)$/)?.[1]
  if (id === undefined) throw new Error(`Not queued: ${answer.status}`)
  return id
}

/** A worker takes the runs that are ready. */
export function claim({ domain }: DashboardService): Promise<Claim[]> {
  const retry = { maxAttempts: 1, backoffSeconds: 1, backoffFactor: 2 }
  return domain.queue.claim('worker', [{ id: 'browse', version: '1.0.0', concurrencyLimit: null, retry }], 10, 60)
}

/** Lets a run hold the context, and returns its claim. */
export async function holdContext(served: DashboardService, person: SignedInUser, contextId: string): Promise<Claim> {
  const id = await queueWith(person, { browserContextId: contextId, persistContext: 'onSuccess' })
  const taken = (await claim(served)).find(({ runId }) => runId === id)
  if (!taken?.contextLease) throw new Error('The run does not hold the context.')
  return taken
}
