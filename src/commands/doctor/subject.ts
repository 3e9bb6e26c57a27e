/** The installation that is examined: what several checks need of it is found out once, when the first asks for it. */
import type { Config } from '../../config.ts'
import { inspectDatabase } from '../../storage/postgres/postgres-inspection.ts'
import { type Inspection, inspectSqliteStore } from '../../storage/sqlite/sqlite-inspection.ts'
import { ExaminedBrowser } from './browser.ts'
import { type ReadConfiguration, readAll } from './configuration.ts'
import type { ReadDatabase } from './database.ts'
import { reasonOf } from './finding.ts'
import { type Running, runningService } from './service.ts'
import type { Read } from './store.ts'
import { type Loaded, loadWorkflows } from './workflows.ts'

export interface Subject {
  environment: NodeJS.ProcessEnv
  configuration: ReadConfiguration
  config: Config
  now(): number
  /** The embedded one. */
  store(): Promise<Read<Inspection>>
  database(): Promise<ReadDatabase>
  /** Whichever the service uses. */
  used(): Promise<Read>
  workflows(): Promise<Loaded>
  service(): Promise<Running>
  browser: ExaminedBrowser
  close(): Promise<void>
}

export function subjectOf(environment: NodeJS.ProcessEnv, now: () => number = Date.now): Subject {
  const configuration = readAll(environment)
  const { config } = configuration
  const browser = new ExaminedBrowser({ path: config.BROWSER_PATH, cdpUrl: config.BROWSER_CDP_URL })
  const store = once(() => readStore(config.DATA_DIR))
  const { DATABASE_URL: url } = config
  const database = once(() => readDatabase(url ?? ''))
  const used = url === undefined ? store : async () => madeIn(await database())
  return {
    environment,
    configuration,
    config,
    now,
    store,
    database,
    used,
    workflows: once(() => loadWorkflows(config.WORKFLOWS_DIR)),
    service: once(() => runningService(config)),
    browser,
    async close() {
      await browser.close()
      const read = await (url === undefined ? store() : database())
      if ('inspection' in read) await read.inspection?.close()
    },
  }
}

export async function readStore(directory: string): Promise<Read<Inspection>> {
  try {
    return { inspection: await inspectSqliteStore(directory) }
  } catch (error) {
    return { refused: reasonOf(error) }
  }
}

export async function readDatabase(url: string): Promise<ReadDatabase> {
  try {
    return { inspection: await inspectDatabase(url) }
  } catch (error) {
    return { refused: error instanceof Error ? error.message : String(error) }
  }
}

/** A database in which nothing is made yet holds no store. */
function madeIn(read: ReadDatabase): Read {
  return 'inspection' in read && !read.inspection?.isInitialized ? { inspection: undefined } : read
}

function once<Result>(find: () => Promise<Result>): () => Promise<Result> {
  let found: Promise<Result> | undefined
  return () => {
    found ??= find()
    return found
  }
}
