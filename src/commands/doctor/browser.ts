/** Whether runs that ask for a browser get one, and whether it keeps their browser contexts apart. */
import { pino } from 'pino'
import {
  type BrowserEndpoint,
  BrowserHost,
  BrowserMissing,
  type BrowserOptions,
} from '../../worker/browser/browser-host.ts'
import { openBrowser } from '../../worker/browser/connection.ts'
import { checkIsolation as leaksIn } from '../../worker/browser/isolation.ts'
import { type Finding, fail, failAsSaid, ok, reasonOf, unchecked, warn } from './finding.ts'

/** What starting the browser came to. */
export type Started =
  | { endpoint: BrowserEndpoint; version: string; description: string; sandboxed: boolean | undefined; seconds: number }
  | { refused: Finding }

/** The browser as a worker has it, started when it is first asked for. */
export class ExaminedBrowser {
  readonly #host: BrowserHost
  readonly #isRemote: boolean
  #started: Promise<Started> | undefined

  constructor(options: BrowserOptions) {
    this.#host = new BrowserHost(options, pino({ level: 'silent' }))
    this.#isRemote = options.cdpUrl !== undefined
  }

  start(): Promise<Started> {
    this.#started ??= this.#start().catch((error: unknown) => ({ refused: this.#refusal(error) }))
    return this.#started
  }

  #refusal(error: unknown): Finding {
    if (error instanceof BrowserMissing) return failAsSaid(error.message)
    if (!this.#isRemote) return fail(reasonOf(error), anotherBrowser)
    // Without the reason, which may have the address, which may have a token.
    return fail(
      'no browser answers at BROWSER_CDP_URL',
      'Start it, or set BROWSER_CDP_URL to the address of one that runs, or unset it to have one started.',
    )
  }

  async close(): Promise<void> {
    await this.#host.close()
  }

  async #start(): Promise<Started> {
    const startedAt = performance.now()
    const endpoint = await this.#host.acquire()
    const opened = await openBrowser(endpoint, undefined)
    const version = opened.context.browser()?.version() ?? 'of unknown version'
    await opened.close()
    const seconds = (performance.now() - startedAt) / 1000
    const running = this.#host.describe()
    const description =
      this.#isRemote || !running ? 'the one at BROWSER_CDP_URL' : `${running.executable} (${origins[running.from]})`
    return { endpoint, version, description, sandboxed: running?.sandboxed, seconds }
  }
}

const anotherBrowser = 'Install Google Chrome or Chromium, or set BROWSER_PATH to one that runs here.'

const origins: Readonly<Record<string, string>> = {
  BROWSER_PATH: 'set by BROWSER_PATH',
  system: 'installed',
  npm: 'of npm',
}

/** @param users how many workflows use a browser. */
export function checkBrowser(started: Started, users: number): Finding {
  if ('refused' in started) return users > 0 ? started.refused : { ...started.refused, status: 'warn' }
  const { description, version, sandboxed, seconds } = started
  const found = `${description}, version ${version}, opens a page in ${seconds.toFixed(1)} s`
  if (sandboxed === undefined) return ok(found)
  if (sandboxed) return ok(`${found}, in its sandbox`)
  const without = `${found}, without its sandbox`
  if (users === 0) return ok(without)
  const isRoot = process.getuid?.() === 0
  return warn(
    `${without}, which ${isRoot ? 'root' : 'this system'} cannot have`,
    isRoot
      ? 'Run the service as another user than root, so that a page which breaks out of the browser does not own the machine.'
      : 'Allow the user of the service unprivileged user namespaces.',
  )
}

/** @param look the check; given to show what is told when contexts leak. */
export async function checkIsolation(started: Started, look = leaksIn): Promise<Finding> {
  if ('refused' in started) return unchecked('the browser does not start', 'the browser')
  try {
    const leaks = await look(started.endpoint)
    if (leaks.length === 0) return ok('what is planted in one browser context is not seen from another')
    return fail(leaks.join('; '), 'Use another browser: set BROWSER_PATH to a current Chrome or Chromium.')
  } catch (error) {
    return fail(`the check could not be made (${reasonOf(error)})`, anotherBrowser)
  }
}
