/** Every check of `doctor`, in the order in which they are made and shown. */
import type { settings } from '../../config.ts'
import { checkBrowser, checkIsolation } from './browser.ts'
import { checkConfiguration } from './configuration.ts'
import { checkDataDirectory, checkFileSystem, checkFreeSpace, fileSystemOf } from './data-directory.ts'
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

export const checks: readonly Check[] = [
  {
    name: 'configuration',
    variables: [],
    find: ({ configuration, environment }) => checkConfiguration(configuration, environment),
  },
  { name: 'data directory', variables: [], find: ({ config }) => checkDataDirectory(config.DATA_DIR) },
  {
    name: 'free space',
    variables: [],
    find: async ({ config }) => checkFreeSpace(await fileSystemOf(config.DATA_DIR)),
  },
  {
    name: 'file system',
    variables: [],
    find: async ({ config }) => checkFileSystem(await fileSystemOf(config.DATA_DIR)),
  },
  { name: 'store', variables: [], find: async ({ store }) => checkStore(await store()) },
  { name: 'store size', variables: [], find: async ({ store }) => checkStoreSize(await store()) },
  {
    name: 'durability',
    variables: [],
    find: async ({ config, store }) => {
      const read = await store()
      return checkDurability(config.DATA_DIR, 'inspection' in read ? read.inspection : undefined)
    },
  },
  { name: 'disk', variables: [], find: ({ config }) => checkDisk(config.DATA_DIR) },
  {
    name: 'encryption key',
    variables: ['ENCRYPTION_KEY', 'ENCRYPTION_KEY_PREVIOUS'],
    find: async ({ config, store }) => checkEncryptionKey(config, await store()),
  },
  { name: 'clock', variables: [], find: async ({ store, now }) => checkClock(await store(), now()) },
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
    variables: ['MANAGEMENT_PORT'],
    find: async ({ store, service, now }) => checkWorkers(await store(), await service(), now()),
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
