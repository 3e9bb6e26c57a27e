/** The configuration: defaults, valid values, and errors that name the setting. */
import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { environmentWithoutSecrets, executorEnvironment, readConfig, settings } from '../../src/config/config.ts'
import { ConfigError } from '../../src/config/setting-kinds.ts'
import { describeDatabase } from '../../src/storage/postgres/postgres-schema.ts'

test('every setting has a default or is optional', () => {
  expect(readConfig({})).toEqual({
    HOST: '127.0.0.1',
    MANAGEMENT_HOST: undefined,
    ALLOWED_HOSTS: undefined,
    CORS_ORIGINS: undefined,
    DASHBOARD_PORT: 3000,
    DASHBOARD_URL: undefined,
    PROXY_HOPS: 0,
    EXECUTION_PORT: 3001,
    BROWSER_CONTEXT_PORT: 3002,
    MANAGEMENT_PORT: 3003,
    EXECUTION_URL: undefined,
    BROWSER_CONTEXT_URL: undefined,
    DATA_DIR: resolve('data'),
    WORKFLOWS_DIR: undefined,
    API_DEPLOYMENTS: 'off',
    RATE_LIMIT_PER_MINUTE: 6000,
    QUEUED_RUNS_MAX: 10000,
    WAITING_RUNS_MAX: 100000,
    ENVIRONMENTS_MAX: 10,
    SCHEDULES_MAX: 1000,
    SESSION_IDLE_MINUTES: 1440,
    OIDC_GROUPS_CLAIM: 'groups',
    OIDC_SCOPES: 'openid profile email',
    OIDC_NAME: 'your identity provider',
    PASSWORD_SIGN_IN: 'on',
    STORAGE_QUOTA_MB: 10240,
    BROWSER_CONTEXT_VERSIONS: 5,
    FILE_MAX_MB: 100,
    FILE_RETENTION_DAYS: 7,
    ARTIFACT_RETENTION_DAYS: 30,
    RUN_RETENTION_DAYS: 90,
    AUDIT_LOG_RETENTION_DAYS: 365,
    WORKER_SLOTS: 4,
    WORKFLOW_MEMORY_MB: 512,
    BROWSER_PATH: undefined,
    BROWSER_CDP_URL: undefined,
    LEASE_SECONDS: 15,
    ABORT_GRACE_SECONDS: 5,
    KEEP_ALIVE_SECONDS: 10,
    DRAIN_SECONDS: 0,
    SHUTDOWN_SECONDS: 10,
    DATABASE_URL: undefined,
    ACCOUNT_CONCURRENCY: 0,
    DATABASE_CONNECTIONS: 10,
    ENCRYPTION_KEY: undefined,
    ENCRYPTION_KEY_PREVIOUS: undefined,
    OTEL_EXPORTER_OTLP_ENDPOINT: undefined,
    OTEL_SERVICE_NAME: 'execution-service',
    UNDOCUMENTED_RESPONSES: 'send',
    LOG_LEVEL: 'info',
  })
})

const bucketKey = { ARTIFACTS_ACCESS_KEY_ID: 'id', ARTIFACTS_SECRET_ACCESS_KEY: 'secret' }

test.each([
  ['s3://bucket', 'https://s3.us-east-1.amazonaws.com/bucket', 'us-east-1'],
  ['s3://bucket/a/b/?region=eu-central-1', 'https://s3.eu-central-1.amazonaws.com/bucket/a/b', 'eu-central-1'],
  ['s3://bucket/a?endpoint=http://127.0.0.1:9000', 'http://127.0.0.1:9000/bucket/a', 'us-east-1'],
  ['s3://bucket?endpoint=https://s3.example.com/path/&region=auto', 'https://s3.example.com/path/bucket', 'auto'],
])('ARTIFACTS_URL may be the bucket %s', (url, expected, region) => {
  const { ARTIFACTS_URL } = readConfig({ ARTIFACTS_URL: url, ...bucketKey })
  expect(ARTIFACTS_URL).toEqual({ kind: 'bucket', url: expected, region })
})

