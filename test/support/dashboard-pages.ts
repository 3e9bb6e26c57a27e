/** Every page of the dashboard with data on it, for screenshots and accessibility checks. */
import { fileURLToPath } from 'node:url'
import { Secret, TOTP } from 'otpauth'
import type { Page } from 'playwright-core'
import { readConfig } from '../../src/config/config.ts'
import { acquireContextLease } from '../../src/domain/browser-contexts/context-lease.ts'
import { openStore } from '../../src/domain/installation.ts'
import { putArtifact } from '../../src/domain/queue/attempt-artifacts.ts'
import type { NewArtifact } from '../../src/domain/runs/artifact.ts'
import type { Store } from '../../src/storage/store.ts'
import { createKey, type Dashboard, inNewWindow, owner } from './dashboard-browser.ts'
import { notificationPages } from './notification-pages.ts'
import { schedulePages } from './schedule-pages.ts'
import { until } from './service.ts'
import { signInPages } from './sign-in-pages.ts'
import { webhookPages } from './webhook-pages.ts'

export interface ShownPage {
  /** Name of the screenshot's file. */
  name: string
  /** Opens the page in a window that is signed in where necessary. */
  open(page: Page): Promise<unknown>
}

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The service whose pages are shown has the examples, which may read this checkout. */
export const exampleSettings = {
  WORKFLOWS_DIR: `${root}examples/workflows`,
  EXAMPLE_FILES_DIR: root,
  EXECUTOR_ENV: 'EXAMPLE_*',
}

const at = (name: string, path: string): ShownPage => ({ name, open: (page) => page.goto(path) })

/** Returns pages that need no session. `welcomeUrl` must be unused. */
export function signedOutPages(welcomeUrl: string): ShownPage[] {
  const wrong = async (page: Page) => {
    await page.goto('/sign-in')
    await page.getByLabel('Email').fill('somebody@example.com')
    await page.getByLabel('Password').fill('not the password')
    await page.getByRole('button', { name: 'Sign in' }).click()
  }
  return [
    at('welcome', welcomeUrl),
    at('link-ended', '/links/none'),
    at('sign-in', '/sign-in'),
    { name: 'sign-in-refused', open: wrong },
  ]
}

/** Pages of an empty account. */
export const emptyPages: ShownPage[] = [
  at('overview-empty', '/'),
  at('runs-empty', '/runs'),
  at('browser-contexts-empty', '/browser-contexts'),
  at('schedules-empty', '/schedules'),
  at('webhooks-empty', '/webhooks'),
  at('notifications-empty', '/settings/notifications'),
  at('api-keys-empty', '/api-keys'),
]

/** Pages of two-factor authentication, the last of which signs the user out. */
const twoFactorPages: ShownPage[] = [
  at('two-factor-set-up', '/profile/two-factor/set-up'),
  { name: 'two-factor-codes', open: setUpTwoFactor },
  at('two-factor', '/profile/two-factor'),
  { name: 'sign-in-code', open: enterPassword },
]

/** Sets up two-factor authentication of the owner, and returns the secret. */
export async function setUpTwoFactor(page: Page): Promise<string> {
  await page.goto('/profile/two-factor/set-up')
  const secret = await page.locator('input[name=secret]').inputValue()
  await page.getByLabel('Code', { exact: true }).fill(codeOf(secret))
  await page.getByLabel('Current password').fill(owner.password)
  await page.getByRole('button', { name: 'Turn on' }).click()
  await page.getByRole('heading', { name: 'Recovery codes' }).waitFor()
  return secret
}

/** The code of this time step, or of one close to it. */
export function codeOf(secret: string, steps = 0): string {
  return new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: Date.now() + steps * 30_000 })
}

