/**
 * `doctor`: runs all checks on one installation, whatever earlier checks find, and prints each finding with what to do
 * about it.
 */

import { styleText } from 'node:util'
import packageJson from '../../../package.json' with { type: 'json' }
import type { Config, settings } from '../../config/config.ts'
import type { Workflow } from '../../domain/workflows/workflow.ts'
import { describeCauses } from '../../storage/error-causes.ts'
import { inspectDatabase } from '../../storage/postgres/postgres-inspection.ts'
import { type Inspection, inspectSqliteStore } from '../../storage/sqlite/sqlite-inspection.ts'
import type { Transaction } from '../../storage/store.ts'
import { print } from '../output.ts'
import { checkArtifacts } from './artifacts.ts'
import { checkBrowser, checkIsolation, ExaminedBrowser } from './browser.ts'
import {
  checkConfiguration,
  checkWorkflows,
  countBrowserWorkflows,
  type LoadedWorkflows,
  loadWorkflows,
  type ReadConfiguration,
  readConfiguration,
  readDeployedWorkflows,
} from './configuration.ts'
import {
  checkCommit,
  checkConnections,
  checkDatabase,
  checkDatabaseDurability,
  checkDatabasePrivileges,
  checkDatabaseSize,
  checkDatabaseStore,
  checkSnapshots,
  type OpenedDatabase,
} from './database.ts'
import {
  checkDataDirectory,
  checkDisk,
  checkDurability,
  checkFileSystem,
  checkFreeSpace,
  checkStore,
  checkStoreSize,
  statFileSystem,
} from './embedded-store.ts'
import { checkEncryptionKey } from './encryption-key.ts'
import { type Finding, fail, notChecked, type Opened, ok, pluralize, type Status, shortMessage } from './finding.ts'
import { checkIdentityProvider, checkMail, checkProxy, checkSecrets, checkTraces } from './outside.ts'
import { checkPort, checkService, checkWorkers, findService, type PortName, type ServiceState } from './service.ts'

export async function doctor(options: { json?: boolean }): Promise<void> {
  const results: Result[] = []
  for await (const result of examine(process.env)) {
    results.push(result)
    // Printed one by one, because some checks take seconds.
    if (!options.json) print(formatResult(result))
  }
  const failed = results.some(({ status }) => status === 'fail')
  if (options.json) print(JSON.stringify({ ok: !failed, version: packageJson.version, checks: results }))
  else print(`\n${summarize(results)}`)
  process.exitCode = failed ? 1 : 0
}

const nameWidth = 'BROWSER_CONTEXT_PORT'.length
const colors = { ok: 'green', warn: 'yellow', fail: 'red' } as const satisfies Record<Status, string>

function formatResult({ status, name, detail, advice }: Result): string {
  // Uncoloured when standard output is not a terminal or NO_COLOR is set.
  const colored = styleText(colors[status], status.padEnd(4), { stream: process.stdout })
  return `${colored}  ${name.padEnd(nameWidth)}  ${advice === null ? detail : `${detail}. ${advice}`}`
}

function summarize(results: readonly Result[]): string {
  const count = (wanted: Status) => results.filter(({ status }) => status === wanted).length
  const [failures, warnings] = [count('fail'), count('warn')]
  if (failures + warnings === 0) return 'No problems found.'
  const counts = [failures > 0 && pluralize(failures, 'failure'), warnings > 0 && pluralize(warnings, 'warning')]
  return `${counts.filter(Boolean).join(' and ')} in ${results.length} checks.`
}

export interface Result extends Finding {
  name: string
}

/** @param now the clock; replaced by tests. */
export async function* examine(environment: NodeJS.ProcessEnv, now?: () => number): AsyncGenerator<Result> {
  const installation = openInstallation(environment, now)
  try {
    for (const check of checksFor(installation.config)) {
      yield { name: check.name, ...(await runCheck(check, installation)) }
    }
  } finally {
    await installation.close()
  }
}

async function runCheck({ variables, find }: Check, installation: Installation): Promise<Finding> {
  const invalid = variables.filter((name) => installation.configuration.invalid.has(name))
  if (invalid.length > 0)
    return notChecked(`${invalid.join(' and ')} ${invalid.length === 1 ? 'is' : 'are'} invalid`, 'the configuration')
  try {
    return await find(installation)
  } catch (error) {
    return fail(`the check failed (${shortMessage(error)})`, 'Fix this and run doctor again.')
  }
}

/** The installation that is examined. Each part is read once, on first use. */
interface Installation {
  environment: NodeJS.ProcessEnv
  configuration: ReadConfiguration
  config: Config
  now(): number
  embeddedStore(): Promise<Opened<Inspection>>
  database(): Promise<OpenedDatabase>
  store(): Promise<Opened>
  /** The workflows of WORKFLOWS_DIR. */
  workflows(): Promise<LoadedWorkflows>
  deployed(): Promise<Workflow[]>
  service(): Promise<ServiceState>
  browser: ExaminedBrowser
  close(): Promise<void>
}

