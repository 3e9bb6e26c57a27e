/**
 * The process that runs Chromium for a worker and lets executors connect to it. It ends with its worker, whose channel
 * closes then, and takes the browser and its files along; when it is killed itself, the browser ends because its pipe
 * to this process does.
 */
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { tmpdir } from 'node:os'
import type { BrowserServer, BrowserType, CDPSession } from 'playwright-core'
import type { FromHost, Launch, ToHost } from './messages.ts'
import { loadChromium } from './playwright.ts'

/**
 * Beside Playwright's own, which give it a fresh profile, and neither updates, nor synchronization, nor reports of
 * crashes, nor anything else in the background.
 */
const flags = ['--no-pings', '--disable-domain-reliability', '--disable-crash-reporter']

function tell(message: FromHost): void {
  process.send?.(message)
}

async function launch(chromium: BrowserType, { executable, environment, sandbox }: Launch): Promise<BrowserServer> {
  const server = await chromium.launchServer({
    executablePath: executable,
    env: { ...process.env, ...environment },
    args: flags,
    headless: true,
    chromiumSandbox: sandbox,
    host: '127.0.0.1',
    port: 0,
    // Whoever knows the path may use the browser.
    wsPath: randomBytes(32).toString('hex'),
    handleSIGHUP: false,
    handleSIGINT: false,
    handleSIGTERM: false,
  })
  server.process().once('exit', () => process.exit(1))
  return server
}

/** Starts the browser, and returns what asks it for a sign of life. */
async function serve(message: Launch): Promise<CDPSession | undefined> {
  const chromium = await loadChromium()
  try {
    const server = await launch(chromium, message)
    const browser = await chromium.connect(server.wsEndpoint())
    const session = await browser.newBrowserCDPSession()
    const pid = server.process().pid ?? 0
    tell({ type: 'started', url: server.wsEndpoint(), version: browser.version(), pid, sandboxed: message.sandbox })
    // Node would write its cache at a normal exit, which this process may not have.
    flushCompileCache()
    return session
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    tell({ type: 'refused', message: firstLines(text), ofSandbox: /sandbox|namespace/i.test(text) })
    return undefined
  }
}

/** What Chromium wrote stands behind what Playwright says of it. */
function firstLines(text: string): string {
  return text.split('\n').slice(0, 20).join('\n').slice(0, 2000)
}

// Signals to the whole group, such as Ctrl-C, are for the worker, whose runs go on for a while.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
// Playwright kills the browser at the exit.
process.once('disconnect', () => process.exit())
process.once('exit', () => rmSync(tmpdir(), { recursive: true, force: true, maxRetries: 5 }))

let session: Promise<CDPSession | undefined> | undefined
process.on('message', async (message: ToHost) => {
  if (message.type === 'launch') session = serve(message)
  else if (await (await session)?.send('Browser.getVersion')) tell({ type: 'checked', id: message.id })
})
