/** Watching the browser of a run, from the dashboard to the page that a worker's browser shows. */
import { spawn } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, type TestContext, test } from 'vitest'
import { violations } from '../support/accessibility.ts'
import { type Browser, browserErrors, startBrowser, testBrowser } from '../support/browser.ts'
import { signIn } from '../support/dashboard.ts'
import { capture, cleanEnvironment, type Installation, waitForExit } from '../support/installation.ts'
import { main, removeDirectory, until } from '../support/service.ts'
import { moduleText } from '../support/worker.ts'
import { clientOf, ownInstallation, queue, untilStatus } from './caller.ts'

let browser: Browser

beforeAll(async () => {
  browser = await startBrowser()
})

afterAll(() => browser.close())

const animated = `<!doctype html><title>Animated</title><body><script>
  setInterval(() => { document.body.style.background = 'rgb(' + (performance.now() / 10 % 255 | 0) + ', 90, 90)' }, 20)
</script>`

/** Opens two tabs, the second one animated, and waits until a file is there. */
const browse = moduleText(
  'browse-long',
  `browser: true, timeLimitSeconds: 300, retry: { maxAttempts: 2, backoffSeconds: 0 },
  variables: { type: 'object', properties: { until: { type: 'string' } } },
  run: async ({ browser, variables, attempt }) => {
    const { existsSync } = await import('node:fs')
    const context = await browser()
    await (await context.newPage()).goto('data:text/html,first')
    const page = await context.newPage()
    await page.goto('data:text/html,' + encodeURIComponent(${JSON.stringify(animated)}))
    while (!existsSync(variables.until)) await page.waitForTimeout(50)
    return attempt
  }`,
)

/** How the worker reaches its runs. */
const doors = ['the database', 'the Execution API'] as const
type Door = (typeof doors)[number]

interface StartedWorker {
  killAll(): Promise<void>
}

/** Starts a worker that has the address of the service and a key, but neither the database nor the data directory. */
async function startRemoteWorker(url: string, key: string, settings: Record<string, string>): Promise<StartedWorker> {
  const environment = cleanEnvironment({ API_KEY: key, ...settings })
  const worker = spawn(process.execPath, [main, 'worker', '--url', url], {
    ...{ env: environment, cwd: tmpdir(), detached: true },
  })
  const output = capture(worker, () => {})
  const ended = waitForExit(worker)
  const killAll = async () => {
    if (worker.exitCode === null && worker.signalCode === null) process.kill(-Number(worker.pid), 'SIGKILL')
    await ended
  }
  onTestFinished(killAll)
  await until('the worker is ready', () => output().includes('worker ready'))
  return { killAll }
}

/**
 * A dashboard and a worker in separate processes, a run that browses, and its page for a signed-in user. A worker without
 * the database reaches an API process that is not the dashboard's.
 */
async function watchRun(context: TestContext, door: Door, modules: Record<string, string> = { 'browse-long': browse }) {
  const directory = mkdtempSync(join(tmpdir(), 'execution-service-'))
  onTestFinished(() => removeDirectory(directory))
  for (const [id, text] of Object.entries(modules)) writeFileSync(join(directory, `${id}.ts`), text)
  const [workflowId = ''] = Object.keys(modules)
  const { executable } = await testBrowser()
  const ofWorker = { BROWSER_PATH: executable, WORKFLOW_MEMORY_MB: '256' }
  const installation = await ownInstallation(context, { WORKFLOWS_DIR: directory, LEASE_SECONDS: '3', ...ofWorker })
  const account = await installation.createAccount()
  const service = await startService(installation, door)
  const startWorker = () =>
    door === 'the database'
      ? installation.startOnly('worker')
      : startRemoteWorker(service.executionUrl, account.key, ofWorker)
  const worker = await startWorker()
  const client = clientOf(service, account.key)
  const release = join(directory, 'release')
  const { run } = await queue(client, workflowId, { until: release })
  await untilStatus(client, run, 'running')
  const user = await signIn({ ...service, settings: installation.settings }, { accountId: account.id })
  const page = await browser.newPage(context, { baseUrl: service.dashboardUrl })
  const cookies = [...user.visitor.cookies].map(([name, value]) => ({ name, value, url: service.dashboardUrl }))
  await page.context().addCookies(cookies)
  await page.goto(`/runs/${run.id}`)
  return {
    startWorker,
    worker,
    user,
    page,
    end: async () => {
      writeFileSync(release, '')
      return untilStatus(client, run, 'succeeded')
    },
  }
}

async function startService(installation: Installation, door: Door) {
  if (door === 'the database') return installation.startOnly('execution,dashboard')
  const execution = await installation.startOnly('execution')
  const dashboard = await installation.startOnly('dashboard')
  return { ...execution, dashboardUrl: dashboard.dashboardUrl }
}

const frameOf = (page: Page) => page.locator('[data-frame]').getAttribute('src')

/** Waits until the page shows this many further frames. */
async function untilFrames(page: Page, count: number): Promise<void> {
  let last = await frameOf(page)
  for (let seen = 0; seen < count; seen++) {
    last = await until('the page shows another frame', async () => {
      const frame = await frameOf(page)
      return frame !== null && frame !== last && frame
    })
  }
}

const form = `<!doctype html><title>Form</title><body style="margin:0">
  <input style="position:absolute;left:100px;top:100px;width:300px;height:60px">
  <button style="position:absolute;left:100px;top:200px;width:300px;height:60px" onclick="document.title = document.querySelector('input').value">Send</button>`

