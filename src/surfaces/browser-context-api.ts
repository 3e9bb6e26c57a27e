/** The Browser Context API: every operation of openapi/browser-context.alpha.yaml, and the scope that guards it. */
import type { BrowserContextAlphaHandlers } from '../../generated/browser-context.alpha/server.ts'
import type { Principal } from '../domain/api-keys/api-key.ts'

export { browserContextOperations as browserContextApi } from '../domain/browser-contexts/browser-context-operations.ts'

/** The scope that an API key needs. The stages read it from the document; a test compares this table with it. */
export const browserContextScopes = {
  listBrowserContexts: 'browser-contexts:read',
  createBrowserContext: 'browser-contexts:write',
  getBrowserContext: 'browser-contexts:read',
  updateBrowserContext: 'browser-contexts:write',
  deleteBrowserContext: 'browser-contexts:write',
  listBrowserContextVersions: 'browser-contexts:read',
  restoreBrowserContextVersion: 'browser-contexts:write',
  getSignIn: 'browser-contexts:read',
  setSignIn: 'browser-contexts:write',
  deleteSignIn: 'browser-contexts:write',
  signInNow: 'browser-contexts:write',
  getStorageState: 'browser-contexts:state',
  putStorageState: 'browser-contexts:state',
} satisfies Record<keyof BrowserContextAlphaHandlers<Principal>, string>
