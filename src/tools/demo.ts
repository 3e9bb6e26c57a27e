/**
 * `npm run demo`: starts the service in a temporary directory, queues a run over HTTP and follows it, printing each
 * request as a curl command. Then stays up with the dashboard; with `--once`, exits. With `--python`, a worker in Python
 * executes the run.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs, styleText } from 'node:util'
import { startSite } from '../../examples/site/site.ts'
import type { components } from '../../generated/execution.v1/types.ts'
import { openAdministration, startService } from '../app.ts'
import { parseEvents } from '../client/event-stream.ts'
import { readConfig } from '../config/config.ts'
import { operator } from '../domain/audit-log/audit-log.ts'
import { createTemporaryDirectory } from '../storage/temporary-directory.ts'
import { openLog } from '../telemetry/log.ts'

type Run = components['schemas']['Run']
type RunEvent = components['schemas']['RunEvent']

interface Request {
  method: 'GET' | 'PUT'
  url: string
  headers: Record<string, string>
  body?: object
  /** Whether the response is an event stream. */
  isStream?: boolean
}

const main = fileURLToPath(new URL('../main.ts', import.meta.url))
/** The secret variable of the run. */
const siteToken = 'lantern-tuesday-4711'

/** Settings of another installation that must not lead the demo to its store or addresses. */
const ignoredVariables = [
  'DATABASE_URL',
  'ENCRYPTION_KEY',
  'EXECUTION_URL',
  'BROWSER_CONTEXT_URL',
  'DASHBOARD_URL',
  'EXAMPLE_FILES_DIR',
]

/** A run to queue and follow. */
interface Example {
  workflowId: string
  about: string
  /** What to see while it is followed. */
  shown: string
  variableData: object
}

async function demo(
  { staysUp, usesPython }: { staysUp: boolean; usesPython: boolean },
  signal: AbortSignal,
): Promise<void> {
  const python = usesPython ? findPython() : undefined
  const cleanUp: (() => Promise<unknown>)[] = []
  try {
    const { path: dataDirectory, remove } = createTemporaryDirectory('demo')
    cleanUp.push(async () => remove())
    const site = await startSite({ token: siteToken, password: randomUUID() })
    cleanUp.push(() => site.stop())
    const { service, administration, apiKey, accountId } = await start(dataDirectory, new URL(site.url).host, cleanUp)

    const authorization = { Authorization: `Bearer ${apiKey}` }
    const runs = `${service.executionUrl}/v1/execution/runs`
    if (python !== undefined) {
      const scopes = ['runs:execute']
      await administration.enableScopes()
      const { value: key } = await administration.createKey('Python worker', scopes)
      await startPythonWorker(python, service.executionUrl, { worker: key, caller: apiKey }, cleanUp, signal)
    }
    const example = python === undefined ? checkLinks(site.url) : readingTime
    const { workflowId, variableData: variables } = example
    say(bold(`\n1. Queue a run of the workflow ${workflowId}`))
    say(example.about)
    const queue: Request = {
      method: 'PUT',
      url: `${service.executionUrl}/v1/execution/queue-remote/${workflowId}`,
      headers: { ...authorization, 'Content-Type': 'application/json', 'Idempotency-Key': `demo-${randomUUID()}` },
      body: { variableData: variables },
    }
    const { id, status } = (await (await send(queue, 202, signal)).json()) as Run
    say(`  Run ${id} is ${status}.`)

    say(bold('\n2. Follow it'))
    say(example.shown)
    const follow = { method: 'GET', url: `${runs}/${id}/events`, headers: authorization, isStream: true } as const
    await printEvents(await send(follow, 200, signal), signal)

    say(bold('\n3. Read the result'))
    const read = { method: 'GET', url: `${runs}/${id}`, headers: authorization } as const
    const run = (await (await send(read, 200, signal)).json()) as Run
    const { attempts, variableData, output, error } = run
    say(indent(JSON.stringify({ status: run.status, attempts, variableData, output, error }, null, 2)))
    if (run.status !== 'succeeded') throw new Error(`The run is ${run.status}.`)

    if (!staysUp) return
    const [owner] = await administration.users.list(accountId)
    const token = owner && (await administration.links.createSignInLink(owner, operator))
    say(bold('\nThe service is up until you press Ctrl-C.'))
    say(`  Dashboard  ${styleText('cyan', `${service.dashboardUrl}/links/${token}`)} (signs you in, once)`)
    say(`  Docs       ${service.dashboardUrl}/docs/`)
    say('\nQueue a longer run from another terminal, and watch it in the dashboard:')
    say(`\n${styleText('cyan', formatCurl(longRun(service.executionUrl, authorization)))}\n`)
    await once(signal, 'abort').catch(() => {})
  } finally {
    for (const each of cleanUp.reverse()) await each()
  }
}

