/** Helpers for tests of browser contexts: storage states, uploads, and runs that lease a context. */

import { fileURLToPath } from 'node:url'
import type { BrowserContext } from '../../src/domain/browser-contexts/browser-contexts.ts'
import type { Claim } from '../../src/domain/queue/attempts.ts'
import { claimableOf } from '../support/claims.ts'
import { type DashboardService, type SignedInUser, startDashboardService } from '../support/dashboard.ts'
import { inputValue } from '../support/html.ts'
import type { Environment } from '../support/service-storage.ts'

/** A workflow with a browser, and one without. */
const workflows = fileURLToPath(new URL('workflows', import.meta.url))

/** Starts a service without a worker: runs stay queued until a test claims them. */
export function startBrowserDashboard(settings: Environment = {}): Promise<DashboardService> {
  return startDashboardService({ WORKFLOWS_DIR: workflows, ...settings })
}

/** A storage state in Playwright's format with a cookie for each site. */
export function createState(sites: string[], { cookie = 'cookie-value', stored = 'stored-value' } = {}) {
  const rest = { path: '/', expires: -1, httpOnly: true, secure: true, sameSite: 'Lax' }
  return {
    cookies: sites.map((domain) => ({ name: 'session', value: cookie, domain, ...rest })),
    origins: [{ origin: 'https://example.com', localStorage: [{ name: 'token', value: stored }] }],
  }
}

/** Uploads the file like a browser. */
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
  dashboard: DashboardService,
  { accountId }: SignedInUser,
  name?: string,
): Promise<BrowserContext> {
  const context = await dashboard.domain.browserContexts.create(accountId, name)
  if (!context) throw new Error('The name is taken.')
  return context
}

/** Queues a run of the workflow `browse` in the dashboard. Returns the run's id. */
export async function queueFromForm(
  { visitor }: SignedInUser,
  fields: Record<string, string>,
  workflowId = 'browse',
): Promise<string> {
  const key = inputValue(await visitor.get(`/workflows/${workflowId}`), 'key') ?? ''
  const response = await visitor.post(`/workflows/${workflowId}`, { key, 'variable-url': '', ...fields })
  const id = String(response.headers.location ?? '').match(/^\/runs\/(.+)$/)?.[1]
  if (id === undefined) throw new Error(`Not queued: ${response.status}`)
  return id
}

/** Claims the ready runs like a worker. */
export function claim({ domain }: DashboardService): Promise<Claim[]> {
  const retry = { maxAttempts: 1, backoffSeconds: 1, backoffFactor: 2 }
  const workflow = { id: 'browse', version: '1.0.0', retry, usesBrowser: true }
  return domain.queue.claim('worker', claimableOf([workflow]), 10, 60)
}

/** Makes a run lease the context. Returns the claim. */
export async function leaseContext(dashboard: DashboardService, user: SignedInUser, contextId: string): Promise<Claim> {
  const id = await queueFromForm(user, { browserContextId: contextId, persistContext: 'onSuccess' })
  const leased = (await claim(dashboard)).find(({ runId }) => runId === id)
  if (!leased?.contextLease) throw new Error('The run has not leased the context.')
  return leased
}
