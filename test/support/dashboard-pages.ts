/** Every page of the dashboard with something to see on it, for those who look at all of them. */
import type { Page } from 'playwright-core'
import { createKey, type Dashboard, inOwnWindow } from './dashboard-browser.ts'
import { until } from './service.ts'

export interface ShownPage {
  /** As the file of its picture is called. */
  name: string
  /** Brings the page up in a window whose user is signed in where the page asks for it. */
  open(page: Page): Promise<unknown>
}

const at = (name: string, path: string): ShownPage => ({ name, open: (page) => page.goto(path) })

/** Pages for whoever is not signed in; `welcomeUrl` is one that still works. */
export function openPages(welcomeUrl: string): ShownPage[] {
  const wrong = async (page: Page) => {
    await page.goto('/sign-in')
    await page.getByLabel('E-mail').fill('somebody@example.com')
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

/** Pages of an account in which nothing has happened yet. */
export const emptyPages: ShownPage[] = [
  at('overview-empty', '/'),
  at('runs-empty', '/runs'),
  at('api-keys-empty', '/api-keys'),
]

/** Lets things happen in the account, and returns the pages that show them. */
export async function fill(dashboard: Dashboard, page: Page): Promise<ShownPage[]> {
  await page.goto('/settings')
  await page.getByLabel('Account name').fill('Analytical Engines')
  await page.getByLabel('API keys may be limited to scopes').check()
  await page.getByRole('button', { name: 'Save' }).click()
  const key = await createKey(page, 'nightly import')
  await createKey(page, 'reporting')
  const runs = await queueRuns(dashboard, key)
  await page.goto('/settings/members/invite')
  await page.getByLabel('For').fill('Grace Hopper')
  await page.getByRole('button', { name: 'Make the link' }).click()
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
    ...runPages(runs),
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
    at('audit-log', '/settings/audit-log'),
    at('profile', '/profile'),
    at('not-found', '/nowhere'),
  ]
}

function runPages(runs: Record<'succeeded' | 'failed' | 'delayed' | 'running', string>): ShownPage[] {
  const misfit = async (page: Page) => {
    await page.goto('/workflows/check-links?as=json')
    await page.locator('textarea').first().fill('{"url": 1, "depth": "deep"}')
    await page.getByRole('button', { name: /queue/i }).click()
  }
  return [
    at('runs', '/runs'),
    at('runs-none', '/runs?status=expired'),
    at('run-succeeded', `/runs/${runs.succeeded}`),
    at('run-failed', `/runs/${runs.failed}`),
    at('run-running', `/runs/${runs.running}`),
    at('run-delayed', `/runs/${runs.delayed}`),
    at('run-cancel', `/runs/${runs.delayed}/cancel`),
    at('run-again', `/workflows/count-words?from=${runs.failed}`),
    at('workflows', '/workflows'),
    at('workflow', '/workflows/check-links'),
    { name: 'workflow-misfit', open: misfit },
  ]
}

async function refuseKey(page: Page): Promise<void> {
  await page.goto('/api-keys/new')
  await page.getByLabel('Only these scopes').check()
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
  const succeeded = await queue('build-manifest', { directory: 'src/runs' })
  const failed = await queue('count-words', { path: 'missing.md' })
  const delayed = await queue('count-words', { path: 'README.md' }, '?delaySeconds=3600')
  const running = await queue('build-manifest', { directory: 'src', pauseMilliseconds: 2000 })
  const isAt = async (id: string, status: string) => {
    const { body } = await dashboard.call(key, 'GET', `/v1/execution/runs/${id}`)
    return (body as { status: string }).status === status
  }
  await until('the runs have come as far as they do', async () => {
    return (await isAt(succeeded, 'succeeded')) && (await isAt(failed, 'failed')) && (await isAt(running, 'running'))
  })
  return { succeeded, failed, delayed, running }
}

/** Somebody else accepts the invitation, and makes a key. */
function join(dashboard: Dashboard, invitation: string): Promise<void> {
  return inOwnWindow(dashboard.open, async (page) => {
    await page.goto(invitation)
    await page.getByLabel('Name').fill('Grace Hopper')
    await page.getByLabel('E-mail').fill('grace@example.com')
    await page.getByLabel('Password').fill('nanoseconds of wire')
    await page.getByRole('button', { name: 'Join' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await createKey(page, 'compiler')
  })
}