async function start(dataDirectory: string, siteAddress: string, cleanUp: (() => Promise<unknown>)[]) {
  for (const name of ignoredVariables) delete process.env[name]
  const ports = await replaceUsedPorts()
  const workflows = fileURLToPath(new URL('../../examples/workflows', import.meta.url))
  const settings = { DATA_DIR: dataDirectory, WORKFLOWS_DIR: workflows, SHUTDOWN_SECONDS: '1', LOG_LEVEL: 'error' }
  // The worker process inherits them. The website of the demo is not at a public address.
  Object.assign(process.env, {
    ...ports,
    ...process.env,
    ...settings,
    EXAMPLE_PRIVATE_ADDRESSES: siteAddress,
    EXECUTOR_ENV: 'EXAMPLE_*',
  })
  const config = readConfig(process.env)
  const service = await startService(config, openLog(config), main)
  cleanUp.push(() => service.stop())
  const administration = await openAdministration(config)
  cleanUp.push(() => administration.close())
  const { accounts, apiKeys } = administration
  const accountId = service.firstAccount?.id ?? ''
  const userId = await accounts.findAdminId(accountId)
  const createKey = (name: string, scopes: string[] | null) =>
    apiKeys.create({ accountId, userId, name, scopes, expiresAt: null }, operator)
  const enableScopes = async () => {
    const account = await accounts.get(accountId)
    if (account) await accounts.update(accountId, { ...account, scopesEnabled: true }, operator)
  }
  const key = await createKey('demo', null)
  say(bold('The service is running.'))
  say(`  Dashboard      ${service.dashboardUrl}`)
  say(`  Execution API  ${service.executionUrl}`)
  say(`  API key        ${key.value}`)
  return { service, administration: { ...administration, createKey, enableScopes }, apiKey: key.value, accountId }
}

function checkLinks(siteUrl: string): Example {
  return {
    workflowId: 'check-links',
    about:
      'It crawls a small website that the demo serves. The token is a secret: it is stored encrypted and never shown.',
    shown:
      'A page of the website is overloaded at first: the attempt fails, and the next one reuses the finished steps.',
    variableData: { url: `${siteUrl}/`, token: siteToken },
  }
}

const readingTime: Example = {
  workflowId: 'reading-time',
  about: 'It is a function in examples/python/reading_time.py. The worker asks the service for runs over HTTP.',
  shown: 'Each step is stored when it has finished, as those of a workflow in TypeScript are.',
  variableData: {
    chapters: [
      { title: 'One', text: 'It was a bright cold day in April' },
      { title: 'Two', text: 'The sky above the port was the colour of television' },
    ],
  },
}

const fromRoot = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))

/** @throws unless Python 3.9 or later is on the PATH. */
function findPython(): string {
  const check = 'import sys; sys.exit(sys.version_info < (3, 9))'
  const found = ['python3', 'python'].find((name) => spawnSync(name, ['-c', check]).status === 0)
  if (found === undefined) throw new Error('--python needs Python 3.9 or later: there is none on the PATH.')
  return found
}

/** Ends when its standard input does, which is also when the demo is killed. */
const pythonWorker = `
import os, runpy, signal, sys, threading
def end():
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=end, daemon=True).start()
runpy.run_module("execution_service", run_name="__main__", alter_sys=True)
`

/** Starts a worker with the workflows in examples/python. Resolves when callers can queue their runs. */
async function startPythonWorker(
  python: string,
  executionUrl: string,
  keys: { worker: string; caller: string },
  cleanUp: (() => Promise<unknown>)[],
  signal: AbortSignal,
): Promise<void> {
  const options = ['--url', executionUrl, '--capacity', '2', '--grace-seconds', '1']
  const args = ['-c', pythonWorker, 'worker', ...options, fromRoot('examples/python')]
  const settings = { PYTHONPATH: fromRoot('clients/python/src'), PYTHONDONTWRITEBYTECODE: '1', API_KEY: keys.worker }
  const env = { ...process.env, ...settings }
  const worker = spawn(python, args, { env, stdio: ['pipe', 'ignore', 'pipe'] })
  const exited = once(worker, 'exit')
  let printed = ''
  worker.stderr.setEncoding('utf8').on('data', (text) => {
    printed = `${printed}${text}`.slice(-2000)
  })
  cleanUp.push(async () => {
    worker.stdin.end()
    await exited
  })
  const url = `${executionUrl}/v1/execution/workflows/${readingTime.workflowId}`
  const isThere = async () => (await fetch(url, { headers: { Authorization: `Bearer ${keys.caller}` }, signal })).ok
  while (!(await isThere())) {
    if (hasExited(worker)) throw new Error(`The Python worker has ended: ${printed}`)
    await delay(50, undefined, { signal })
  }
  say('  Python worker  executes the workflows in examples/python')
}

