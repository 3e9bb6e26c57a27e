/** Environment → one frozen Config. Each variable, its default and its limits are written once, here. */
import { resolve } from 'node:path'
import { keyBytes, parseKey } from './storage/encryption-keys.ts'

/** A setting that the service cannot start with; the message says what to set. */
export class ConfigError extends Error {}

interface Setting<Value> {
  /** What the value is, for the README's table. */
  description: string
  /** As it would stand in the environment; `undefined` when there is none. */
  default: string | undefined
  /** @throws {ConfigError} */
  read(text: string, name: string): Value
}

const port = (meaning: string, fallback: string): Setting<number> => ({
  description: meaning,
  default: fallback,
  read: (text, name) => wholeNumber(text, name, 0, 65535),
})

const count = (meaning: string, fallback: string, min: number, max: number): Setting<number> => ({
  description: `${meaning} (${min} to ${max})`,
  default: fallback,
  read: (text, name) => wholeNumber(text, name, min, max),
})

const directory = (meaning: string, fallback: string): Setting<string> => ({
  description: meaning,
  default: fallback,
  read: (text) => resolve(text),
})

const publicUrl = (meaning: string): Setting<string | undefined> => ({
  description: meaning,
  default: undefined,
  read: (text, name) => {
    if (!URL.canParse(text) || !/^https?:/.test(text)) {
      throw new ConfigError(`${name} is "${text}": set it to a URL that starts with http:// or https://.`)
    }
    return text.replace(/\/$/, '')
  },
})

const browserPath: Setting<string | undefined> = {
  description:
    'The executable of the Chrome or Chromium that runs use. Without it: an installed one, or else the one that npm brings.',
  default: undefined,
  read: (text) => resolve(text),
}