function openInstallation(environment: NodeJS.ProcessEnv, now: () => number = Date.now): Installation {
  const configuration = readConfiguration(environment)
  const { config } = configuration
  const { DATABASE_URL: url } = config
  const browser = new ExaminedBrowser({ path: config.BROWSER_PATH, cdpUrl: config.BROWSER_CDP_URL })
  const embeddedStore = once(() => openEmbeddedStore(config.DATA_DIR))
  const database = once(() => openDatabase(url ?? ''))
  const store = url === undefined ? embeddedStore : async () => initializedStore(await database())
  return {
    environment,
    configuration,
    config,
    now,
    embeddedStore,
    database,
    store,
    workflows: once(() => loadWorkflows(config)),
    deployed: once(async () => readDeployedWorkflows(await store())),
    service: once(() => findService(config)),
    browser,
    async close() {
      await browser.close()
      const opened = await (url === undefined ? embeddedStore() : database())
      if ('inspection' in opened) await opened.inspection?.close()
    },
  }
}

export async function openEmbeddedStore(directory: string): Promise<Opened<Inspection>> {
  try {
    return { inspection: await inspectSqliteStore(directory) }
  } catch (error) {
    return { error: shortMessage(error), cause: error }
  }
}

export async function openDatabase(url: string): Promise<OpenedDatabase> {
  try {
    return { inspection: await inspectDatabase(url) }
  } catch (error) {
    return { error: describeCauses(error) }
  }
}

/** A database without the service's tables has no store yet. */
function initializedStore(opened: OpenedDatabase): Opened {
  return 'inspection' in opened && !opened.inspection?.isInitialized ? { inspection: undefined } : opened
}

function once<Result>(read: () => Promise<Result>): () => Promise<Result> {
  let result: Promise<Result> | undefined
  return () => {
    result ??= read()
    return result
  }
}

// The list of all checks.

type Variable = keyof typeof settings

interface Check {
  name: string
  /** The check is skipped when one of these variables is invalid. */
  variables: readonly Variable[]
  find(installation: Installation): Finding | Promise<Finding>
}

function check(name: string, variables: readonly Variable[], find: Check['find']): Check {
  return { name, variables, find }
}

/** Skipped when DATABASE_URL is invalid, because the store in use is then unknown. */
const embeddedCheck = (name: string, find: Check['find']) => check(name, ['DATABASE_URL'], find)

const portCheck = (name: PortName) =>
  check(name, [name], async ({ config, service }) => checkPort(config, name, await service()))

const first = check('configuration', [], ({ configuration, environment }) =>
  checkConfiguration(configuration, environment),
)

const embeddedStoreChecks: readonly Check[] = [
  embeddedCheck('data directory', ({ config }) => checkDataDirectory(config.DATA_DIR)),
  embeddedCheck('free space', async ({ config }) => checkFreeSpace(await statFileSystem(config.DATA_DIR))),
  embeddedCheck('file system', async ({ config }) => checkFileSystem(await statFileSystem(config.DATA_DIR))),
  embeddedCheck('store', async ({ embeddedStore }) => checkStore(await embeddedStore())),
  embeddedCheck('store size', async ({ embeddedStore }) => checkStoreSize(await embeddedStore())),
  embeddedCheck('durability', async ({ config, embeddedStore }) => {
    const opened = await embeddedStore()
    return checkDurability(config.DATA_DIR, 'inspection' in opened ? opened.inspection : undefined)
  }),
  embeddedCheck('disk', ({ config }) => checkDisk(config.DATA_DIR)),
]

const databaseChecks: readonly Check[] = [
  check('database', [], async ({ database }) => checkDatabase(await database())),
  check('privileges', [], async ({ database, config }) => checkDatabasePrivileges(await database(), config)),
  check('store', [], async ({ database }) => checkDatabaseStore(await database())),
  check('store size', [], async ({ database, config }) => checkDatabaseSize(await database(), config)),
  check('durability', [], async ({ database, config }) => checkDatabaseDurability(await database(), config)),
  check('commit', [], async ({ database }) => checkCommit(await database())),
  check('snapshots', [], async ({ database, config }) => checkSnapshots(await database(), config)),
  check('connections', ['DATABASE_CONNECTIONS'], async ({ database, config }) =>
    checkConnections(await database(), config),
  ),
]

