/** `npm start`: serves until it is told to stop. */
import { fileURLToPath } from 'node:url'
import { type Service, startService } from '../app.ts'
import { type Config, readConfig } from '../config.ts'
import { keyFilePath } from '../storage/key-file.ts'
import { type Role, readRoles, type Surface, surfaces } from '../surfaces/roles.ts'
import { openLog } from '../telemetry/log.ts'
import { onStopSignal } from './stop-signal.ts'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))

interface StartOptions {
  /** What this process does, as `readRoles` takes it; everything unless given. */
  only?: string[]
  /** Whether to say where everything is; it is in the log in any case. */
  greet?: boolean
}

export async function start({ only = [], greet = true }: StartOptions = {}): Promise<void> {
  const roles = readRoles(only)
  if (roles.size === 1 && roles.has('worker')) return (await import('./worker.ts')).worker({ managed: true })
  const config = readConfig(process.env)
  const log = openLog(config)
  if (isBehindUnknownProxy(config, roles)) {
    log.warn('a public address is set, but PROXY_HOPS is not: failed sign-ins of one reader count for all')
  }
  const starting = startService(config, log, main, roles)
  onStopSignal(async () => {
    log.info('service stopping')
    await (await starting).stop()
    log.info('service stopped')
    log.flush()
  })
  const service = await starting
  for (const guess of guessesOf(config, service, roles)) log.warn(guess)
  if (greet) say(welcome(service, roles, config))
  log.info({ roles: [...roles], ...addressesOf(service, roles) }, 'service ready')
}

const memberOf = {
  dashboard: 'dashboardUrl',
  execution: 'executionUrl',
  'browser-context': 'browserContextUrl',
} as const satisfies Record<Surface, keyof Service>

const surfaceNames = Object.keys(surfaces) as Surface[]

/** Of what this process serves. */
function addressesOf(service: Service, roles: ReadonlySet<Role>): Record<string, string> {
  const served = surfaceNames.filter((name) => roles.has(name))
  return Object.fromEntries(served.map((name) => [memberOf[name].replace(/Url$/, ''), service[memberOf[name]]]))
}

/** A process that leaves a surface to another can only guess where that is. */
function guessesOf(config: Config, service: Service, roles: ReadonlySet<Role>): string[] {
  const linked = surfaceNames.filter((name) => name !== 'dashboard' && !roles.has(name))
  return linked
    .filter((name) => config[surfaces[name].url] === undefined)
    .map((name) => {
      const { title, url } = surfaces[name]
      return `the ${title} is served elsewhere, and ${url} is not set: docs and commands say ${service[memberOf[name]]}`
    })
}

/** By the addresses of what it serves: those of other processes are set where there is no proxy, too. */
function isBehindUnknownProxy(config: Config, roles: ReadonlySet<Role>): boolean {
  const hasUrl = (name: Surface) => roles.has(name) && config[surfaces[name].url] !== undefined
  return config.PROXY_HOPS === 0 && surfaceNames.some(hasUrl)
}

function welcome(service: Service, roles: ReadonlySet<Role>, config: Config): string {
  const { firstAccount, welcomeUrl, executionUrl, managementUrl } = service
  const served = surfaceNames.filter((name) => roles.has(name))
  const line = (title: string, url: string) => `${title.padEnd(21)}${url}`
  const docs = served[0] && `${service[memberOf[served[0]]]}/docs/`
  const addresses = [
    ...served.map((name) => line(surfaces[name].title, service[memberOf[name]])),
    line('Management', `${managementUrl}/readyz`),
    ...(docs ? [line('Docs', docs)] : []),
  ]
  if (!welcomeUrl) return addresses.join('\n')
  return [
    ...(firstAccount ? [`First start: made ${madeFirst(config)} and the account "${firstAccount.name}".`, ''] : []),
    ...addresses,
    '',
    'Nobody can sign in to the dashboard yet. This link works once, within a day; it makes you its owner:',
    `  ${welcomeUrl}`,
    '',
    'Create an API key there, and queue a run with it:',
    `  curl -X PUT ${executionUrl}/v1/execution/queue-remote/count-words \\`,
    "    -H 'Authorization: Bearer <API_KEY>' -H 'Content-Type: application/json' -H 'Prefer: wait=10' \\",
    `    -d '{"variableData": {"path": "README.md"}}'`,
  ].join('\n')
}

function madeFirst({ DATABASE_URL, DATA_DIR, ENCRYPTION_KEY }: Config): string {
  if (DATABASE_URL === undefined) return `the store in ${DATA_DIR},${ENCRYPTION_KEY ? '' : ' its encryption key,'}`
  const tables = 'the tables in the database of DATABASE_URL'
  if (ENCRYPTION_KEY) return tables
  return `${tables}, the encryption key in ${keyFilePath(DATA_DIR)}, which all other machines need as ENCRYPTION_KEY,`
}

/** For people; the logs go to standard output. */
function say(text: string): void {
  process.stderr.write(`${text}\n`)
}