const browserCdpUrl: Setting<string | undefined> = {
  description:
    'The address of a Chrome or Chromium that runs elsewhere, by the DevTools protocol: http://, https://, ws:// or wss://.',
  default: undefined,
  read: (text, name) => {
    if (URL.canParse(text) && /^(https?|wss?):\/\//.test(text)) return text
    // Not with the value, which may hold the token of a provider.
    throw new ConfigError(
      `${name} is no URL of a browser: set it to one that starts with http://, https://, ws:// or wss://.`,
    )
  },
}

const databaseUrl: Setting<string | undefined> = {
  description:
    'A PostgreSQL database (15 or later) that keeps everything instead of `DATA_DIR`, for several processes and machines: `postgres://user:password@host/database`.',
  default: undefined,
  read: (text, name) => {
    if (URL.canParse(text) && /^postgres(ql)?:\/\//.test(text)) return text
    // Not with the value, which may hold a password.
    throw new ConfigError(
      `${name} is no URL of a PostgreSQL database: set it to one such as postgres://user:password@host/database.`,
    )
  },
}

const collectorUrl: Setting<string | undefined> = {
  description: 'The collector that traces are sent to, by OTLP over HTTP. Without it there are no traces.',
  default: undefined,
  read: (text, name) => {
    if (URL.canParse(text) && /^https?:\/\//.test(text)) return text
    // Not with the value, which may hold a password.
    throw new ConfigError(`${name} is no URL: set it to one that starts with http:// or https://.`)
  },
}

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

/** Every environment variable that the service reads. */
export const settings = {
  HOST: {
    description: 'The address that everything listens on.',
    default: '127.0.0.1',
    read: (text: string) => text,
  },
  DASHBOARD_PORT: port('Port of the dashboard.', '3000'),
  EXECUTION_PORT: port('Port of the Execution API.', '3001'),
  BROWSER_CONTEXT_PORT: port('Port of the Browser Context API.', '3002'),
  MANAGEMENT_PORT: port('Port of `/livez`, `/readyz` and `/metrics`.', '3003'),
  DASHBOARD_URL: publicUrl(
    "The dashboard's public address, when it is behind a proxy; https makes its cookies secure.",
  ),
  EXECUTION_URL: publicUrl("The Execution API's public address, when it is behind a proxy."),
  BROWSER_CONTEXT_URL: publicUrl("The Browser Context API's public address, when it is behind a proxy."),
  PROXY_HOPS: count(
    'How many proxies stand in front, whose `X-Forwarded-For` is believed. Without it all callers look like one.',
    '0',
    0,
    10,
  ),
  DATA_DIR: directory('Where the embedded store and the encryption key are.', './data'),
  DATABASE_URL: databaseUrl,
  DATABASE_CONNECTIONS: count('How many connections a process has to the database of `DATABASE_URL`.', '10', 2, 1000),
  WORKFLOWS_DIR: directory('Where the workflows are.', './examples/workflows'),
  RATE_LIMIT_PER_MINUTE: count(
    'How many requests an API key may make in a minute, over both APIs; 0 for any number.',
    '6000',
    0,
    1_000_000,
  ),
  QUEUED_RUNS_MAX: count(
    'How many runs of an account may be queued at the same time; 0 for any number.',
    '10000',
    0,
    100_000,
  ),
  BROWSER_CONTEXT_VERSIONS: count('How many versions of a browser context are kept.', '5', 1, 100),
  ARTIFACT_RETENTION_DAYS: count('How many days the artifacts of runs are kept.', '30', 1, 3650),
  RUN_RETENTION_DAYS: count('How many days runs are kept after they have finished.', '90', 1, 3650),
  AUDIT_LOG_RETENTION_DAYS: count('How many days entries of the audit log are kept.', '365', 1, 3650),
  WORKER_SLOTS: count('How many runs a worker executes at the same time.', '4', 1, 64),
  ACCOUNT_CONCURRENCY: count(
    'How many runs of one account may run at the same time, over all workers; 0 for any number.',
    '0',
    0,
    1_000_000,
  ),
  WORKFLOW_MEMORY_MB: count('The heap that the process of a run may use, in megabytes.', '512', 32, 65536),
  BROWSER_PATH: browserPath,
  BROWSER_CDP_URL: browserCdpUrl,
  LEASE_SECONDS: count('A worker that is silent for this long has lost its runs, in seconds.', '15', 3, 300),
  ABORT_GRACE_SECONDS: count(
    'How long a run may go on after its AbortSignal before its process is ended, in seconds.',
    '5',
    1,
    300,
  ),
  DRAIN_SECONDS: count(
    'How long requests are still taken at shutdown while `/readyz` says 503, for a proxy in front to notice, in seconds.',
    '0',
    0,
    300,
  ),
  SHUTDOWN_SECONDS: count('How long requests and runs may take to finish at shutdown, in seconds.', '10', 1, 3600),
  ENCRYPTION_KEY: {
    description: `The installation's key: ${keyBytes} random bytes in base64. Made in \`DATA_DIR\` when it is not set.`,
    default: undefined,
    // The text is not repeated: it may be nearly a key.
    read: (text: string, name: string): Buffer | undefined => {
      const key = parseKey(text)
      if (key) return key
      throw new ConfigError(
        `${name} does not hold ${keyBytes} bytes in base64: make one with \`openssl rand -base64 ${keyBytes}\`.`,
      )
    },
  },
  ENCRYPTION_KEY_PREVIOUS: {
    description:
      'Keys that stood in `ENCRYPTION_KEY` before, separated by commas: what they have encrypted still opens.',
    default: undefined,
    read: (text: string, name: string): readonly Buffer[] | undefined =>
      text.split(',').map((part) => {
        const key = parseKey(part)
        if (key) return key
        throw new ConfigError(
          `${name} holds what is no key: set it to keys of ${keyBytes} bytes in base64, with commas.`,
        )
      }),
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: collectorUrl,
  OTEL_SERVICE_NAME: {
    description: 'What the service is called in traces.',
    default: 'execution-service',
    read: (text: string) => text,
  },
  LOG_LEVEL: {
    description: `The least level that is logged: ${logLevels.join(', ')}.`,
    default: 'info',
    read: (text: string, name: string) => {
      if (logLevels.includes(text)) return text
      throw new ConfigError(`${name} is "${text}": set it to one of ${logLevels.join(', ')}.`)
    },
  },
} satisfies Record<string, Setting<unknown>>

type Settings = typeof settings

export type Config = { readonly [Name in keyof Settings]: ReturnType<Settings[Name]['read']> }

/**
 * Reads the configuration. An empty variable counts as one that is not set.
 *
 * @throws {ConfigError} naming the first variable that is wrong, and what to set.
 */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  const entries = Object.entries(settings).map(([name, setting]) => {
    const text = environment[name] || setting.default
    return [name, text === undefined ? undefined : setting.read(text, name)]
  })
  const config = Object.freeze(Object.fromEntries(entries)) as Config
  if (!config.ENCRYPTION_KEY && config.ENCRYPTION_KEY_PREVIOUS) {
    throw new ConfigError(
      'ENCRYPTION_KEY_PREVIOUS is set, but ENCRYPTION_KEY is not: set that to the key that encrypts from now on.',
    )
  }
  refuseSamePorts(config)
  if (config.BROWSER_PATH && config.BROWSER_CDP_URL) {
    throw new ConfigError('BROWSER_PATH and BROWSER_CDP_URL are both set: unset the one that runs are not to use.')
  }
  return config
}

/** Variables of the service that no process may have which runs what others wrote: workflows, and pages of the web. */
const secretVariables = ['BROWSER_CDP_URL', 'DATABASE_URL', 'ENCRYPTION_KEY', 'ENCRYPTION_KEY_PREVIOUS']

/** Of an exporter of OpenTelemetry: headers hold what it signs in with. */
const exporterVariable = /^OTEL_EXPORTER_/

export function environmentWithoutSecrets(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const isSecret = (name: string) => secretVariables.includes(name) || exporterVariable.test(name)
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !isSecret(name)))
}

function refuseSamePorts(config: Config): void {
  const names = ['DASHBOARD_PORT', 'EXECUTION_PORT', 'BROWSER_CONTEXT_PORT', 'MANAGEMENT_PORT'] as const
  for (const [index, name] of names.entries()) {
    const other = names.slice(index + 1).find((each) => config[each] === config[name] && config[name] !== 0)
    if (other) throw new ConfigError(`${name} and ${other} are both ${config[name]}: set them to different ports.`)
  }
}

function wholeNumber(text: string, name: string, min: number, max: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= min && value <= max) return value
  throw new ConfigError(`${name} is "${text}": set it to a whole number from ${min} to ${max}.`)
}
