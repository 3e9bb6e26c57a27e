// Written by `npm run generate` from openapi/browser-context.alpha.yaml. Do not edit.
import type { Operation, SurfaceDescription } from '../../src/client/operation.ts'
import type { operations } from './types.ts'

/** What a service that follows the same document sends as `X-Document-Hash`. */
export const documentHash = 'ed53b21d26b04b95'

/** Every operation of Browser Context API 0.2.0 as a function. */
export interface BrowserContextAlphaOperations {
  /**
   * List browser contexts, newest first.
   *
   * Lists the account's browser contexts, newest first, in pages.
   *
   * `GET /alpha/browser-contexts` · scopes: browser-contexts:read · answers: 200, 400, 401, 403, 406, 429, 500, 503
   */
  listBrowserContexts: Operation<operations, 'listBrowserContexts'>
  /**
   * Create a browser context.
   *
   * Makes an empty browser context. The body may be absent, also with `Content-Type: application/json`, as the
   * specification shows it; the context then gets a name made from its id.
   *
   * `POST /alpha/browser-contexts` · scopes: browser-contexts:write · answers: 201, 400, 401, 403, 406, 409, 413, 415, 429, 500, 503
   */
  createBrowserContext: Operation<operations, 'createBrowserContext'>
  /**
   * Get a browser context.
   *
   * Reads one browser context of the account.
   *
   * `GET /alpha/browser-contexts/{browserContextId}` · scopes: browser-contexts:read · answers: 200, 400, 401, 403, 404, 406, 429, 500, 503
   */
  getBrowserContext: Operation<operations, 'getBrowserContext'>
  /**
   * Rename a browser context.
   *
   * Gives a browser context another name. Repeating the call changes nothing.
   *
   * `PATCH /alpha/browser-contexts/{browserContextId}` · scopes: browser-contexts:write · answers: 200, 400, 401, 403, 404, 406, 409, 413, 415, 429, 500, 503
   */
  updateBrowserContext: Operation<operations, 'updateBrowserContext'>
  /**
   * Delete a browser context.
   *
   * Erases a browser context with all its versions. It cannot be brought back. A run that has it open goes on and
   * keeps nothing; one that is still queued with it fails when it asks for its browser.
   *
   * `DELETE /alpha/browser-contexts/{browserContextId}` · scopes: browser-contexts:write · answers: 204, 400, 401, 403, 404, 429, 500, 503
   */
  deleteBrowserContext: Operation<operations, 'deleteBrowserContext'>
  /**
   * Read the storage state.
   *
   * The cookies and storage of the browser context's current version, in the form that Playwright's
   * `storageState` option takes. An `empty` browser context has none of either. Whoever has this answer is signed in
   * wherever the browser context is: it needs a scope of its own.
   *
   * `GET /alpha/browser-contexts/{browserContextId}/storage-state` · scopes: browser-contexts:state · answers: 200, 400, 401, 403, 404, 406, 429, 500, 503
   */
  getStorageState: Operation<operations, 'getStorageState'>
  /**
   * Replace the storage state.
   *
   * Makes the body the browser context's new version: what Playwright's `storageState({ path })` has written can be
   * sent as it is. The body may have 5 MiB. The version before it is kept for a while, and can be restored in the
   * dashboard.
   *
   * `PUT /alpha/browser-contexts/{browserContextId}/storage-state` · scopes: browser-contexts:state · answers: 204, 400, 401, 403, 404, 409, 413, 415, 429, 500, 503
   */
  putStorageState: Operation<operations, 'putStorageState'>
}

/** How the operations of Browser Context API 0.2.0 are called. */
export const browserContextAlphaOperations: SurfaceDescription<BrowserContextAlphaOperations> = {
  document: 'browser-context.alpha',
  documentHash,
  credential: (apiKey) => ({ 'x-service-api-key': apiKey }),
  operations: {
    listBrowserContexts: { method: 'GET', path: '/alpha/browser-contexts', retry: 'always' },
    createBrowserContext: { method: 'POST', path: '/alpha/browser-contexts', retry: 'ifRefused' },
    getBrowserContext: { method: 'GET', path: '/alpha/browser-contexts/{browserContextId}', retry: 'always' },
    updateBrowserContext: { method: 'PATCH', path: '/alpha/browser-contexts/{browserContextId}', retry: 'always' },
    deleteBrowserContext: { method: 'DELETE', path: '/alpha/browser-contexts/{browserContextId}', retry: 'always' },
    getStorageState: { method: 'GET', path: '/alpha/browser-contexts/{browserContextId}/storage-state', retry: 'always' },
    putStorageState: { method: 'PUT', path: '/alpha/browser-contexts/{browserContextId}/storage-state', retry: 'always' },
  },
}