test('ARTIFACTS_URL may be a directory', () => {
  const { ARTIFACTS_URL } = readConfig({ ARTIFACTS_URL: 'file:///var/lib/a%20b' })
  expect(ARTIFACTS_URL).toEqual({ kind: 'directory', path: '/var/lib/a b' })
})

test.each([
  { ARTIFACTS_URL: 'https://s3.example.com/bucket', ...bucketKey },
  { ARTIFACTS_URL: 's3://user:password@bucket', ...bucketKey },
  { ARTIFACTS_URL: 's3://bucket?acl=public', ...bucketKey },
  { ARTIFACTS_URL: 's3://bucket?endpoint=ftp://example.com', ...bucketKey },
  { ARTIFACTS_URL: 'file://host/directory' },
  { ARTIFACTS_URL: 'file:///a%2Fb' },
  { ARTIFACTS_URL: 'file:///a%zz' },
])('a wrong ARTIFACTS_URL is refused without repeating it: $ARTIFACTS_URL', (environment) => {
  expect(() => readConfig(environment)).toThrow(/^ARTIFACTS_URL is invalid: set it to file:[^@]*$/)
})

test('a bucket needs an access key, and nothing else does', () => {
  const { ARTIFACTS_ACCESS_KEY_ID } = bucketKey
  expect(() => readConfig({ ARTIFACTS_URL: 's3://bucket', ARTIFACTS_ACCESS_KEY_ID })).toThrow(
    'ARTIFACTS_URL is a bucket, but ARTIFACTS_SECRET_ACCESS_KEY is not set: set it to its access key.',
  )
  expect(() => readConfig({ ARTIFACTS_ACCESS_KEY_ID })).toThrow(
    'ARTIFACTS_ACCESS_KEY_ID is set, but ARTIFACTS_URL is no bucket: unset ARTIFACTS_ACCESS_KEY_ID, or set ARTIFACTS_URL.',
  )
})

test('an empty variable counts as unset', () => {
  const empty = Object.fromEntries(Object.keys(settings).map((name) => [name, '']))
  expect(readConfig(empty)).toEqual(readConfig({}))
})

test('the configuration is frozen', () => {
  const config = readConfig({})
  expect(() => Object.assign(config, { HOST: '0.0.0.0' })).toThrow(TypeError)
})

const key = randomBytes(32)

