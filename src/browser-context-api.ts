/** The Browser Context API: every operation of openapi/browser-context.alpha.yaml, and what implements it. */
import type { BrowserContextAlphaHandlers } from '../generated/browser-context.alpha/server.ts'
import type { Principal } from './api-keys/api-key.ts'
import { type BrowserContextParts, browserContextOperations } from './browser-contexts/operations.ts'

export function browserContextApi(parts: BrowserContextParts): BrowserContextAlphaHandlers<Principal> {
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
