/** The Browser Context API: every operation of openapi/browser-context.alpha.yaml, and what implements it. */
import type { BrowserContextAlphaHandlers } from '../../generated/browser-context.alpha/server.ts'
import type { Principal } from '../domain/api-keys/api-key.ts'
import {
  type BrowserContextDependencies,
  browserContextOperations,
} from '../domain/browser-contexts/browser-context-operations.ts'

export function browserContextApi(parts: BrowserContextDependencies): BrowserContextAlphaHandlers<Principal> {
  const operations = browserContextOperations(parts)
  return {
    listBrowserContexts: operations.listBrowserContexts,
    createBrowserContext: operations.createBrowserContext,
    getBrowserContext: operations.getBrowserContext,
    updateBrowserContext: operations.updateBrowserContext,
    deleteBrowserContext: operations.deleteBrowserContext,
    getStorageState: operations.getStorageState,
    putStorageState: operations.putStorageState,
  }
}
