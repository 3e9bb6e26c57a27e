/** `npm run demo`: starts the real service beside a small website, shows what it does, and leaves nothing behind. */
import events from 'node:events'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs, styleText } from 'node:util'
import { startSite } from '../../../examples/site/site.ts'
import { type Config, readConfig } from '../../config.ts'
import { BrowserMissing, findBrowser } from '../../worker/browser/find-browser.ts'
import { choosePorts, noteOf } from './ports.ts'
import { DemoFailed, runCommand, startService } from './service.ts'
import type { Stage } from './stage.ts'
import { longRun, tellStory } from './story.ts'

const exampleWorkflows = fileURLToPath(new URL('../../../examples/workflows', import.meta.url))
const siteToken = 'lantern-tuesday-4711'
const sitePassword = 'kettle-friday-1138'

/** Undone in the opposite order, whatever happens on the way. */
type Undo = (() => Promise<unknown>)[]

/** Set anywhere for something else, these would lead the demo to a store or an address that is not its own. */
const foreignVariables = ['DATABASE_URL', 'EXECUTION_URL', 'BROWSER_CONTEXT_URL', 'DASHBOARD_URL']

async function demonstrate(once: boolean, signal: AbortSignal, undo: Undo): Promise<void> {
  say(styleText('bold', 'The execution service, on this machine'))
  const { environment, evaded, logPath, browserMissing } = await prepare(undo)
  const service = await startService({ environment, logPath })
  undo.push(() => service.stop())
  const site = await startSite({ token: siteToken, password: sitePassword })
  undo.push(() => site.stop())
  const [places, apiKey] = await both(service.ready(signal), createKey(environment, undo, signal))
  for (const name of evaded) say(styleText('dim', noteOf(name, portOf(places[name]))))

  const { DASHBOARD_PORT: dashboard, MANAGEMENT_PORT: management } = places
  const { EXECUTION_PORT: executionUrl, BROWSER_CONTEXT_PORT: browserContextUrl } = places
  const own = { executionUrl, browserContextUrl, site, siteToken, sitePassword }
  const stage: Stage = { ...own, apiKey, browserMissing, say, signal }
  await Promise.race([tellStory(stage), service.ended]).catch(async (error) => {
    signal.throwIfAborted()
    // The log goes with the data directory, so what it has to say of the failure is said here.
    for (const complaint of await service.complaints()) say(`  ${complaint}`)
    // A request is refused a moment before its service is known to have ended, which is what matters then.
    await Promise.race([service.ended, setTimeout(3000)])
    throw error
  })
  if (once) return

  // The service's own words for it: a link that works once, like every other that is made on this machine.
  const served = { ...environment, DASHBOARD_PORT: portOf(dashboard) }
  const { url } = JSON.parse(await runCommand(['users', 'sign-in-link', '--json'], served, signal))
  const shown = {
    Dashboard: dashboard,
    'Execution API': executionUrl,
    'Browser Context API': browserContextUrl,
    Management: `${management}/readyz`,
    'The little website': site.url,
    "The service's log": logPath,
  }
  say(farewell(url, shown, longRun(stage)))
  await Promise.race([service.ended, untilAborted(signal)])
  say('Stopping.')
}

/** Waits for both, also when one has failed: what the other starts is to be undone. The first's failure matters more. */
async function both<First, Second>(first: Promise<First>, second: Promise<Second>): Promise<[First, Second]> {
  await Promise.allSettled([first, second])
  return [await first, await second]
}

/** Made while the service starts, which takes its time. */
async function createKey(environment: NodeJS.ProcessEnv, undo: Undo, signal: AbortSignal): Promise<string> {
  const key = JSON.parse(await runCommand(['keys', 'create', '--name', 'demo', '--json'], environment, signal))
  // A data directory that stays is left as it was found: an account has few keys.
  if (process.env.DATA_DIR) undo.push(() => runCommand(['keys', 'delete', key.id], environment))
  return key.value
}

