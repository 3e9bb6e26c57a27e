/** The list of all checks. */
import type { Config, settings } from '../../config/config.ts'
import { checkBrowser, checkIsolation } from './browser.ts'
import { checkClock } from './clock.ts'
import { checkConfiguration, checkWorkflows, countBrowserWorkflows } from './configuration.ts'
import {
  checkCommit,
  checkConnections,
  checkDatabase,
  checkDatabaseDurability,
  checkDatabasePrivileges,
  checkDatabaseSize,
  checkDatabaseStore,
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
import type { Installation } from './examine.ts'
import type { Finding } from './finding.ts'
import { checkPort, checkService, checkWorkers, type PortName } from './service.ts'

type Variable = keyof typeof settings

export interface Check {
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
  check('connections', ['DATABASE_CONNECTIONS'], async ({ database, config }) =>
    checkConnections(await database(), config),
  ),
]

const commonChecks: readonly Check[] = [
  check('encryption key', ['DATABASE_URL', 'ENCRYPTION_KEY', 'ENCRYPTION_KEY_PREVIOUS'], async ({ config, store }) =>
    checkEncryptionKey(config, await store()),
  ),
  check('clock', ['DATABASE_URL'], async ({ store, now }) => checkClock(await store(), now())),
  portCheck('DASHBOARD_PORT'),
  portCheck('EXECUTION_PORT'),
  portCheck('BROWSER_CONTEXT_PORT'),
  portCheck('MANAGEMENT_PORT'),
  check('service', ['MANAGEMENT_PORT'], async ({ config, service }) => checkService(config, await service())),
  check('workers', ['DATABASE_URL', 'MANAGEMENT_PORT'], async ({ store, service, now }) =>
    checkWorkers(await store(), await service(), now()),
  ),
  check('workflows', [], async ({ config, workflows }) => checkWorkflows(await workflows(), config.WORKFLOWS_DIR)),
  check('browser', ['BROWSER_PATH', 'BROWSER_CDP_URL'], async ({ browser, workflows }) =>
    checkBrowser(await browser.start(), countBrowserWorkflows(await workflows())),
  ),
  check('isolation', ['BROWSER_PATH', 'BROWSER_CDP_URL'], async ({ browser }) => checkIsolation(await browser.start())),
]

/** In the order in which they run. */
export function checksFor({ DATABASE_URL }: Config): readonly Check[] {
  return [first, ...(DATABASE_URL === undefined ? embeddedStoreChecks : databaseChecks), ...commonChecks]
}
