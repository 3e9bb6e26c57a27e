/** `start` and `worker`: serve, or execute runs, until a stop signal. */

import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Service, startService, startWorker } from '../app.ts'
import { isPublished, shellCommand } from '../config/command-line.ts'
import { type Config, environmentWithoutSecrets, readConfig } from '../config/config.ts'
import { exampleVariables } from '../domain/workflows/example-values.ts'
import { keyFilePath } from '../storage/key-file.ts'
import { queueCommand } from '../surfaces/dashboard/workflows/curl-commands.ts'
import { type Addresses, type Role, readRoles, type Surface, surfaces } from '../surfaces/roles.ts'
import { openLog } from '../telemetry/log.ts'
import { findBrowser } from '../worker/browser/find-browser.ts'
import { CommandError } from './output.ts'
import { onStopSignal } from './stop-signal.ts'
import { watchWorkflows } from './watch-workflows.ts'

const main = fileURLToPath(new URL(`../main${extname(import.meta.url)}`, import.meta.url))

/**
 * @param only the roles of this process, as `readRoles` takes them.
 * @param allowBreaking whether WORKFLOWS_DIR is deployed although versions in it break their callers.
 * @param watch whether WORKFLOWS_DIR is deployed whenever a file in it is saved, until the process ends.
 */
export async function start({
  only,
  allowBreaking = false,
  watch = false,
}: {
  only: string[]
  allowBreaking?: boolean
  watch?: boolean
}): Promise<void> {
  const roles = readRoles(only)
  if (roles.size === 1 && roles.has('worker')) return worker({ isManaged: true })
  // Large bodies and responses are strings that V8 frees only with its whole heap. By default the heap may grow by several
  // times between two collections: 140 MB more, measured with lists of large runs.
  setFlagsFromString('--heap-growing-percent=40')
  const config = readConfig(process.env)
  if (watch && !config.WORKFLOWS_DIR)
    throw new CommandError('--watch needs WORKFLOWS_DIR: set it to the directory of workflows.')
  const log = openLog(config)
  if (isBehindUnknownProxy(config, roles)) {
    log.warn('PROXY_HOPS is 0 although a public address is set; sign-in limits treat all clients as one')
  }
  const starting = startService(config, log, main, roles, { allowBreaking })
  onStopSignal(async () => {
    log.info('service stopping')
    await (await starting).stop()
    log.info('service stopped')
    log.flush()
  })
  const service = await starting
  const served = surfaceNames.filter((name) => roles.has(name))
  for (const name of surfaceNames.filter((each) => each !== 'dashboard' && !roles.has(each))) {
    const { title, url } = surfaces[name]
    if (config[url] !== undefined) continue
    log.warn(`${url} is not set, and another process serves the ${title}: links assume ${service[addressOf[name]]}`)
  }
  if (service.workflows.length === 0) log.warn(noWorkflows)
  printForPeople(welcome(service, served, config))
  const addresses = Object.fromEntries(
    served.map((name) => [addressOf[name].replace(/Url$/, ''), service[addressOf[name]]]),
  )
  log.info({ roles: [...roles], ...addresses }, 'service ready')
  log.flush()
  freeYoungGenerationOnce()
  if (watch && config.WORKFLOWS_DIR) await watchWorkflows(config, config.WORKFLOWS_DIR)
}

/** @param isManaged whether the worker listens on the management address; a service's own worker does not. */
export async function worker({ isManaged = false } = {}): Promise<void> {
  const config = readConfig(process.env)
  const log = openLog(config)
  const onFatal = (error: unknown) => {
    log.fatal({ err: error }, 'worker cannot execute runs; exiting')
    log.flush()
    process.exit(1)
  }
  // A warning only: runs without a browser still work.
  if (config.BROWSER_PATH) {
    const environment = environmentWithoutSecrets(process.env)
    findBrowser(config.BROWSER_PATH, environment).catch((error: Error) => log.warn(error.message))
  }
  const starting = startWorker(config, log, { isManaged, onFatal })
  onStopSignal(async () => {
    await (await starting).stop()
    log.flush()
  })
  const { managementUrl } = await starting
  freeYoungGenerationOnce()
  if (managementUrl) printForPeople(addressLine('Management', `${managementUrl}/readyz`))
}

/** After this long, what a start leaves to do is done. */
const startedMilliseconds = 2000

/**
 * Collects the young generation once, for 1 ms of CPU. A start leaves it full of garbage, and an idle process allocates too
 * little for another collection. After one, V8 also reduces its memory some seconds later: 65 MB less, measured.
 */
function freeYoungGenerationOnce(): void {
  const collect = () => {
    setFlagsFromString('--expose-gc')
    const gc: (options: { type: 'minor' }) => void = runInNewContext('gc')
    setFlagsFromString('--no-expose-gc')
    gc({ type: 'minor' })
  }
  setTimeout(collect, startedMilliseconds).unref()
}

const addressOf = {
  dashboard: 'dashboardUrl',
  execution: 'executionUrl',
  'browser-context': 'browserContextUrl',
} as const satisfies Record<Surface, keyof Addresses>

const surfaceNames = Object.keys(surfaces) as Surface[]

/** Whether a served surface has a public address, which implies a proxy, but no proxy is trusted. */
function isBehindUnknownProxy(config: Config, roles: ReadonlySet<Role>): boolean {
  const hasUrl = (name: Surface) => roles.has(name) && config[surfaces[name].url] !== undefined
  return config.PROXY_HOPS === 0 && surfaceNames.some(hasUrl)
}

function addressLine(title: string, url: string): string {
  return `${title.padEnd(21)}${url}`
}

function welcome(service: Service, served: readonly Surface[], config: Config): string {
  const { firstAccount, welcomeUrl, managementUrl } = service
  const addresses = served.map((name) => addressLine(surfaces[name].title, service[addressOf[name]]))
  addresses.push(addressLine('Management', `${managementUrl}/readyz`))
  if (served[0]) addresses.push(addressLine('Docs', `${service[addressOf[served[0]]]}/docs/`))
  if (!welcomeUrl) return addresses.join('\n')
  return [
    ...(firstAccount ? [`First start: created ${created(config)} and the account "${firstAccount.name}".`, ''] : []),
    ...addresses,
    '',
    'Open this link to set up your sign-in. It works once, within a day:',
    `  ${welcomeUrl}`,
    '',
    'Then create an API key in the dashboard, and queue a run with it:',
    exampleCommand(service).replaceAll(/^/gm, '  '),
  ].join('\n')
}

const noWorkflows = `No workflows are served: deploy a directory, for example with \`${shellCommand(`workflows deploy ${isPublished ? 'workflows' : 'examples/workflows'}`)}\`.`

function exampleCommand({ executionUrl, workflows: [workflow] }: Service): string {
  if (!workflow) return noWorkflows
  return queueCommand(executionUrl, workflow.id, exampleVariables(workflow.variables))
}

/** What the first start created. */
function created({ DATABASE_URL, DATA_DIR, ENCRYPTION_KEY }: Config): string {
  if (DATABASE_URL === undefined) return `the store in ${DATA_DIR}${ENCRYPTION_KEY ? '' : ', its encryption key'}`
  const tables = 'the tables in the database of DATABASE_URL'
  if (ENCRYPTION_KEY) return tables
  return `${tables}, the encryption key in ${keyFilePath(DATA_DIR)}, which all other machines need as ENCRYPTION_KEY,`
}

/** Standard output is for the log. */
function printForPeople(text: string): void {
  process.stderr.write(`${text}\n`)
}
