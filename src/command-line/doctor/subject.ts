/** The installation that is examined: what several checks need of it is found out once, when the first asks for it. */
import type { Config } from '../../config.ts'
import { inspectSqliteStore } from '../../storage/sqlite/inspection.ts'
import { ExaminedBrowser } from './browser.ts'
import { type ReadConfiguration, readAll } from './configuration.ts'
import { reasonOf } from './finding.ts'
import { type Running, runningService } from './service.ts'
import type { Read } from './store.ts'
import { type Loaded, loadWorkflows } from './workflows.ts'

export interface Subject {
  environment: NodeJS.ProcessEnv
  configuration: ReadConfiguration
  config: Config
  now(): number
  store(): Promise<Read>
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
  return {
    environment,
    configuration,
    config,
    now,
    store,
    workflows: once(() => loadWorkflows(config.WORKFLOWS_DIR)),
    service: once(() => runningService(config)),
    browser,
    async close() {
      await browser.close()
      const read = await store()
      if ('inspection' in read) read.inspection?.close()
    },
  }
}

export async function readStore(directory: string): Promise<Read> {
  try {
    return { inspection: await inspectSqliteStore(directory) }
  } catch (error) {
    return { refused: reasonOf(error) }
  }
}

function once<Result>(find: () => Promise<Result>): () => Promise<Result> {
  let found: Promise<Result> | undefined
  return () => {
    found ??= find()
    return found
  }
}