const commonChecks: readonly Check[] = [
  check('encryption key', ['DATABASE_URL', 'ENCRYPTION_KEY', 'ENCRYPTION_KEY_PREVIOUS'], async ({ config, store }) =>
    checkEncryptionKey(config, await store()),
  ),
  check('artifacts', ['ARTIFACTS_URL', 'ARTIFACTS_ACCESS_KEY_ID', 'ARTIFACTS_SECRET_ACCESS_KEY'], ({ config }) =>
    checkArtifacts(config),
  ),
  check('secrets', ['SECRETS_DIR', 'VAULT_ADDR', 'VAULT_TOKEN', 'VAULT_SECRETS_PATH'], ({ config }) =>
    checkSecrets(config),
  ),
  check('proxy', ['PROXY_HOPS'], ({ config }) => checkProxy(config)),
  check('identity provider', ['OIDC_ISSUER'], async ({ config, store }) =>
    checkIdentityProvider(config, await store()),
  ),
  check('mail', ['SMTP_URL', 'SMTP_FROM'], ({ config }) => checkMail(config)),
  check('traces', ['OTEL_EXPORTER_OTLP_ENDPOINT'], ({ config, environment }) => checkTraces(config, environment)),
  check('clock', ['DATABASE_URL'], async ({ store, now }) => checkClock(await store(), now())),
  portCheck('DASHBOARD_PORT'),
  portCheck('EXECUTION_PORT'),
  portCheck('BROWSER_CONTEXT_PORT'),
  portCheck('MANAGEMENT_PORT'),
  check('service', ['MANAGEMENT_PORT'], async ({ config, service }) => checkService(config, await service())),
  check('workers', ['DATABASE_URL', 'MANAGEMENT_PORT'], async ({ store, service, now }) =>
    checkWorkers(await store(), await service(), now()),
  ),
  check('workflows', [], async ({ config, workflows, deployed }) =>
    checkWorkflows(await workflows(), config.WORKFLOWS_DIR, await deployed()),
  ),
  check('browser', ['BROWSER_PATH', 'BROWSER_CDP_URL'], async ({ browser, workflows, deployed }) => {
    const loaded = await workflows()
    const all = [...('workflows' in loaded ? loaded.workflows : []), ...(await deployed())]
    return checkBrowser(await browser.start(), countBrowserWorkflows(all))
  }),
  check('isolation', ['BROWSER_PATH', 'BROWSER_CDP_URL'], async ({ browser }) => checkIsolation(await browser.start())),
]

/** In the order in which they run. */
function checksFor({ DATABASE_URL }: Config): readonly Check[] {
  return [first, ...(DATABASE_URL === undefined ? embeddedStoreChecks : databaseChecks), ...commonChecks]
}

// Checks the machine's clock against the latest time in the store.

const behindMillisecondsMax = 60_000
/** Before the first release. */
const earliest = Date.UTC(2026, 0)

/** @param now the clock's time, on which expiry, delays and leases depend. */
export async function checkClock(opened: Opened, now: number): Promise<Finding> {
  const time = new Date(now).toISOString().replace(/\.\d+Z$/, 'Z')
  const advice = "Set the machine's clock, and keep it right with NTP."
  if (now < earliest) return fail(`it is ${time}, before this version was released`, advice)
  if ('error' in opened) return notChecked('the store cannot be opened', 'the store')
  const lastWrite = opened.inspection && (await findLastWrite(opened.inspection.store.read))
  const behind = (lastWrite ?? 0) - now
  if (behind <= behindMillisecondsMax) return ok(`it is ${time}`)
  return fail(
    `it is ${time}, ${formatDuration(behind)} behind the latest entry in the store: keys, runs and leases would not expire`,
    advice,
  )
}

function formatDuration(milliseconds: number): string {
  const minutes = Math.round(milliseconds / 60_000)
  if (minutes < 120) return pluralize(minutes, 'minute')
  const hours = Math.round(minutes / 60)
  return hours < 48 ? pluralize(hours, 'hour') : pluralize(Math.round(hours / 24), 'day')
}

/** The latest row of each growing table, by its index; small tables are scanned. */
const queries = [
  'SELECT at FROM run_events ORDER BY id DESC LIMIT 1',
  'SELECT at FROM audit_log ORDER BY id DESC LIMIT 1',
  'SELECT created_at AS at FROM artifacts ORDER BY created_at DESC LIMIT 1',
  'SELECT max(created_at) AS at FROM accounts',
  'SELECT max(last_used_at) AS at FROM api_keys',
  'SELECT max(last_signed_in_at) AS at FROM users',
  'SELECT max(created_at) AS at FROM browser_context_versions',
  'SELECT max(started_at) AS at FROM workers',
]

/** Returns the time in milliseconds since 1970; `undefined` for an empty store. */
async function findLastWrite(tx: Transaction): Promise<number | undefined> {
  let latest = 0
  for (const sql of queries) {
    const rows = await tx.all<{ at: number | null }>(sql, []).catch(ignoreMissingColumns)
    latest = Math.max(latest, ...rows.map(({ at }) => at ?? 0))
  }
  return latest > 0 ? latest : undefined
}

/** A store of an earlier version lacks some tables and columns. */
function ignoreMissingColumns(error: unknown): [] {
  if (error instanceof Error && /^no such (table|column)|^(relation|column) .* does not exist$/.test(error.message))
    return []
  throw error
}