/** Looked for while the service starts: after an installation, npm's Chromium has to be unpacked. */
async function lookForBrowser({ BROWSER_PATH, BROWSER_CDP_URL }: Config): Promise<string | undefined> {
  try {
    if (!BROWSER_CDP_URL) await findBrowser(BROWSER_PATH)
    return undefined
  } catch (error) {
    // Whatever else is wrong with it, its runs will tell.
    return error instanceof BrowserMissing ? error.message : undefined
  }
}

function farewell(signInLink: string, places: Record<string, string>, command: string): string {
  return [
    `\n${styleText('bold', 'The service keeps running, until you press Ctrl-C')}\n`,
    '  See the runs in the dashboard; this link signs you in, once:',
    `  ${styleText('cyan', signInLink)}\n`,
    ...Object.entries(places).map(([name, place]) => `  ${name.padEnd(21)}${place}`),
    styleText(
      'dim',
      '\nPaste any of the commands into another terminal, or queue a long run. Its answer names the run:',
    ),
    styleText('dim', 'GET /v1/execution/runs/ID/events follows it, POST /v1/execution/runs/ID/cancel ends it.'),
    `\n${styleText('cyan', command)}\n`,
  ].join('\n')
}

/** Exit code 0 when the runs succeeded, also when somebody has ended the demo after that. */
async function main(): Promise<number> {
  const stopped = new AbortController()
  const stop = () => stopped.abort(new DemoFailed('Stopped.'))
  // Ctrl-C may arrive twice, from the terminal and from npm; stopping has its own limit, so that repeating is no use.
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, stop)
  // Nobody reads on, as in `npm run demo | head`.
  process.stdout.on('error', stop)
  const undo: Undo = []
  try {
    const { values } = parseArgs({ options: { once: { type: 'boolean', default: false } } })
    await demonstrate(values.once, stopped.signal, undo)
    await undoAll(undo)
    say(`\n${styleText('bold', 'Everything worked, and everything is stopped.')}`)
    return 0
  } catch (error) {
    process.stderr.write(`\n${(error as Error).message}\n`)
    return 1
  } finally {
    await undoAll(undo)
  }
}

async function undoAll(undo: Undo): Promise<void> {
  for (const each of undo.splice(0).reverse()) {
    await each().catch((error) => process.stderr.write(`${error.message}\n`))
  }
}

/** The service's environment: that of the demo, with a data directory and ports that nobody else uses. */
async function prepare(undo: Undo) {
  const given = { ...process.env }
  for (const name of foreignVariables) delete given[name]
  given.WORKFLOWS_DIR ||= exampleWorkflows
  const config = readConfig(given)
  const dataDirectory = given.DATA_DIR ? config.DATA_DIR : await mkdtemp(join(tmpdir(), 'execution-service-demo-'))
  if (given.DATA_DIR) await mkdir(dataDirectory, { recursive: true, mode: 0o700 })
  else undo.push(() => rm(dataDirectory, { recursive: true, maxRetries: 3 }))
  const { numbers, evaded } = await choosePorts(config, given)
  const ports = Object.entries(numbers).map(([name, port]) => [name, String(port)])
  const directories = { DATA_DIR: dataDirectory, WORKFLOWS_DIR: config.WORKFLOWS_DIR }
  // Nobody who presses Ctrl-C wants to wait for a long run to finish.
  const own = { HOST: config.HOST, SHUTDOWN_SECONDS: given.SHUTDOWN_SECONDS || '1', ...directories }
  const environment: NodeJS.ProcessEnv = { ...given, ...own, ...Object.fromEntries(ports) }
  const browserMissing = lookForBrowser(config)
  return { environment, evaded, logPath: join(dataDirectory, 'service.log'), browserMissing }
}

/** A URL leaves out the port that is HTTP's own. */
function portOf(origin: string): string {
  return new URL(origin).port || '80'
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await events.once(signal, 'abort')
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

process.exitCode = await main()
