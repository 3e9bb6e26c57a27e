/** Runs all checks on one installation, whatever earlier checks find. */
import type { Config } from '../../config/config.ts'
import { inspectDatabase } from '../../storage/postgres/postgres-inspection.ts'
import { type Inspection, inspectSqliteStore } from '../../storage/sqlite/sqlite-inspection.ts'
import { ExaminedBrowser } from './browser.ts'
import { type Check, checksFor } from './checks.ts'
import { type LoadedWorkflows, loadWorkflows, type ReadConfiguration, readConfiguration } from './configuration.ts'
import type { OpenedDatabase } from './database.ts'
import { type Finding, fail, notChecked, type Opened, shortMessage } from './finding.ts'
import { findService, type ServiceState } from './service.ts'

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
export interface Installation {
  environment: NodeJS.ProcessEnv
  configuration: ReadConfiguration
  config: Config
  now(): number
  embeddedStore(): Promise<Opened<Inspection>>
  database(): Promise<OpenedDatabase>
  /** The store that the service uses. */
  store(): Promise<Opened>
  workflows(): Promise<LoadedWorkflows>
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
  return {
    environment,
    configuration,
    config,
    now,
    embeddedStore,
    database,
    store: url === undefined ? embeddedStore : async () => initializedStore(await database()),
    workflows: once(() => loadWorkflows(config.WORKFLOWS_DIR)),
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
    return { error: shortMessage(error) }
  }
}

export async function openDatabase(url: string): Promise<OpenedDatabase> {
  try {
    return { inspection: await inspectDatabase(url) }
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
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
