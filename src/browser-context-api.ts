/** The Browser Context API: every operation of openapi/browser-context.alpha.yaml, and what implements it. */
import type { BrowserContextAlphaHandlers } from '../generated/browser-context.alpha/server.ts'
import type { Principal } from './api-keys/api-key.ts'
import type { BrowserContexts } from './browser-contexts/browser-contexts.ts'
import { browserContextOperations } from './browser-contexts/operations.ts'

export function browserContextApi(contexts: BrowserContexts): BrowserContextAlphaHandlers<Principal> {
  const operations = browserContextOperations(contexts)
  return {
    listBrowserContexts: operations.listBrowserContexts,
    createBrowserContext: operations.createBrowserContext,
    getBrowserContext: operations.getBrowserContext,
    updateBrowserContext: operations.updateBrowserContext,
    deleteBrowserContext: operations.deleteBrowserContext,
  }
}
