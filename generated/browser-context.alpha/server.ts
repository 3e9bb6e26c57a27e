// Written by `npm run generate` from openapi/browser-context.alpha.yaml. Do not edit.
import type { Handler } from '../../src/contract/handler.ts'
import type { operations } from './types.ts'

/** What a server of Browser Context API 0.2.0 implements. Query parameters with a default are always there. */
export interface BrowserContextAlphaHandlers<Principal> {
  /**
   * List browser contexts, newest first.
   *
   * Lists the account's browser contexts, newest first, in pages.
   *
   * `GET /alpha/browser-contexts` · scopes: browser-contexts:read · answers: 200, 400, 401, 403, 406, 429, 500, 503
   */
  listBrowserContexts: Handler<operations['listBrowserContexts'], 'limit', Principal>
  /**
   * Create a browser context.
   *
   * Makes an empty browser context. The body may be absent, also with `Content-Type: application/json`, as the
   * specification shows it; the context then gets a name made from its id.
   *
   * `POST /alpha/browser-contexts` · scopes: browser-contexts:write · answers: 201, 400, 401, 403, 406, 409, 413, 415, 429, 500, 503
   */
  createBrowserContext: Handler<operations['createBrowserContext'], never, Principal>
  /**
   * Get a browser context.
   *
   * Reads one browser context of the account.
   *
   * `GET /alpha/browser-contexts/{browserContextId}` · scopes: browser-contexts:read · answers: 200, 400, 401, 403, 404, 406, 429, 500, 503
   */
  getBrowserContext: Handler<operations['getBrowserContext'], never, Principal>
  /**
   * Rename a browser context.
   *
   * Gives a browser context another name. Repeating the call changes nothing.
   *
   * `PATCH /alpha/browser-contexts/{browserContextId}` · scopes: browser-contexts:write · answers: 200, 400, 401, 403, 404, 406, 409, 413, 415, 429, 500, 503
   */
  updateBrowserContext: Handler<operations['updateBrowserContext'], never, Principal>
  /**
   * Delete a browser context.
   *
   * Erases a browser context with all its versions. It cannot be brought back. A run that has it open goes on and
   * keeps nothing; one that is still queued with it fails when it asks for its browser.
   *
   * `DELETE /alpha/browser-contexts/{browserContextId}` · scopes: browser-contexts:write · answers: 204, 400, 401, 403, 404, 429, 500, 503
   */
  deleteBrowserContext: Handler<operations['deleteBrowserContext'], never, Principal>
  /**
   * Read the storage state.
   *
   * The cookies and storage of the browser context's current version, in the form that Playwright's
   * `storageState` option takes. An `empty` browser context has none of either. Whoever has this answer is signed in
   * wherever the browser context is: it needs a scope of its own.
   *
   * `GET /alpha/browser-contexts/{browserContextId}/storage-state` · scopes: browser-contexts:state · answers: 200, 400, 401, 403, 404, 406, 429, 500, 503
   */
  getStorageState: Handler<operations['getStorageState'], never, Principal>
  /**
   * Replace the storage state.
   *
   * Makes the body the browser context's new version: what Playwright's `storageState({ path })` has written can be
   * sent as it is. The body may have 5 MiB. The version before it is kept for a while, and can be restored in the
   * dashboard.
   *
   * `PUT /alpha/browser-contexts/{browserContextId}/storage-state` · scopes: browser-contexts:state · answers: 204, 400, 401, 403, 404, 409, 413, 415, 429, 500, 503
   */
  putStorageState: Handler<operations['putStorageState'], never, Principal>
}
