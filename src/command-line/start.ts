/** `npm start`: serves until it is told to stop. */
import { fileURLToPath } from 'node:url'
import { type Service, startService } from '../app.ts'
import { type Config, readConfig } from '../config.ts'
import { openLog } from '../log.ts'
import { onStopSignal } from './stop-signal.ts'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))

/** @param greet whether to say where everything is; it is in the log in any case. */
export async function start({ greet = true } = {}): Promise<void> {
  const config = readConfig(process.env)
  const log = openLog(config)
  if (isBehindUnknownProxy(config)) {
    log.warn('a public address is set, but PROXY_HOPS is not: failed sign-ins of one reader count for all')
  }
  const starting = startService(config, log, main)
  onStopSignal(async () => {
    log.info('service stopping')
    await (await starting).stop()
    log.info('service stopped')
    log.flush()
  })
  const service = await starting
  if (greet) say(welcome(service, config.DATA_DIR))
  log.info({ execution: service.executionUrl, browserContext: service.browserContextUrl }, 'service ready')
}

function isBehindUnknownProxy({ PROXY_HOPS, DASHBOARD_URL, EXECUTION_URL, BROWSER_CONTEXT_URL }: Config): boolean {
  return PROXY_HOPS === 0 && [DASHBOARD_URL, EXECUTION_URL, BROWSER_CONTEXT_URL].some((url) => url !== undefined)
}

function welcome(
  { firstAccount, welcomeUrl, dashboardUrl, executionUrl, browserContextUrl, managementUrl }: Service,
  dataDirectory: string,
): string {
  const addresses = [
    `Dashboard            ${dashboardUrl}`,
    `Execution API        ${executionUrl}`,
    `Browser Context API  ${browserContextUrl}`,
    `Management           ${managementUrl}/readyz`,
    `Docs                 ${dashboardUrl}/docs/`,
  ]
  if (!welcomeUrl) return addresses.join('\n')
  const made = `First start: made the store in ${dataDirectory}, its encryption key, and the account "${firstAccount?.name}".`
  return [
    ...(firstAccount ? [made, ''] : []),
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

/** For people; the logs go to standard output. */
function say(text: string): void {
  process.stderr.write(`${text}\n`)
}
