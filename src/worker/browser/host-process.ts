/**
 * The process that runs Chromium for a worker; executors connect to it. When its channel to the worker closes, it ends
 * the browser and removes its files. When it is killed, the browser ends because its pipe to this process closes.
 */
import { randomBytes } from 'node:crypto'
import { statfsSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BrowserServer, CDPSession, LaunchOptions } from 'playwright-core'
import { removeOwnDirectory } from '../../storage/temporary-directory.ts'
import type { Start } from './browser-process.ts'
import { loadChromium } from './connection.ts'
import { type FromHost, reasonMark, type ToHost } from './host-messages.ts'

/** In addition to Playwright's, which disable the profile, updates, synchronization and background requests. */
const flags = ['--no-pings', '--disable-domain-reliability', '--disable-crash-reporter']

const remoteBrowser = fileURLToPath(new URL(`./remote-browser${extname(import.meta.url)}`, import.meta.url))

function send(message: FromHost): void {
  // Without a callback, a send error would be uncaught.
  process.send?.(message, undefined, undefined, () => {})
}

function launchOptions(start: Start): LaunchOptions {
  if (start.type === 'connect') {
    const env = { ...process.env, BROWSER_CDP_URL: start.cdpUrl }
    return { executablePath: process.execPath, ignoreDefaultArgs: true, args: [remoteBrowser], env }
  }
  const { executable, environment, sandbox } = start
  return {
    executablePath: executable,
    env: { ...process.env, ...environment },
    args: flags,
    ignoreDefaultArgs: ignoredFlags(),
    headless: true,
    chromiumSandbox: sandbox,
  }
}

const sharedMemoryBytesMin = 1024 ** 3

/**
 * Playwright makes Chromium keep shared memory in files, because containers often have little of it. Where there is
 * enough, the content of pages stays out of files.
 */
function ignoredFlags(): string[] {
  try {
    const { bavail, bsize } = statfsSync('/dev/shm')
    return bavail * bsize > sharedMemoryBytesMin ? ['--disable-dev-shm-usage'] : []
  } catch {
    // Not Linux.
    return []
  }
}

let server: BrowserServer | undefined

/** Starts the browser and returns the session for checks. */
async function serve(start: Start): Promise<CDPSession | undefined> {
  try {
    const chromium = loadChromium()
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
    const pid = server.process().pid ?? 0
    send({ type: 'started', url: server.wsEndpoint(), version: browser.version(), pid })
    // Node writes its compile cache at a normal exit, which this process may not have.
    flushCompileCache()
    return session
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    send({ type: 'failed', message: startError(text, start), isSandboxError: sandboxPattern.test(text) })
    return undefined
  }
}

/** `sys_chroot`: where a container's seccomp profile allows namespaces but not chroot, the error names no sandbox. */
const sandboxPattern = /sandbox|namespace|sys_chroot/i

/** Shortens Playwright's message, which contains the command line and all output of the browser. */
function startError(text: string, { type }: Start): string {
  const output = [...text.matchAll(/^ *\[pid=\d+\]\[err\] (.+)$/gm)].map(([, line = '']) => line)
  if (type === 'connect') {
    const reason = output.find((line) => line.startsWith(reasonMark))
    return reason?.slice(reasonMark.length) ?? 'it does not reply like a browser'
  }
  const [first = ''] = text.split('\n')
  return [first, ...output.slice(0, 10)].join('\n').slice(0, 2000)
}

// Signals to the process group, such as Ctrl-C, are for the worker, whose runs go on for a while.
process.on('SIGINT', () => {})
process.on('SIGTERM', () => {})
process.once('disconnect', () => {
  // Playwright kills a starting browser when this process exits. A running one is awaited for some milliseconds, because
  // its files are removed after it.
  if (!server) process.exit()
  setTimeout(() => process.exit(), 2000)
  void server.kill()
})
// A page can make Playwright throw, for example with a cyclic value in IndexedDB. The browser goes on for other runs.
// Only the error's class is reported, which a page cannot choose.
process.on('uncaughtException', (error: unknown) => {
  send({ type: 'uncaught', name: error instanceof Error ? error.constructor.name : typeof error })
})
process.once('exit', () => removeOwnDirectory(process.argv[2]))

let session: Promise<CDPSession | undefined> | undefined
process.on('message', async (message: ToHost) => {
  if (message.type !== 'check') {
    session = serve(message)
    return
  }
  try {
    if (await (await session)?.send('Browser.getVersion')) send({ type: 'checked', id: message.id })
  } catch {
    // The browser has ended or is about to.
    process.exit(1)
  }
})