test.each<[keyof typeof settings, string, unknown]>([
  ['HOST', '0.0.0.0', '0.0.0.0'],
  ['EXECUTION_PORT', '0', 0],
  ['MANAGEMENT_PORT', '65535', 65535],
  ['EXECUTION_URL', 'https://api.example.com/', 'https://api.example.com'],
  ['BROWSER_CONTEXT_URL', 'http://localhost:8080/', 'http://localhost:8080'],
  ['CORS_ORIGINS', 'https://a.example.com, http://localhost:5173,', ['https://a.example.com', 'http://localhost:5173']],
  ['DATA_DIR', 'some/where', resolve('some/where')],
  ['WORKFLOWS_DIR', '/workflows', '/workflows'],
  ['WORKER_SLOTS', '64', 64],
  ['BROWSER_PATH', '/opt/chrome', '/opt/chrome'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://localhost:4318', 'http://localhost:4318'],
  ['OTEL_SERVICE_NAME', 'runs', 'runs'],
  ['BROWSER_CDP_URL', 'http://127.0.0.1:9222', 'http://127.0.0.1:9222'],
  ['BROWSER_CDP_URL', 'wss://browsers.example.com/?token=t', 'wss://browsers.example.com/?token=t'],
  ['LEASE_SECONDS', '3', 3],
  ['ENCRYPTION_KEY', key.toString('base64'), key],
  ['LOG_LEVEL', 'silent', 'silent'],
])('%s=%s is valid', (name, text, value) => {
  expect(readConfig({ [name]: text })[name]).toEqual(value)
})

const url = 'set it to a URL that starts with http:// or https://.'

test.each<[string, string, string]>([
  ['EXECUTION_PORT', '65536', 'set it to a whole number from 0 to 65535.'],
  ['EXECUTION_PORT', '-1', 'set it to a whole number from 0 to 65535.'],
  ['BROWSER_CONTEXT_PORT', '3002x', 'set it to a whole number from 0 to 65535.'],
  ['MANAGEMENT_PORT', '0x10', 'set it to a whole number from 0 to 65535.'],
  ['MANAGEMENT_PORT', ' ', 'set it to a whole number from 0 to 65535.'],
  ['EXECUTION_URL', 'api.example.com', url],
  ['EXECUTION_URL', 'ftp://example.com', url],
  ['BROWSER_CONTEXT_URL', 'http://', url],
  [
    'BROWSER_CONTEXT_URL',
    'https://example.com/contexts',
    'give the Browser Context API a host name of its own, such as https://example.com.',
  ],
  ['DASHBOARD_URL', 'https://a.com/?a', 'give the dashboard a host name of its own, such as https://a.com.'],
  ['WORKER_SLOTS', '0', 'set it to a whole number from 1 to 64.'],
  ['WORKER_SLOTS', '65', 'set it to a whole number from 1 to 64.'],
  ['WORKER_SLOTS', '1.5', 'set it to a whole number from 1 to 64.'],
  ['WORKER_SLOTS', '1e1', 'set it to a whole number from 1 to 64.'],
  ['WORKFLOW_MEMORY_MB', '31', 'set it to a whole number from 32 to 65536.'],
  ['LEASE_SECONDS', '2', 'set it to a whole number from 3 to 300.'],
  ['LEASE_SECONDS', '301', 'set it to a whole number from 3 to 300.'],
  ['ABORT_GRACE_SECONDS', '0', 'set it to a whole number from 1 to 300.'],
  ['SHUTDOWN_SECONDS', '3601', 'set it to a whole number from 1 to 3600.'],
  ['LOG_LEVEL', 'loud', 'set it to one of fatal, error, warn, info, debug, trace, silent.'],
  ['LOG_LEVEL', 'constructor', 'set it to one of fatal, error, warn, info, debug, trace, silent.'],
])('%s=%s is rejected with one sentence that says what to set', (name, text, rule) => {
  expect(() => readConfig({ [name]: text })).toThrow(new ConfigError(`${name} is "${text}": ${rule}`))
})

test.each(['c2hvcnQ=', key.toString('hex'), randomBytes(33).toString('base64'), 'not base64'])(
  'an invalid ENCRYPTION_KEY is rejected without its value (%s)',
  (text) => {
    const read = () => readConfig({ ENCRYPTION_KEY: text })
    const sentence = 'ENCRYPTION_KEY is not 32 bytes in base64: create a key with `openssl rand -base64 32`.'
    expect(read).toThrow(new ConfigError(sentence))
  },
)

test.each([
  '*',
  'null',
  'app.example.com',
  'https://a.example.com/',
  'https://A.example.com',
  'https://a.example.com:443',
  'file:///',
])('CORS_ORIGINS=%s is rejected: no page has this origin', (origin) => {
  const fix = 'set it to origins without a path, such as https://app.example.com.'
  const read = () => readConfig({ CORS_ORIGINS: `https://a.example.com, ${origin}` })
  expect(read).toThrow(new ConfigError(`CORS_ORIGINS contains "${origin}": ${fix}`))
})

test('ENCRYPTION_KEY_PREVIOUS is a list of keys and requires ENCRYPTION_KEY', () => {
  const [ENCRYPTION_KEY, other] = [key.toString('base64'), randomBytes(32)]
  const previous = `${ENCRYPTION_KEY}, ${other.toString('base64')}`
  const read = (ENCRYPTION_KEY_PREVIOUS: string) => readConfig({ ENCRYPTION_KEY, ENCRYPTION_KEY_PREVIOUS })
  expect(read(previous).ENCRYPTION_KEY_PREVIOUS).toEqual([key, other])
  for (const invalid of [`${previous},`, `${previous};${ENCRYPTION_KEY}`, 'c2hvcnQ=']) {
    expect(() => read(invalid)).toThrow(
      new ConfigError(
        'ENCRYPTION_KEY_PREVIOUS contains an invalid key: set it to keys of 32 bytes in base64, separated by commas.',
      ),
    )
  }
  expect(() => readConfig({ ENCRYPTION_KEY_PREVIOUS: previous })).toThrow(
    new ConfigError('ENCRYPTION_KEY_PREVIOUS is set without ENCRYPTION_KEY: set ENCRYPTION_KEY to the current key.'),
  )
})

test('two surfaces cannot have the same port', () => {
  const read = () => readConfig({ BROWSER_CONTEXT_PORT: '4000', MANAGEMENT_PORT: '4000' })
  expect(read).toThrow(
    new ConfigError('BROWSER_CONTEXT_PORT and MANAGEMENT_PORT are both 4000: set them to different ports.'),
  )
  expect(() => readConfig({ EXECUTION_PORT: '3002' })).toThrow(/^EXECUTION_PORT and BROWSER_CONTEXT_PORT are both 3002/)
  // The system chooses a free port for each.
  expect(readConfig({ EXECUTION_PORT: '0', MANAGEMENT_PORT: '0' })).toMatchObject({
    EXECUTION_PORT: 0,
    MANAGEMENT_PORT: 0,
  })
})

test('an invalid DATABASE_URL is rejected without its value, which may contain a password', () => {
  for (const url of ['mysql://root:secret@localhost/x', 'localhost:5432', 'postgres']) {
    expect(() => readConfig({ DATABASE_URL: url })).toThrow(
      new ConfigError('DATABASE_URL is invalid: set it to a URL such as postgres://user:password@host/database.'),
    )
  }
  expect(readConfig({ DATABASE_URL: 'postgresql://localhost/x' }).DATABASE_URL).toBe('postgresql://localhost/x')
})

test.each([
  ['postgres://u:secret#1@host/db', 'has # in its user name or password: write %23 for each #.'],
  ['postgres://u:1#2@host/db', 'has # in its user name or password: write %23 for each #.'],
  ['postgres://u:secret/1@host:5432/db', 'has / in its user name or password: write %2F for each /.'],
  ['postgres://u:1/2@host/db', 'has / in its user name or password: write %2F for each /.'],
  ['postgres://u:1?2@host/db', 'has ? in its user name or password: write %3F for each ?.'],
  ['postgres://u:100%@host/db', 'has % in its user name or password: write %25 for each %.'],
  ['postgres://u:p@a:1,b:1/db', 'names several hosts: set it to one that leads to the primary.'],
  ['postgres://u:p@a,b/db', 'names several hosts: set it to one that leads to the primary.'],
  [
    'postgres://u:p@host/db?sslmode=on',
    'has an unknown sslmode: set it to one of disable, allow, prefer, require, verify-ca, verify-full.',
  ],
  [
    'postgres://host/db?sslmode=verify-ca',
    'has sslmode=verify-ca without sslrootcert: add the path of its certificate, or use verify-full.',
  ],
])('DATABASE_URL=%s is refused with the part to change', (DATABASE_URL, problem) => {
  expect(() => readConfig({ DATABASE_URL })).toThrow(new ConfigError(`DATABASE_URL ${problem}`))
})

test.each([
  ['postgres://u:p@/db?host=/cloudsql/project:region:name', '/cloudsql/project:region:name:5432/db'],
  ['postgres://u:p@localhost/db?host=/tmp/sock&port=5433', '/tmp/sock:5433/db'],
  ['postgresql://%2Fvar%2Frun%2Fpostgresql/db', '/var/run/postgresql:5432/db'],
  ['postgres://u%40server:p@ss@host:6432/db?sslmode=require', 'host:6432/db'],
  ['postgres://host/db?user=u@server&options=-c%20x%3D1', 'host:5432/db'],
  ['postgres:///db', 'localhost:5432/db'],
  ['postgres://u:p@[::1]/db', '[::1]:5432/db'],
])('DATABASE_URL=%s names the database %s', (given, place) => {
  const { DATABASE_URL = '' } = readConfig({ DATABASE_URL: given })
  expect(describeDatabase(DATABASE_URL)).toBe(place)
})

test('a variable of a Service of Kubernetes is no port, and the error says why it is there', () => {
  const sentence =
    'BROWSER_CONTEXT_PORT is "tcp://10.0.0.1:80", which Kubernetes sets for its Service browser-context: set enableServiceLinks to false in the pod, or BROWSER_CONTEXT_PORT to a port.'
  expect(() => readConfig({ BROWSER_CONTEXT_PORT: 'tcp://10.0.0.1:80' })).toThrow(new ConfigError(sentence))
})

test('every setting is described in sentences', () => {
  for (const [name, { description }] of Object.entries(settings)) expect(description, name).toMatch(/^[A-Z].*\.$/)
})

test('an invalid BROWSER_CDP_URL is rejected without its value, which may contain a token', () => {
  expect(() => readConfig({ BROWSER_CDP_URL: 'browsers.example.com?token=t' })).toThrow(
    new ConfigError('BROWSER_CDP_URL is invalid: set it to a URL that starts with http://, https://, ws:// or wss://.'),
  )
})

test('BROWSER_PATH and BROWSER_CDP_URL exclude each other', () => {
  expect(() => readConfig({ BROWSER_PATH: '/opt/chrome', BROWSER_CDP_URL: 'http://127.0.0.1:9222' })).toThrow(
    new ConfigError('BROWSER_PATH and BROWSER_CDP_URL are both set: unset one of them.'),
  )
})

test('an invalid OTEL_EXPORTER_OTLP_ENDPOINT is rejected without its value, which may contain a password', () => {
  expect(() => readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:secret@host' })).toThrow(
    new ConfigError('OTEL_EXPORTER_OTLP_ENDPOINT is invalid: set it to a URL that starts with http:// or https://.'),
  )
})

test('browsers do not get the credentials of the trace exporter', () => {
  const environment = { OTEL_EXPORTER_OTLP_HEADERS: 'authorization=a-token', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a' }
  expect(environmentWithoutSecrets({ ...environment, PATH: '/bin' })).toEqual({ PATH: '/bin' })
})

test('workflows get the variables that EXECUTOR_ENV names, a documented few, and no others', () => {
  const environment = {
    PATH: '/bin',
    LC_ALL: 'C',
    AWS_SECRET_ACCESS_KEY: 'a',
    SHOP_URL: 'b',
    MAIL_HOST: 'c',
    MAIL: 'd',
  }
  expect(executorEnvironment(environment)).toEqual({ PATH: '/bin', LC_ALL: 'C' })
  const named = { ...environment, DATABASE_URL: 'postgres://a', EXECUTOR_ENV: 'SHOP_URL, MAIL_*,DATABASE_*' }
  expect(executorEnvironment(named)).toEqual({ PATH: '/bin', LC_ALL: 'C', SHOP_URL: 'b', MAIL_HOST: 'c' })
})

test.each(['1A', 'A B', 'A=b', 'ENCRYPTION_KEY', '*'])('EXECUTOR_ENV with %j is refused', (text) => {
  expect(() => readConfig({ EXECUTOR_ENV: text })).toThrow(
    new ConfigError(`EXECUTOR_ENV contains "${text}": set it to names of variables, separated by commas.`),
  )
})

test.each([
  [
    { PASSWORD_SIGN_IN: 'off' },
    'PASSWORD_SIGN_IN is off without OIDC_ISSUER: set OIDC_ISSUER, so that people can sign in.',
  ],
  [{ OIDC_CLIENT_ID: 'x' }, 'OIDC_CLIENT_ID is set without OIDC_ISSUER: set OIDC_ISSUER, or unset OIDC_CLIENT_ID.'],
  [{ OIDC_ISSUER: 'http://login.example' }, /^OIDC_ISSUER is "http:\/\/login.example": set it to/],
  [
    { OIDC_ISSUER: 'https://login.example', OIDC_CLIENT_ID: 'x' },
    'OIDC_ISSUER is set without OIDC_ACCOUNT: set OIDC_ACCOUNT, too.',
  ],
  [{ OIDC_ROLES: '{"a":"owner"}' }, /^OIDC_ROLES is invalid: set it to a JSON object of roles/],
])('an incomplete sign-in by a provider is refused: %j', (environment, message) => {
  expect(() => readConfig(environment)).toThrow(message)
})
