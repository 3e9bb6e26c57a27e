/** Every check of `doctor`. */
import type { Config, settings } from '../../config.ts'
import { checkBrowser, checkIsolation } from './browser.ts'
import { checkConfiguration } from './configuration.ts'
import { checkDataDirectory, checkFileSystem, checkFreeSpace, fileSystemOf } from './data-directory.ts'
import {
  checkCommit,
  checkConnections,
  checkDatabase,
  checkDatabaseDurability,
  checkDatabaseSize,
  checkDatabaseStore,
  checkRights,
} from './database.ts'
import { checkDisk, checkDurability } from './durability.ts'
import { checkEncryptionKey } from './encryption-key.ts'
import type { Finding } from './finding.ts'
import { checkPort, checkService, checkWorkers, type PortName } from './service.ts'
import { checkClock, checkStore, checkStoreSize } from './store.ts'
import type { Subject } from './subject.ts'
import { browserUsers, checkWorkflows } from './workflows.ts'

export interface Check {
  name: string
  /** What it stands on: where one of these variables is refused, there is nothing to check. */
  variables: readonly (keyof typeof settings)[]
  find(subject: Subject): Finding | Promise<Finding>
}

const portOf = (name: PortName): Check => ({
  name,
  variables: [name],
  find: async ({ config, service }) => checkPort(config, name, await service()),
})

const first: Check = {
  name: 'configuration',
  variables: [],
  find: ({ configuration, environment }) => checkConfiguration(configuration, environment),
}

const ofEmbeddedStore: readonly Check[] = [
  { name: 'data directory', variables: ['DATABASE_URL'], find: ({ config }) => checkDataDirectory(config.DATA_DIR) },
  {
    name: 'free space',
    variables: ['DATABASE_URL'],
    find: async ({ config }) => checkFreeSpace(await fileSystemOf(config.DATA_DIR)),
  },
  {
    name: 'file system',
    variables: ['DATABASE_URL'],
    find: async ({ config }) => checkFileSystem(await fileSystemOf(config.DATA_DIR)),
  },
  { name: 'store', variables: ['DATABASE_URL'], find: async ({ store }) => checkStore(await store()) },
  { name: 'store size', variables: ['DATABASE_URL'], find: async ({ store }) => checkStoreSize(await store()) },
  {
    name: 'durability',
    variables: ['DATABASE_URL'],
    find: async ({ config, store }) => {
      const read = await store()
      return checkDurability(config.DATA_DIR, 'inspection' in read ? read.inspection : undefined)
    },
  },
  { name: 'disk', variables: ['DATABASE_URL'], find: ({ config }) => checkDisk(config.DATA_DIR) },
]

const ofDatabase: readonly Check[] = [
  { name: 'database', variables: [], find: async ({ database }) => checkDatabase(await database()) },
  { name: 'rights', variables: [], find: async ({ database, config }) => checkRights(await database(), config) },
  { name: 'store', variables: [], find: async ({ database }) => checkDatabaseStore(await database()) },
  {
    name: 'store size',
    variables: [],
    find: async ({ database, config }) => checkDatabaseSize(await database(), config),
  },
  {
    name: 'durability',
    variables: [],
    find: async ({ database, config }) => checkDatabaseDurability(await database(), config),
  },
  { name: 'commit', variables: [], find: async ({ database }) => checkCommit(await database()) },
  {
    name: 'connections',
    variables: ['DATABASE_CONNECTIONS'],
    find: async ({ database, config }) => checkConnections(await database(), config),
  },
]

const ofEither: readonly Check[] = [
  {
    name: 'encryption key',
    variables: ['DATABASE_URL', 'ENCRYPTION_KEY', 'ENCRYPTION_KEY_PREVIOUS'],
    find: async ({ config, used }) => checkEncryptionKey(config, await used()),
  },
  { name: 'clock', variables: ['DATABASE_URL'], find: async ({ used, now }) => checkClock(await used(), now()) },
  portOf('DASHBOARD_PORT'),
  portOf('EXECUTION_PORT'),
  portOf('BROWSER_CONTEXT_PORT'),
  portOf('MANAGEMENT_PORT'),
  {
    name: 'service',
    variables: ['MANAGEMENT_PORT'],
    find: async ({ config, service }) => checkService(config, await service()),
  },
  {
    name: 'workers',
    variables: ['DATABASE_URL', 'MANAGEMENT_PORT'],
    find: async ({ used, service, now }) => checkWorkers(await used(), await service(), now()),
  },
  {
    name: 'workflows',
    variables: [],
    find: async ({ config, workflows }) => checkWorkflows(await workflows(), config.WORKFLOWS_DIR),
  },
  {
    name: 'browser',
    variables: ['BROWSER_PATH', 'BROWSER_CDP_URL'],
    find: async ({ browser, workflows }) => checkBrowser(await browser.start(), browserUsers(await workflows())),
  },
  {
    name: 'isolation',
    variables: ['BROWSER_PATH', 'BROWSER_CDP_URL'],
    find: async ({ browser }) => checkIsolation(await browser.start()),
  },
]

/** In the order in which they are made and shown. */
export function checksOf({ DATABASE_URL }: Config): readonly Check[] {
  return [first, ...(DATABASE_URL === undefined ? ofEmbeddedStore : ofDatabase), ...ofEither]
}
