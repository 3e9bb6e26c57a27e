/** Environment variables → one frozen `Config`. Every setting, default and limit is defined here, once. */
import { BlockList } from 'node:net'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BlobLocation } from '../storage/blobs/blob-store.ts'
import { DatabaseUrlError, readDatabaseUrl } from '../storage/database-url.ts'
import { keyBytes, parseKey } from '../storage/encryption.ts'
import {
  addRange,
  ConfigError,
  directory,
  integer,
  optional,
  port,
  publicUrl,
  readInteger,
  readList,
  type Setting,
  secretUrl,
  splitList,
  text,
} from './setting-kinds.ts'
import { requireCompleteSignIn, signInSettings } from './sign-in-settings.ts'

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']

export const settings = {
  HOST: text('Address that all ports listen on.', '127.0.0.1'),
  MANAGEMENT_HOST: optional('Address that the management port listens on. By default `HOST`.', (text) => text),
  DASHBOARD_PORT: port('Port of the dashboard.', '3000'),
  EXECUTION_PORT: port('Port of the Execution API.', '3001'),
  BROWSER_CONTEXT_PORT: port('Port of the Browser Context API.', '3002'),
  MANAGEMENT_PORT: port('Port of `/livez`, `/readyz` and `/metrics`.', '3003'),
  DASHBOARD_URL: publicUrl('dashboard', ' With https, its cookies are secure.'),
  EXECUTION_URL: publicUrl('Execution API'),
  BROWSER_CONTEXT_URL: publicUrl('Browser Context API'),
  ALLOWED_HOSTS: optional(
    'Further host names, separated by commas, by which the dashboard, the docs and the management address are reached. The hosts of the public URLs, IP addresses, `localhost` and names without a dot are always allowed.',
    (text, name) =>
      readList(text.toLowerCase(), name, (host) => /^[a-z0-9._-]+$/.test(host), 'host names without scheme and port'),
  ),
  CORS_ORIGINS: optional(
    'Origins, separated by commas, whose pages may call the APIs from a browser, such as `https://app.example.com`.',
    (text, name) => {
      const isOrigin = (origin: string) => /^https?:/.test(origin) && URL.parse(origin)?.origin === origin
      return readList(text, name, isOrigin, 'origins without a path, such as https://app.example.com')
    },
  ),
  PROXY_HOPS: integer(
    'Number of proxies in front of the service whose `X-Forwarded-For` is trusted. With 0, all callers behind a proxy appear to have its address.',
    '0',
    0,
    10,
  ),
  DATA_DIR: directory('Directory of the embedded store and the encryption key.', './data'),
  DATABASE_URL: optional(
    'PostgreSQL database (15 or later) to use instead of the embedded store, for several processes and machines: `postgres://user:password@host/database`. [Parameters](operating.md#postgresql) are those of libpq. In a password, write `#` as `%23` and `/` as `%2F`.',
    (text, name) => {
      try {
        return readDatabaseUrl(text, name)
      } catch (error) {
        throw error instanceof DatabaseUrlError ? new ConfigError(error.message) : error
      }
    },
  ),
  DATABASE_CONNECTIONS: integer('Maximum connections of a process to `DATABASE_URL`.', '10', 2, 1000),
  WORKFLOWS_DIR: optional('Directory of workflows that a start deploys. By default none.', (text) => resolve(text)),
  API_DEPLOYMENTS: {
    description:
      'Whether API keys may deploy workflows, `on` or `off`: their code then runs on the machines of the Execution API, as the user of `EXECUTOR_UID`, of `EXECUTOR_UIDS`, or of the service.',
    default: 'off',
    read: (text: string, name: string) => {
      if (text === 'on' || text === 'off') return text
      throw new ConfigError(`${name} is "${text}": set it to on or off.`)
    },
  },
  RATE_LIMIT_PER_MINUTE: integer(
    'Maximum requests per API key and minute, over both APIs; 0 for no limit.',
    '6000',
    0,
    1_000_000,
  ),
  QUEUED_RUNS_MAX: integer(
    'Maximum queued runs per account; 0 for no limit. Runs that other runs call count, and are never refused.',
    '10000',
    0,
    100_000,
  ),
  WAITING_RUNS_MAX: integer(
    'Maximum runs per account that wait for a time, an answer or another run; 0 for no limit.',
    '100000',
    0,
    10_000_000,
  ),
  ENVIRONMENTS_MAX: integer(
    'Maximum environments per account; 1 for none besides the account itself. Limits per account hold for each of them.',
    '10',
    1,
    100,
  ),
  SCHEDULES_MAX: integer('Maximum schedules per account; 0 for no limit.', '1000', 0, 1_000_000),
  SESSION_IDLE_MINUTES: integer(
    'Minutes without use after which a session of the dashboard ends. It ends after a week in any case.',
    '1440',
    1,
    10080,
  ),
  ...signInSettings,
  STORAGE_QUOTA_MB: integer(
    'Maximum storage per account in megabytes: runs with their events, artifacts, files, browser contexts and deployments; 0 for no limit.',
    '10240',
    0,
    1_000_000_000,
  ),
  BROWSER_CONTEXT_VERSIONS: integer('Versions to keep per browser context.', '5', 1, 100),
  ARTIFACTS_URL: optional(
    'Place of [artifacts and parts of files above 1 MiB](operating.md#artifacts-in-a-directory-or-bucket): a directory, such as `file:///var/lib/execution-service`, or a bucket of an S3-compatible server, such as `s3://bucket/prefix?region=eu-central-1` or `s3://bucket?endpoint=https://minio.example.com`. By default `blobs` in `DATA_DIR`; with `DATABASE_URL`, the database.',
    readBlobLocation,
  ),
  ARTIFACTS_ACCESS_KEY_ID: optional('ID of the access key for the bucket of `ARTIFACTS_URL`.', (text) => text),
  ARTIFACTS_SECRET_ACCESS_KEY: optional('Secret of the access key for the bucket of `ARTIFACTS_URL`.', (text) => text),
  FILE_MAX_MB: integer('Maximum size of a file that a caller uploads, in megabytes.', '100', 1, 10_000),
  FILE_RETENTION_DAYS: integer(
    'Days to keep a file after its last upload and after the last run with it was queued. One that a run or a schedule refers to stays.',
    '7',
    1,
    3650,
  ),
  ARTIFACT_RETENTION_DAYS: integer('Days to keep artifacts of runs.', '30', 1, 3650),
  RUN_RETENTION_DAYS: integer('Days to keep finished runs.', '90', 1, 3650),
  AUDIT_LOG_RETENTION_DAYS: integer('Days to keep entries of the audit log.', '365', 1, 3650),
  WORKER_SLOTS: integer('Maximum concurrent runs per worker.', '4', 1, 64),
  ACCOUNT_CONCURRENCY: integer(
    'Maximum concurrent runs per account, over all workers; 0 for no limit.',
    '0',
    0,
    1_000_000,
  ),
  WORKFLOW_MEMORY_MB: integer(
    'Maximum memory of all processes of a run together, in megabytes, in addition to 64 for Node.js itself.',
    '512',
    32,
    65536,
  ),
  IDLE_PROCESSES_MB: optional(
    'Maximum memory of the processes of a worker that wait for the next run of their account, together, in megabytes; 0 for none. By default a tenth of the memory of the container or the machine, and at least 128.',
    (text, name) => readInteger(text, name, 0, 1_000_000),
  ),
  EXECUTOR_UID: optional(
    "Numeric ID of the user that executes workflows; needs a worker that runs as root. By default the worker's own user.",
    (text, name) => readInteger(text, name, 1, 2 ** 32 - 2),
  ),
  EXECUTOR_UIDS: optional(
    'Range of numeric user IDs, such as `64000-64999`. The workflows of each account run with one of them; needs a worker that runs as root. Replaces `EXECUTOR_UID`.',
    (text, name) => {
      const [, first, last] = /^(\d{1,10})-(\d{1,10})$/.exec(text)?.map(Number) ?? []
      if (first && last && first + 1 < last && last < 2 ** 32 - 1) return { first, last }
      throw new ConfigError(
        `${name} is "${text}": set it to the first and the last of at least 3 IDs, such as 64000-64999.`,
      )
    },
  ),
  EXECUTOR_ENV: optional(
    "Names of the worker's environment variables that workflows get, separated by commas, such as `SHOP_URL,MAIL_*`, in addition to those of [the environment of workflows](guides/running-in-production.md#the-environment-of-workflows).",
    (text, name) => {
      const isName = (each: string) => /^[A-Za-z_][A-Za-z0-9_]*\*?$/.test(each) && !isSecretVariable(each)
      return readList(text, name, isName, 'names of variables, separated by commas')
    },
  ),
  BROWSER_PATH: optional(
    'Chrome or Chromium executable for runs. By default an installed browser, otherwise the one that `browser install` or `npm ci` installs.',
    (text) => resolve(text),
  ),
  BROWSER_CDP_URL: secretUrl(
    'URL of a remote Chrome or Chromium for runs, by the DevTools protocol (http, https, ws or wss).',
    /^(https?|wss?):\/\//,
    'that starts with http://, https://, ws:// or wss://',
  ),
  LIVE_VIEW_ADDRESS: optional(
    'URL by which workers reach the dashboard process that has this setting, to show the browsers of running runs, such as `http://10.0.0.5:3000`. By default the port that it listens on, which only workers of the same machine reach.',
    (text, name) => {
      const url = URL.parse(text)
      if (url && /^https?:$/.test(url.protocol) && url.pathname === '/' && !url.username) return url.origin
      throw new ConfigError(
        `${name} is "${text}": set it to a URL without path and user name, such as http://10.0.0.5:3000.`,
      )
    },
  ),
  LEASE_SECONDS: integer('Seconds without a heartbeat after which a worker loses its runs.', '15', 3, 300),
  ABORT_GRACE_SECONDS: integer("Seconds from a run's abort signal until its process is killed.", '5', 1, 300),
  KEEP_ALIVE_SECONDS: integer(
    'Seconds after which an idle connection is closed: more than a [proxy](guides/reverse-proxies.md) keeps it.',
    '10',
    1,
    3600,
  ),
  DRAIN_SECONDS: integer(
    'Seconds during which a stopping process still accepts requests while `/readyz` responds 503, for a proxy to notice.',
    '0',
    0,
    300,
  ),
  SHUTDOWN_SECONDS: integer('Seconds that requests and runs have to finish when a process stops.', '10', 1, 3600),
  ENCRYPTION_KEY: optional(
    `Key that encrypts stored secrets: ${keyBytes} random bytes in base64. By default generated in \`DATA_DIR\`.`,
    // The error does not repeat the text, which may be almost a key.
    (text, name) => {
      const key = parseKey(text)
      if (key) return key
      throw new ConfigError(
        `${name} is not ${keyBytes} bytes in base64: create a key with \`openssl rand -base64 ${keyBytes}\`.`,
      )
    },
  ),
  ENCRYPTION_KEY_PREVIOUS: optional(
    'Former values of `ENCRYPTION_KEY`, separated by commas, to decrypt data that they encrypted.',
    (text, name) =>
      text.split(',').map((part) => {
        const key = parseKey(part)
        if (key) return key
        throw new ConfigError(
          `${name} contains an invalid key: set it to keys of ${keyBytes} bytes in base64, separated by commas.`,
        )
      }),
  ),
  SECRETS_DIR: optional(
    'Directory that has a file of each secret, as orchestrators mount them, for [secrets](guides/secrets-and-settings.md) that an account itself lacks. `{account}` in it stands for the id of the account; without it, all accounts get the same secrets.',
    (text) => resolve(text),
  ),
  SECRETS_FILE: optional('JSON file with an object of secrets by their names, in place of `SECRETS_DIR`.', (text) =>
    resolve(text),
  ),
  VAULT_ADDR: secretUrl(
    'HashiCorp Vault that has secrets, in place of `SECRETS_DIR`, such as `https://vault.example.com:8200`.',
    /^https?:\/\//,
    'that starts with http:// or https://',
  ),
  VAULT_TOKEN: optional('Token for `VAULT_ADDR`.', (text) => text),
  VAULT_TOKEN_FILE: optional(
    'File with the token for `VAULT_ADDR`, which an agent may replace, in place of `VAULT_TOKEN`.',
    (text) => resolve(text),
  ),
  VAULT_NAMESPACE: optional('Namespace of `VAULT_ADDR`.', (text) => text),
  VAULT_SECRETS_PATH: optional(
    'Mount of a key-value engine of version 2, and the path of the secret whose keys are the names, such as `secret/execution-service/{account}`.',
    (text, name) => {
      const segments = text.split('/')
      const isSegment = (each: string) => each !== '' && each !== '.' && each !== '..'
      if (segments.length > 1 && segments.every(isSegment)) return text
      throw new ConfigError(`${name} is "${text}": set it to a mount and a path, such as secret/execution-service.`)
    },
  ),
  WEBHOOK_PRIVATE_ADDRESSES: optional(
    'Private IP addresses or ranges, separated by commas, that webhooks may reach, also with `http:`, such as `10.1.0.0/16`. By default webhooks reach public addresses only.',
    (text, name) => {
      const ranges = new BlockList()
      for (const range of text.split(',').map((part) => part.trim())) addRange(ranges, range, name)
      return ranges
    },
  ),
  SMTP_URL: secretUrl(
    'SMTP server that sends the emails of [notifications](guides/notifications.md), such as `smtps://user:password@mail.example.com`. With `smtp:`, the connection is encrypted if the server offers STARTTLS; `?requireTLS=true` requires it. By default no emails are sent.',
    /^smtps?:\/\//,
    'that starts with smtp:// or smtps://',
  ),
  SMTP_FROM: optional(
    'Email address that emails come from, such as `runs@example.com`. `SMTP_URL` needs it.',
    (text, name) => {
      if (/^[^\s@<>",;:\\()[\]]{1,64}@[A-Za-z0-9.-]{1,190}$/.test(text)) return text
      throw new ConfigError(
        `${name} is "${text}": set it to an email address without a name, such as runs@example.com.`,
      )
    },
  ),
  SMTP_RECIPIENT_DOMAINS: optional(
    'Domains, separated by commas, to whose addresses emails may be sent, such as `example.com`. By default members can have notifications sent to any address.',
    (text, name) =>
      readList(text.toLowerCase(), name, (domain) => /^[a-z0-9.-]{1,190}$/.test(domain), 'domains without @'),
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: secretUrl(
    'Collector to send traces to, by OTLP over HTTP. By default tracing is off.',
    /^https?:\/\//,
    'that starts with http:// or https://',
  ),
  OTEL_SERVICE_NAME: text('Service name in traces.', 'execution-service'),
  UNDOCUMENTED_RESPONSES: {
    description:
      'What happens to a response that does not match its OpenAPI document. It is logged and counted, and with `send` it is sent; with `refuse`, for tests of the service, the caller gets 500.',
    default: 'send',
    read: (text: string, name: string) => {
      if (text === 'send' || text === 'refuse') return text
      throw new ConfigError(`${name} is "${text}": set it to send or refuse.`)
    },
  },
  LOG_LEVEL: {
    description: `Minimum log level: ${logLevels.join(', ')}.`,
    default: 'info',
    read: (text: string, name: string) => {
      if (logLevels.includes(text)) return text
      throw new ConfigError(`${name} is "${text}": set it to one of ${logLevels.join(', ')}.`)
    },
  },
} satisfies Record<string, Setting<unknown>>

type Settings = typeof settings

export type Config = { readonly [Name in keyof Settings]: ReturnType<Settings[Name]['read']> }

/** Reads the configuration. An empty variable counts as unset. @throws {ConfigError} for the first invalid setting. */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  const entries = Object.entries(settings).map(([name, setting]) => {
    const text = environment[name] || setting.default
    return [name, text === undefined ? undefined : setting.read(text, name)]
  })
  const config = Object.freeze(Object.fromEntries(entries)) as Config
  if (!config.ENCRYPTION_KEY && config.ENCRYPTION_KEY_PREVIOUS) {
    throw new ConfigError(
      'ENCRYPTION_KEY_PREVIOUS is set without ENCRYPTION_KEY: set ENCRYPTION_KEY to the current key.',
    )
  }
  requireDifferentPorts(config)
  requireOneSecretStore(config)
  requireCompleteSignIn(config)
  requireSender(config)
  requireBucketKey(config)
  if (config.BROWSER_PATH && config.BROWSER_CDP_URL) {
    throw new ConfigError('BROWSER_PATH and BROWSER_CDP_URL are both set: unset one of them.')
  }
  return config
}

function requireSender({ SMTP_URL, SMTP_FROM }: Config): void {
  if (SMTP_URL && !SMTP_FROM)
    throw new ConfigError('SMTP_URL is set without SMTP_FROM: set SMTP_FROM to an email address.')
  if (SMTP_FROM && !SMTP_URL)
    throw new ConfigError('SMTP_FROM is set without SMTP_URL: set SMTP_URL, or unset SMTP_FROM.')
}

/** `undefined` for a path that is no text, or has an encoded slash. */
function readFilePath(url: URL): string | undefined {
  try {
    return fileURLToPath(url)
  } catch {
    return undefined
  }
}

/** @throws {ConfigError} */
function readBlobLocation(text: string, name: string): BlobLocation {
  const url = URL.parse(text)
  const path = url?.protocol === 'file:' && url.host === '' && readFilePath(url)
  if (path) return { kind: 'directory', path }
  const parameters = [...(url?.searchParams.keys() ?? [])]
  const region = url?.searchParams.get('region') ?? 'us-east-1'
  const endpoint = URL.parse(url?.searchParams.get('endpoint') ?? `https://s3.${region}.amazonaws.com`)
  const isKnown = parameters.every((each) => each === 'endpoint' || each === 'region')
  const isBucket = url?.protocol === 's3:' && url.host !== '' && !url.username && !url.password && !url.hash
  const isEndpoint = /^https?:$/.test(endpoint?.protocol ?? '') && !endpoint?.username && !endpoint?.search
  if (!url || !endpoint || !isBucket || !isKnown || !isEndpoint || !/^[a-z0-9-]{1,50}$/.test(region)) {
    throw new ConfigError(
      `${name} is invalid: set it to file:///directory, or to s3://bucket/prefix with \`region\` and, except for AWS, \`endpoint\` as parameters.`,
    )
  }
  const bucketPath = `${endpoint.pathname}/${url.host}${url.pathname}`.replace(/\/+/g, '/').replace(/\/$/, '')
  return { kind: 'bucket', url: `${endpoint.origin}${bucketPath}`, region }
}

function requireBucketKey({ ARTIFACTS_URL: location, ...config }: Config): void {
  const names = ['ARTIFACTS_ACCESS_KEY_ID', 'ARTIFACTS_SECRET_ACCESS_KEY'] as const
  const isBucket = location?.kind === 'bucket'
  const wrong = names.find((name) => (config[name] !== undefined) !== isBucket)
  if (!wrong) return
  if (isBucket) throw new ConfigError(`ARTIFACTS_URL is a bucket, but ${wrong} is not set: set it to its access key.`)
  throw new ConfigError(`${wrong} is set, but ARTIFACTS_URL is no bucket: unset ${wrong}, or set ARTIFACTS_URL.`)
}

function requireOneSecretStore(config: Config): void {
  const { SECRETS_DIR, SECRETS_FILE, VAULT_ADDR, VAULT_TOKEN, VAULT_TOKEN_FILE, VAULT_SECRETS_PATH } = config
  const stores = Object.entries({ SECRETS_DIR, SECRETS_FILE, VAULT_ADDR }).flatMap(([name, value]) =>
    value ? name : [],
  )
  if (stores.length > 1) throw new ConfigError(`${stores.join(' and ')} are both set: unset one of them.`)
  if (!VAULT_ADDR) {
    const [useless] =
      Object.entries({ VAULT_TOKEN, VAULT_TOKEN_FILE, VAULT_SECRETS_PATH }).find(([, each]) => each) ?? []
    if (useless) throw new ConfigError(`${useless} is set without VAULT_ADDR: set VAULT_ADDR, or unset ${useless}.`)
    return
  }
  if (VAULT_TOKEN && VAULT_TOKEN_FILE)
    throw new ConfigError('VAULT_TOKEN and VAULT_TOKEN_FILE are both set: unset one of them.')
  if (!VAULT_TOKEN && !VAULT_TOKEN_FILE)
    throw new ConfigError('VAULT_ADDR is set without a token: set VAULT_TOKEN or VAULT_TOKEN_FILE.')
  if (!VAULT_SECRETS_PATH)
    throw new ConfigError('VAULT_ADDR is set without VAULT_SECRETS_PATH: set it to a mount and a path.')
}

const secretVariables = [
  'ARTIFACTS_SECRET_ACCESS_KEY',
  'BROWSER_CDP_URL',
  'DATABASE_URL',
  'ENCRYPTION_KEY',
  'ENCRYPTION_KEY_PREVIOUS',
  'OIDC_CLIENT_SECRET',
  'SMTP_URL',
  'VAULT_TOKEN',
]

/** Variables that workflows get without EXECUTOR_ENV: what programs need to find each other, proxies and certificates. */
const executorVariables = [
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LANGUAGE', 'LC_*', 'TZ', 'TMPDIR', 'LD_LIBRARY_PATH'],
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy'],
  ...['NODE_ENV', 'NODE_EXTRA_CA_CERTS', 'NODE_COMPILE_CACHE', 'SSL_CERT_DIR', 'SSL_CERT_FILE', 'BROWSER_PATH'],
]

/** The environment for processes that run code of workflows. */
export function executorEnvironment(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const named = [...executorVariables, ...splitList(environment.EXECUTOR_ENV ?? '')]
  const isNamed = (name: string) =>
    named.some((each) => (each.endsWith('*') ? name.startsWith(each.slice(0, -1)) : name === each))
  const entries = Object.entries(environment).filter(([name]) => isNamed(name) && !isSecretVariable(name))
  return Object.fromEntries(entries)
}

/** The environment for a browser. */
export function environmentWithoutSecrets(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !isSecretVariable(name)))
}

export function isSecretVariable(name: string): boolean {
  // The headers of OpenTelemetry's exporter contain its credentials.
  return secretVariables.includes(name) || name.startsWith('OTEL_EXPORTER_')
}

function requireDifferentPorts(config: Config): void {
  const names = ['DASHBOARD_PORT', 'EXECUTION_PORT', 'BROWSER_CONTEXT_PORT', 'MANAGEMENT_PORT'] as const
  for (const [index, name] of names.entries()) {
    const other = names.slice(index + 1).find((each) => config[each] === config[name] && config[name] !== 0)
    if (other) throw new ConfigError(`${name} and ${other} are both ${config[name]}: set them to different ports.`)
  }
}