/** Opens the page that asks for the code. */
export async function enterPassword(page: Page): Promise<void> {
  await page.context().clearCookies()
  await page.goto('/sign-in')
  await page.getByLabel('Email').fill(owner.email)
  await page.getByLabel('Password').fill(owner.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Enter your code' }).waitFor()
}

/** Creates data in the account, and returns the pages that show it. */
export async function populateDashboard(dashboard: Dashboard, page: Page): Promise<ShownPage[]> {
  await page.goto('/settings')
  await page.getByLabel('Account name').fill('Analytical Engines')
  await page.getByLabel('Allow API keys to be limited to scopes').check()
  await page.getByRole('button', { name: 'Save changes' }).click()
  const key = await createKey(page, 'nightly import')
  await createKey(page, 'reporting', { scopes: ['runs:read', 'runs:write'], workflows: 'count-words, check-links' })
  const runs = await queueRuns(dashboard, key)
  await dashboard.call(key, 'PUT', '/v1/execution/secrets/SHOP_TOKEN', { value: '4f1c0d0f2c5b1f0d' })
  await dashboard.call(key, 'PUT', '/v1/execution/settings/SHOP_URL', { value: 'https://shop.example.com' })
  await page.goto('/settings/members/invite')
  await page.getByLabel('For').fill('Grace Hopper')
  await page.getByLabel('Role').selectOption('developer')
  await page.getByRole('button', { name: 'Create invitation' }).click()
  const invitation = await page.locator('#link').innerText()
  await join(dashboard, invitation)
  await page.goto('/api-keys')
  const keyPath = async (action: string) =>
    (await page.getByRole('link', { name: `${action} reporting` }).getAttribute('href')) ?? ''
  const paths = { rename: await keyPath('Rename'), rotate: await keyPath('Rotate'), delete: await keyPath('Delete') }
  await page.goto('/settings/members')
  const removal = (await page.getByRole('link', { name: 'Remove Grace Hopper' }).getAttribute('href')) ?? ''
  return [
    at('overview', '/'),
    at('go-to', '/go-to'),
    { name: 'command-menu', open: openCommandMenu },
    ...runPages(runs),
    ...(await waitPages(dashboard, key)),
    ...(await contextPages(dashboard, page, runs)),
    ...(await schedulePages(page)),
    ...(await webhookPages(dashboard, page, key)),
    ...(await notificationPages(page)),
    at('api-keys', '/api-keys'),
    at('api-key-new', '/api-keys/new'),
    { name: 'api-key-refused', open: refuseKey },
    { name: 'api-key-created', open: (shown) => createKey(shown, `deployment ${Date.now() % 1000}`) },
    at('api-key-rename', paths.rename),
    at('api-key-rotate', paths.rotate),
    at('api-key-delete', paths.delete),
    at('settings', '/settings'),
    at('members', '/settings/members'),
    at('member-invite', '/settings/members/invite'),
    at('member-remove', removal),
    at('secrets', '/settings/secrets'),
    at('workers', '/settings/workers'),
    at('audit-log', '/settings/audit-log'),
    at('profile', '/profile'),
    at('not-found', '/nowhere'),
    ...twoFactorPages,
  ]
}

async function openCommandMenu(page: Page): Promise<void> {
  await page.goto('/')
  await page.keyboard.press('Control+k')
  await page.getByRole('option').first().waitFor()
}

/** Of a run that waits for a review, and of a link at which a person answers. */
async function waitPages(dashboard: Dashboard, key: string): Promise<ShownPage[]> {
  const call = async (method: string, path: string, body?: object) => {
    const response = await dashboard.call(key, method, `/v1/execution/${path}`, body)
    return response.body as { id: string; url: string; waitingFor: string | null }
  }
  const { id } = await call('PUT', 'queue-remote/review-text', { variableData: { path: 'README.md' } })
  await until('the run waits for a review', async () => (await call('GET', `runs/${id}`)).waitingFor === 'answer')
  const { url } = await call('POST', `runs/${id}/waits/review/links`, {})
  return [
    at('waits', '/waits'),
    at('waits-ended', '/waits?kind=run&status=completed'),
    at('wait', `/runs/${id}/waits/review`),
    at('run-waiting', `/runs/${id}`),
    at('answer-link', new URL(url).pathname),
  ]
}

type ShownRuns = Awaited<ReturnType<typeof queueRuns>>

function runPages(runs: ShownRuns): ShownPage[] {
  const invalid = async (page: Page) => {
    await page.goto('/workflows/check-links?as=json')
    await page.locator('textarea').first().fill('{"url": 1, "depth": "deep"}')
    await page.getByRole('button', { name: /queue/i }).click()
  }
  return [
    at('runs', '/runs'),
    at('runs-none', '/runs?status=expired'),
    at('runs-cancel', '/runs/bulk-cancel'),
    at('runs-again', '/runs/bulk-rerun?status=failed'),
    { name: 'runs-again-progress', open: repeatExpiredRuns },
    at('run-succeeded', `/runs/${runs.succeeded}`),
    at('run-failed', `/runs/${runs.failed}`),
    at('run-running', `/runs/${runs.running}`),
    at('run-delayed', `/runs/${runs.delayed}`),
    at('run-delete', `/runs/${runs.succeeded}/delete`),
    at('run-cancel', `/runs/${runs.delayed}/cancel`),
    at('run-again', `/workflows/count-words?from=${runs.failed}`),
    at('workflows', '/workflows'),
    at('workflow', '/workflows/check-links'),
    at('workflow-browser', '/workflows/shop-sign-in'),
    { name: 'workflow-invalid', open: invalid },
  ]
}

/** Creates browser contexts, one with versions and one leased by a run, and artifacts of a run. */
/** Starts a bulk action on expired runs: there are none, so that the other pages stay as they are. */
async function repeatExpiredRuns(page: Page): Promise<void> {
  await page.goto('/runs/bulk-rerun?status=failed')
  await page.locator('form.card').evaluate((form: HTMLFormElement) => {
    form.action = '/runs/bulk-rerun?status=expired'
  })
  await page.locator('form.card button').click()
  await page.locator('#bulk-action .badge', { hasText: 'Finished' }).waitFor()
}

async function contextPages(dashboard: Dashboard, page: Page, runs: ShownRuns): Promise<ShownPage[]> {
  const sites = ['.shop.example', 'pay.shop.example', 'login.example', '.news.example', 'mail.example']
  const shop = await newContext(page, 'Shop, signed in')
  for (const count of [2, 5]) await upload(page, shop, createState(sites.slice(0, count)))
  const bank = await newContext(page, 'Bank')
  const image = { name: 'page.png', mediaType: 'image/png', content: await page.screenshot() } as const
  const table = { name: 'rows.csv', mediaType: 'text/csv', content: Buffer.from('name,rows\nshop,2\n') } as const
  const screenshot = { ...image, name: 'attempt-1-page-1.png', kind: 'evidence' } as const
  const empty = Buffer.from('not an archive')
  const trace = { ...screenshot, name: 'attempt-1-trace.zip', mediaType: 'application/zip', content: empty } as const
  const report = {
    console: [{ level: 'error', text: 'Uncaught (in promise) TypeError: cart is undefined' }],
    failedRequests: [{ method: 'GET', url: 'https://shop.example/api/cart', status: 503, error: null }],
  }
  const content = Buffer.from(JSON.stringify(report))
  const summary = { ...screenshot, name: 'attempt-1-browser.json', mediaType: 'application/json', content } as const
  const withStore = async <Result>(use: (store: Store) => Promise<Result>) => {
    const store = await openStore(readConfig(dashboard.installation.settings))
    return use(store).finally(() => store.close())
  }
  await withStore(async (store) =>
    store.write(async (tx) => {
      const now = Date.now()
      await acquireContextLease(tx, bank, runs.running, now)
      const put = async (runId: string, artifact: NewArtifact) =>
        putArtifact(tx, { runId, attempt: 1 }, { ...artifact, sizeBytes: artifact.content.length, blob: null }, now)
      for (const artifact of [image, table]) await put(runs.succeeded, artifact)
      for (const artifact of [screenshot, summary, trace]) await put(runs.failed, artifact)
    }),
  )
  const restore = `/browser-contexts/${shop}/versions/1/restore`
  return [
    at('run-artifacts', `/runs/${runs.succeeded}`),
    at('browser-contexts', '/browser-contexts'),
    at('browser-context-new', '/browser-contexts/new'),
    at('browser-context', `/browser-contexts/${shop}`),
    { name: 'browser-context-refused', open: (shown) => upload(shown, shop, '{"cookies":[]}') },
    at('browser-context-restore', restore),
    at('browser-context-delete', `/browser-contexts/${bank}/delete`),
    ...(await signInPages({ withStore }, page, shop, runs)),
  ]
}

/** Creates a browser context on its page, and returns the id. */
async function newContext(page: Page, name: string): Promise<string> {
  await page.goto('/browser-contexts/new')
  await page.getByLabel('Name').fill(name)
  await page.getByRole('button', { name: 'Create browser context' }).click()
  await page.getByRole('heading', { name }).waitFor()
  return new URL(page.url()).pathname.split('/')[2] ?? ''
}

async function upload(page: Page, contextId: string, state: string): Promise<void> {
  await page.goto(`/browser-contexts/${contextId}`)
  const file = { name: 'state.json', mimeType: 'application/json', buffer: Buffer.from(state) }
  await page.getByLabel('File').setInputFiles(file)
  await page.getByRole('button', { name: 'Upload', exact: true }).click()
  await page.getByText(/^(Storage state uploaded|The file was not saved)/).waitFor()
}

function createState(sites: string[]): string {
  const rest = { path: '/', expires: -1, httpOnly: true, secure: true, sameSite: 'Lax' }
  const cookies = sites.map((domain) => ({ name: 'session', value: 'x'.repeat(400), domain, ...rest }))
  return JSON.stringify({ cookies, origins: [] })
}

async function refuseKey(page: Page): Promise<void> {
  await page.goto('/api-keys/new')
  await page.getByLabel('Selected scopes only').check()
  await page.getByLabel('Name').fill('without scopes')
  await page.getByRole('button', { name: 'Create API key' }).click()
}

async function queueRuns(dashboard: Dashboard, key: string) {
  const queue = async (workflowId: string, variableData: object, query = '') => {
    const path = `/v1/execution/queue-remote/${workflowId}${query}`
    const { body } = await dashboard.call(key, 'PUT', path, { variableData })
    return (body as { id: string }).id
  }
  for (const path of ['CHANGELOG.md', 'LICENSE', 'package.json']) await queue('count-words', { path })
  const succeeded = await queue('build-manifest', { directory: 'src/domain/runs' })
  const failed = await queue('count-words', { path: 'missing.md' })
  const delayed = await queue('count-words', { path: 'README.md' }, '?delaySeconds=3600')
  const running = await queue('build-manifest', { directory: 'src', pauseMilliseconds: 5000 })
  const isAt = async (id: string, status: string) => {
    const { body } = await dashboard.call(key, 'GET', `/v1/execution/runs/${id}`)
    return (body as { status: string }).status === status
  }
  await until('the runs have reached their statuses', async () => {
    return (await isAt(succeeded, 'succeeded')) && (await isAt(failed, 'failed')) && (await isAt(running, 'running'))
  })
  return { succeeded, failed, delayed, running }
}

/** Accepts the invitation as another user, and creates a key. */
function join(dashboard: Dashboard, invitation: string): Promise<void> {
  return inNewWindow(dashboard.open, async (page) => {
    await page.goto(invitation)
    await page.getByLabel('Name').fill('Grace Hopper')
    await page.getByLabel('Email').fill('grace@example.com')
    await page.getByLabel('Password').fill('nanoseconds of wire')
    await page.getByRole('button', { name: 'Join' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await createKey(page, 'compiler')
  })
}
