/** Checks that runs get a browser, and that it isolates browser contexts from each other. */
import { pino } from 'pino'
import {
  type BrowserEndpoint,
  BrowserHost,
  BrowserMissing,
  type BrowserOptions,
} from '../../worker/browser/browser-host.ts'
import { openBrowser } from '../../worker/browser/connection.ts'
import { checkIsolation as findLeaks } from '../../worker/browser/isolation.ts'
import { type Finding, fail, failWithMessage, notChecked, ok, shortMessage, warn } from './finding.ts'

export type StartedBrowser =
  | { endpoint: BrowserEndpoint; version: string; description: string; sandboxed: boolean | undefined; seconds: number }
  | { failure: Finding }

/** A browser as a worker runs it, started at first use. */
export class ExaminedBrowser {
  readonly #host: BrowserHost
  readonly #isRemote: boolean
  #started: Promise<StartedBrowser> | undefined

  constructor(options: BrowserOptions) {
    this.#host = new BrowserHost(options, pino({ level: 'silent' }))
    this.#isRemote = options.cdpUrl !== undefined
  }

  start(): Promise<StartedBrowser> {
    this.#started ??= this.#start().catch((error: unknown) => ({ failure: this.#failure(error) }))
    return this.#started
  }

  async close(): Promise<void> {
    await this.#host.close()
  }

  #failure(error: unknown): Finding {
    if (error instanceof BrowserMissing) return failWithMessage(error.message)
    if (!this.#isRemote) return fail(shortMessage(error), otherBrowserAdvice)
    // Not the error's message: it may contain the address with a token.
    return fail(
      'no browser replies at BROWSER_CDP_URL',
      'Start it, set BROWSER_CDP_URL to a running one, or unset it to use a local browser.',
    )
  }

  async #start(): Promise<StartedBrowser> {
    const startedAt = performance.now()
    const endpoint = await this.#host.acquire()
    const opened = await openBrowser(endpoint, undefined)
    const version = opened.context.browser()?.version() ?? 'unknown'
    await opened.close()
    const seconds = (performance.now() - startedAt) / 1000
    const running = this.#host.describe()
    const description =
      this.#isRemote || !running ? 'the browser at BROWSER_CDP_URL' : `${running.executable} (${origins[running.from]})`
    return { endpoint, version, description, sandboxed: running?.sandboxed, seconds }
  }
}

const otherBrowserAdvice = 'Fix this, or set BROWSER_PATH to another Chrome or Chromium that runs here.'

const origins: Readonly<Record<string, string>> = {
  BROWSER_PATH: 'set by BROWSER_PATH',
  system: 'installed on the system',
  npm: 'installed by npm',
}

export function checkBrowser(started: StartedBrowser, users: number): Finding {
  if ('failure' in started) return users > 0 ? started.failure : { ...started.failure, status: 'warn' }
  const { description, version, sandboxed, seconds } = started
  const found = `${description}, version ${version}, opens a page in ${seconds.toFixed(1)} s`
  if (sandboxed === undefined) return ok(found)
  if (sandboxed) return ok(`${found}, sandboxed`)
  if (users === 0) return ok(`${found}, without its sandbox`)
  if (process.getuid?.() === 0) {
    return warn(
      `${found}, without its sandbox, which does not work as root`,
      'Run the service as another user, so that a page that escapes the browser does not control the machine.',
    )
  }
  return warn(
    `${found}, without its sandbox, which this system does not allow`,
    'Allow the user of the service unprivileged user namespaces.',
  )
}

/** @param find the check; replaced by tests. */
export async function checkIsolation(started: StartedBrowser, find = findLeaks): Promise<Finding> {
  if ('failure' in started) return notChecked('the browser does not start', 'the browser')
  try {
    const leaks = await find(started.endpoint)
    if (leaks.length === 0) return ok('browser contexts do not see data of each other')
    return fail(leaks.join('; '), 'Use another browser: set BROWSER_PATH to a current Chrome or Chromium.')
  } catch (error) {
    return fail(`the check failed (${shortMessage(error)})`, otherBrowserAdvice)
  }
}