/** Opens a form, and writes what its title became. A person is asked first, or takes over between steps. */
const formWorkflow = (id: string, wait: string) =>
  moduleText(
    id,
    `browser: true, timeLimitSeconds: 300, variables: { type: 'object', properties: { until: { type: 'string' } } },
    run: async ({ browser, step, takeOver, variables }) => {
      const { existsSync } = await import('node:fs')
      const page = await (await browser()).newPage()
      await page.goto('data:text/html,' + encodeURIComponent(${JSON.stringify(form)}))
      ${wait}
    }`,
  )

const asking = formWorkflow(
  'ask',
  `const taken = await takeOver('Enter the code.')
  return [taken, await page.title()]`,
)
const stepping = formWorkflow(
  'step',
  `let steps = 0
  while (await page.title() === 'Form') { await step('step ' + steps, () => page.waitForTimeout(200)); steps += 1 }
  return [steps > 0, await page.title()]`,
)

/** Clicks at a point of the remote page. */
async function clickAt(page: Page, x: number, y: number): Promise<void> {
  const screen = page.locator('[data-screen]')
  const { width, height } = (await screen.boundingBox()) ?? { width: 0, height: 0 }
  const size = await page
    .locator('[data-frame]')
    .evaluate((image) => ({ width: Number(image.getAttribute('width')), height: Number(image.getAttribute('height')) }))
  await screen.click({ position: { x: (x / size.width) * width, y: (y / size.height) * height } })
}

describe.each(doors)('of a worker that reaches %s', (door) => {
  test('a member watches the browser of a run that another process executes', async (context) => {
    const { page, user, end } = await watchRun(context, door)
    expect(await page.locator('[data-frame]').isVisible()).toBe(false)
    await page.getByRole('button', { name: 'Watch live' }).click()
    await untilFrames(page, 5)
    expect(await page.locator('[data-tabs] li').allTextContents()).toEqual(['data:text/html,first', expect.any(String)])
    expect(await page.locator('[data-address]').textContent()).toContain('Animated')
    const size = await page.locator('[data-frame]').evaluate((image) => (image as HTMLImageElement).naturalWidth)
    expect(size).toBeGreaterThan(500)
    expect(await violations(page)).toEqual([])
    await page.getByRole('button', { name: 'Stop watching' }).click()
    await page.getByRole('button', { name: 'Watch live' }).click()
    await untilFrames(page, 1)
    const log = await user.visitor.get('/settings/audit-log')
    expect(log.text.split('watched the browser of a run').length - 1, 'one entry, and the filter').toBe(2)
    await end()
    await page.locator('#live-view').waitFor({ state: 'detached' })
    expect(await browserErrors(page)).toEqual([])
  })

  test('the page says that the worker was killed, and sees the next attempt', async (context) => {
    const { startWorker, page, worker, end } = await watchRun(context, door)
    await page.getByRole('button', { name: 'Watch live' }).click()
    await untilFrames(page, 1)
    await worker.killAll()
    await page.getByText('The connection to the browser has ended.').waitFor()
    expect(await frameOf(page)).toBe(null)
    await startWorker()
    await untilFrames(page, 2)
    await end()
  })

  test.for([
    ['ask', 'The workflow asks: Enter the code. It waits until someone takes over.'],
    ['step', ''],
  ])(
    'a member takes over, uses the page and returns control (%s)',
    async ([workflowId = '', request = ''], context) => {
      const { page, user, end } = await watchRun(context, door, {
        [workflowId]: workflowId === 'ask' ? asking : stepping,
      })
      await page.getByRole('button', { name: 'Watch live' }).click()
      await untilFrames(page, 1)
      if (request) await page.getByText(request).waitFor()
      await page.getByRole('button', { name: 'Take over' }).click()
      // The text while the workflow is not paused yet ends with the same words.
      await page.getByText(/^You have control\./).waitFor()
      expect(await violations(page)).toEqual([])
      // The input is still on its way when control is returned.
      const returned = Promise.withResolvers<void>()
      await page.route('**/input', async (route) => {
        await returned.promise
        await route.continue()
      })
      await clickAt(page, 250, 130)
      await page.keyboard.type('Open sesame')
      await clickAt(page, 250, 230)
      await page.keyboard.press('Shift+Escape')
      await page.getByRole('button', { name: 'Return control' }).click()
      returned.resolve()
      expect((await end()).output).toEqual([true, 'Open sesame'])
      const log = await user.visitor.get('/settings/audit-log')
      for (const action of ['took over the browser of a run', 'returned control of the browser of a run']) {
        expect(log.text.split(action).length - 1, 'the entry, and the filter').toBe(2)
      }
      expect(await browserErrors(page)).toEqual([])
    },
  )

  test('text of an input method and of the clipboard reaches the page', async (context) => {
    const { page, end } = await watchRun(context, door, { ask: asking })
    await page.getByRole('button', { name: 'Watch live' }).click()
    await untilFrames(page, 1)
    await page.getByRole('button', { name: 'Take over' }).click()
    await page.getByText(/^You have control\./).waitFor()
    await clickAt(page, 250, 130)
    await page.keyboard.type('to: ')
    const protocol = await page.context().newCDPSession(page)
    await protocol.send('Input.imeSetComposition', { text: 'にほ', selectionStart: 2, selectionEnd: 2 })
    await protocol.send('Input.insertText', { text: '日本' })
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.evaluate(() => navigator.clipboard.writeText(', Ōsaka'))
    await page.keyboard.press('Control+v')
    await clickAt(page, 250, 230)
    await page.getByRole('button', { name: 'Return control' }).click()
    expect((await end()).output).toEqual([true, 'to: 日本, Ōsaka'])
    expect(await browserErrors(page)).toEqual([])
  })
})
