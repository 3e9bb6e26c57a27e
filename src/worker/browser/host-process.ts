/**
 * The process that runs Chromium for a worker and lets executors connect to it. It ends with its worker, whose channel
 * closes then, and takes the browser and its files along; when it is killed itself, the browser ends because its pipe
 * to this process does.
 */
import { randomBytes } from 'node:crypto'
import { statfsSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { BrowserServer, CDPSession, LaunchOptions } from 'playwright-core'
import { type FromHost, reasonMark, type ToHost } from './messages.ts'
import { loadChromium } from './playwright.ts'
import { removeOwn } from './temporary-directory.ts'

type Start = Exclude<ToHost, { type: 'check' }>

/**
 * Beside Playwright's own, which give it a fresh profile, and neither updates, nor synchronization, nor reports of
 * crashes, nor anything else in the background.
 */
const flags = ['--no-pings', '--disable-domain-reliability', '--disable-crash-reporter']

const remoteBrowser = fileURLToPath(new URL('./remote-browser.ts', import.meta.url))

function tell(message: FromHost): void {
  // With a callback, or an error of it would be one that nothing catches.
  process.send?.(message, undefined, undefined, () => {})
}

function launchOptions(start: Start): LaunchOptions {
  if (start.type === 'reach') {
    const env = { ...process.env, BROWSER_CDP_URL: start.cdpUrl }
    return { executablePath: process.execPath, ignoreDefaultArgs: true, args: [remoteBrowser], env }
  }
  const { executable, environment, sandbox } = start
  return {
    executablePath: executable,
    env: { ...process.env, ...environment },
    args: flags,
    ignoreDefaultArgs: unwanted(),
    headless: true,
    chromiumSandbox: sandbox,
  }
}

/**
 * Playwright has Chromium put the memory that its processes share into files, because containers often have little of
 * it otherwise. Where there is enough, what pages show stays out of files.
 */
function unwanted(): string[] {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm')
    return bavail * bsize > sharedBytesMin ? ['--disable-dev-shm-usage'] : []
  } catch {
    // Not Linux.
    return []
  }
}

const sharedBytesMin = 1024 ** 3

let server: BrowserServer | undefined

/** Starts the browser, and returns what asks it for a sign of life. */
async function serve(start: Start): Promise<CDPSession | undefined> {
  try {
    const chromium = await loadChromium()
    server = await chromium.launchServer({
      ...launchOptions(start),
      host: '127.0.0.1',
      port: 0,
      wsPath: randomBytes(32).toString('hex'),
      handleSIGHUP: false,
      handleSIGINT: false,
      handleSIGTERM: false,
    })
    server.process().once('exit', () => process.exit(1))
    const browser = await chromium.connect(server.wsEndpoint())
    const session = await browser.newBrowserCDPSession()
    tell({
      type: 'started',
      url: server.wsEndpoint(),
      version: browser.version(),
      pid: server.process().pid ?? 0,
    })
    // Node would write its cache at a normal exit, which this process may not have.
    flushCompileCache()
    return session
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    tell({ type: 'refused', message: reason(text, start), ofSandbox: sandboxPattern.test(text) })
    return undefined
  }
}

/** `sys_chroot`: where a container's profile of system calls allows namespaces and not this, the browser names no sandbox. */
const sandboxPattern = /sandbox|namespace|sys_chroot/i

/** Playwright's message has the command and all that the browser has written. */
function reason(text: string, { type }: Start): string {
  const written = [...text.matchAll(/^ *\[pid=\d+\]\[err\] (.+)$/gm)].map(([, line = '']) => line)
  if (type === 'reach') {
    const told = written.find((line) => line.startsWith(reasonMark))
    return told?.slice(reasonMark.length) ?? 'it did not answer as a browser does'
  }
  const [first = ''] = text.split('\n')
  return [first, ...written.slice(0, 10)].join('\n').slice(0, 2000)
}

// Signals to the whole group, such as Ctrl-C, are for the worker, whose runs go on for a while.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
process.once('disconnect', () => {
  // Playwright kills a browser that is about to start at the exit. One that runs is waited for, which takes some
  // milliseconds: its files are removed once it makes none any more.
  if (!server) process.exit()
  setTimeout(() => process.exit(), 2000)
  void server.kill()
})
// A page can make Playwright fail at what it reads from it, such as a value that contains itself: the pages of other runs
// have no part in that. Of the error only its class is told, which no page can choose.
process.on('uncaughtException', (error: unknown) => {
  tell({ type: 'uncaught', name: error instanceof Error ? error.constructor.name : typeof error })
})
process.once('exit', () => removeOwn(process.argv[2]))

let session: Promise<CDPSession | undefined> | undefined
process.on('message', async (message: ToHost) => {
  if (message.type !== 'check') {
    session = serve(message)
    return
  }
  try {
    if (await (await session)?.send('Browser.getVersion')) tell({ type: 'checked', id: message.id })
  } catch {
    // The browser has ended, or is about to.
    process.exit(1)
  }
})
