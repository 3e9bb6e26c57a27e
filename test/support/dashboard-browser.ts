/** Starts a service and a browser, for tests that use the dashboard like a person. */
import type { Page } from 'playwright-core'
import { type Browser, type PageOptions, startBrowser } from './browser.ts'
import type { Test } from './domain.ts'
import { type Installation, newInstallation, type ServiceProcess } from './installation.ts'

export const owner = { name: 'Ada Lovelace', email: 'ada@example.com', password: 'a difference engine' }

export interface Dashboard {
  installation: Installation
  service: ServiceProcess
  browser: Browser
  /** Opens a window that is not signed in. */
  open(test: Test, options?: PageOptions): Promise<Page>
  /** Accepts the welcome link in a new window. */
  createOwner(): Promise<void>
  /** The link that the first start printed. */
  welcomeUrl: string
  /** Calls the Execution API. Returns the status, and the body parsed if it is JSON. */
  call(key: string, method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }>
  stop(): Promise<void>
}

/** Starts a service like `npm start`, with a new data directory, and a browser. */
export async function startDashboard(environment: Record<string, string> = {}): Promise<Dashboard> {
  const installation = await newInstallation(environment)
  const [service, browser] = await Promise.all([installation.start(), startBrowser()])
  const welcomeUrl = /^ +(http:\S+\/links\/\S+)$/m.exec(service.output())?.[1] ?? ''
  const open: Dashboard['open'] = (test, options) =>
    browser.newPage(test, { baseUrl: service.dashboardUrl, ...options })
  return {
    installation,
    service,
    browser,
    welcomeUrl,
    open,
    createOwner: () => inNewWindow(open, (page) => acceptWelcomeLink(page, welcomeUrl)),
    call: (key, method, path, body) => call(`${service.executionUrl}${path}`, key, method, body),
    async stop() {
      await browser.close()
      await installation.remove()
    },
  }
}

/** Calls `act` with a new window, and closes the window. */
export async function inNewWindow(
  open: Dashboard['open'],
  act: (page: Page) => Promise<void>,
  options: PageOptions = {},
): Promise<void> {
  const ends: (() => unknown)[] = []
  const test = { onTestFinished: (end: () => unknown) => void ends.push(end) } as unknown as Test
  try {
    await act(await open(test, options))
  } finally {
    for (const end of ends) await end()
  }
}

async function call(url: string, key: string, method: string, body: unknown) {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const response = await fetch(url, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) })
  const text = await response.text()
  return { status: response.status, body: text.startsWith('{') ? JSON.parse(text) : text }
}

/** Opens the welcome link and creates the owner. */
export async function acceptWelcomeLink(page: Page, welcomeUrl: string): Promise<void> {
  await page.goto(welcomeUrl)
  await page.getByLabel('Name').fill(owner.name)
  await page.getByLabel('Email').fill(owner.email)
  await page.getByLabel('Password').fill(owner.password)
  await page.getByRole('button', { name: 'Create user' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
}

export async function signIn(page: Page, user: { email: string; password: string } = owner): Promise<void> {
  await page.goto('/sign-in')
  await page.getByLabel('Email').fill(user.email)
  await page.getByLabel('Password').fill(user.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
}

/** Creates an API key on its page, and returns the value, which is shown once. With scopes, it may be restricted to workflows. */
export async function createKey(
  page: Page,
  name: string,
  { scopes, workflows = '' }: { scopes?: readonly string[]; workflows?: string } = {},
): Promise<string> {
  await page.goto('/')
  await page.getByRole('link', { name: 'API Keys' }).click()
  await page.getByRole('link', { name: 'Create API key' }).first().click()
  await page.getByLabel('Name').fill(name)
  if (scopes) {
    await page.getByLabel('Selected scopes only').check()
    for (const scope of scopes) await page.getByLabel(scope, { exact: true }).check()
    await page.getByLabel('Only for these workflows').fill(workflows)
  }
  await page.getByRole('button', { name: 'Create API key' }).click()
  return page.locator('#key-value').innerText()
}

/** Deletes the key with this name, on the pages that ask for it. */
export async function deleteKey(page: Page, name: string): Promise<void> {
  await page.goto('/api-keys')
  await page.getByRole('link', { name: `Delete ${name}`, exact: true }).click()
  await page.getByRole('button', { name: 'Delete key' }).click()
  await page.getByText('Programs that used it no longer have access').waitFor()
}