function hasExited({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

/** The settings of default ports that are in use: 0 lets the service choose a free one. */
async function replaceUsedPorts(): Promise<NodeJS.ProcessEnv> {
  const defaults = readConfig({})
  const ports: NodeJS.ProcessEnv = {}
  for (const name of ['DASHBOARD_PORT', 'EXECUTION_PORT', 'BROWSER_CONTEXT_PORT', 'MANAGEMENT_PORT'] as const) {
    const server = createServer().listen(defaults[name], defaults.HOST)
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    )
    if (isFree) await once(server.close(), 'close')
    else ports[name] = '0'
  }
  return ports
}

/** Prints a request as a curl command, sends it, and prints the status. @throws for another status than `expected`. */
async function send(request: Request, expected: number, signal: AbortSignal): Promise<Response> {
  const { method, url, headers, body } = request
  say(`\n${styleText('cyan', formatCurl(request))}\n`)
  const response = await fetch(url, { method, headers, signal, ...(body && { body: JSON.stringify(body) }) })
  say(`  ${styleText(response.ok ? 'green' : 'yellow', `${response.status} ${response.statusText}`)}`)
  if (response.status === expected) return response
  throw new Error(`Expected the status ${expected} from ${method} ${url}: ${await response.text()}`)
}

/** A command for any POSIX shell. */
function formatCurl({ method, url, headers, body, isStream }: Request): string {
  const words = ['curl', ...(isStream ? ['-N'] : []), ...(method === 'GET' ? [] : ['-X', method]), url]
  const options = Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`)
  if (body !== undefined) options.push(`-d ${quote(JSON.stringify(body))}`)
  return indent([words.join(' '), ...options.map((option) => `  ${option}`)].join(' \\\n'))
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

async function printEvents({ body }: Response, signal: AbortSignal): Promise<void> {
  let startedAt: number | undefined
  for await (const data of body ? parseEvents(body) : []) {
    signal.throwIfAborted()
    const event: RunEvent = JSON.parse(data)
    const text = formatEvent(event)
    if (!text) continue
    const at = Date.parse(event.at)
    startedAt ??= at
    say(`  ${styleText('dim', `${((at - startedAt) / 1000).toFixed(2).padStart(6)} s`)}  ${text}`)
  }
}

/** Skips the start of a step: its end follows soon. */
function formatEvent(event: RunEvent): string | undefined {
  switch (event.type) {
    case 'status': {
      const note = event.status === 'running' ? `attempt ${event.attempt}` : event.reason
      return bold(note ? `${event.status} (${note})` : event.status)
    }
    case 'progress':
      return styleText('dim', `progress ${event.percent.toFixed(0)} % ${event.message ?? ''}`)
    case 'log':
      return `log ${event.message}`
    case 'step':
      return event.state === 'started' ? undefined : `step ${event.name}: ${event.state}`
  }
}

function longRun(executionUrl: string, authorization: Record<string, string>): Request {
  const url = `${executionUrl}/v1/execution/queue-remote/build-manifest`
  const headers = { ...authorization, 'Content-Type': 'application/json' }
  const body = { variableData: { directory: '.', filesPerStep: 1, pauseMilliseconds: 2000 } }
  return { method: 'PUT', url, headers, body }
}

function bold(text: string): string {
  return styleText('bold', text)
}

function indent(text: string): string {
  return text.replaceAll(/^/gm, '  ')
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

const stop = new AbortController()
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => stop.abort(new Error('Stopped.')))
// The reader, such as `head`, has closed the pipe.
process.stdout.on('error', () => stop.abort(new Error('Stopped.')))
try {
  const flag = { type: 'boolean', default: false } as const
  const { values } = parseArgs({ options: { once: flag, python: flag } })
  await demo({ staysUp: !values.once, usesPython: values.python }, stop.signal)
  process.exit(0)
} catch (error) {
  process.stderr.write(`\n${(error as Error).message}\n`)
  process.exit(1)
}
