// Written by `npm run generate` from openapi/browser-context.alpha.yaml. Do not edit.
import type { Operation, SurfaceDescription } from '../../src/client/operation.ts'
import type { operations } from './types.ts'

/** A service built from the same document sends this as `X-Document-Hash`. */
export const documentHash = 'ad21669e46e30505'

/** Every operation of Browser Context API 0.2.0 as a function. */
export interface BrowserContextAlphaOperations {
  /**
   * List browser contexts, newest first.
   *
   * Lists the account's browser contexts, newest first, in pages. With `name`, there is one at most. A page ends before
   * the browser context with which its `cookieDomains` would exceed 1 MiB, so it may have fewer than `limit` although
   * `nextCursor` is set.
   *
   * `GET /alpha/browser-contexts` · scopes: browser-contexts:read · responses: 200, 400, 401, 403, 406, 429, 500, 503
   */
  listBrowserContexts: Operation<operations, 'listBrowserContexts'>
  /**
   * Create a browser context.
   *
   * Creates an empty browser context. The body may be absent, even with `Content-Type: application/json`; the context
   * then gets a name derived from its id.
   *
   * `POST /alpha/browser-contexts` · scopes: browser-contexts:write · responses: 201, 400, 401, 403, 406, 409, 413, 415, 429, 500, 503, 507
   */
  createBrowserContext: Operation<operations, 'createBrowserContext'>
  /**
   * Get a browser context.
   *
   * Returns one browser context of the account.
   *
   * `GET /alpha/browser-contexts/{browserContextId}` · scopes: browser-contexts:read · responses: 200, 400, 401, 403, 404, 406, 429, 500, 503
   */
  getBrowserContext: Operation<operations, 'getBrowserContext'>
  /**
   * Rename a browser context.
   *
   * Gives a browser context another name. Repeating the call has no effect.
   *
   * `PATCH /alpha/browser-contexts/{browserContextId}` · scopes: browser-contexts:write · responses: 200, 400, 401, 403, 404, 406, 409, 413, 415, 429, 500, 503
   */
  updateBrowserContext: Operation<operations, 'updateBrowserContext'>
  /**
   * Delete a browser context.
   *
   * Erases a browser context with all its versions, permanently. A run that uses it continues and stores nothing; a
   * queued run that needs it fails when it opens its browser.
   *
   * `DELETE /alpha/browser-contexts/{browserContextId}` · scopes: browser-contexts:write · responses: 204, 400, 401, 403, 404, 429, 500, 503
   */
  deleteBrowserContext: Operation<operations, 'deleteBrowserContext'>
  /**
   * List the versions of a browser context, newest first.
   *
   * Lists the stored versions in pages, newest first: the current one and earlier ones, up to the number that the
   * operator keeps. An `empty` browser context has none. The `cookieDomains` of a page have at most 1 MiB in total, so a
   * page may have fewer versions than `limit` although `nextCursor` is set.
   *
   * `GET /alpha/browser-contexts/{browserContextId}/versions` · scopes: browser-contexts:read · responses: 200, 400, 401, 403, 404, 406, 429, 500, 503
   */
  listBrowserContextVersions: Operation<operations, 'listBrowserContextVersions'>
  /**
   * Restore a version of a browser context.
   *
   * Stores the state of an earlier version again, as the newest version. Repeating the call has no effect: restoring the
   * current version, or the one that it was restored from, returns the current version and stores nothing. With
   * `If-Match`, it replaces only the version that you have read, as putStorageState does.
   *
   * `POST /alpha/browser-contexts/{browserContextId}/versions/{version}/restore` · scopes: browser-contexts:write · responses: 200, 400, 401, 403, 404, 406, 409, 412, 429, 500, 503, 507
   */
  restoreBrowserContextVersion: Operation<operations, 'restoreBrowserContextVersion'>
  /**
   * Read the storage state.
   *
   * Returns the cookies and storage of the current version, in the format of Playwright's `storageState` option. An
   * `empty` browser context has neither. The response gives access to every account that the browser is signed in
   * to, and therefore needs its own scope. `ETag` identifies the version: send it as `If-None-Match` to read the state
   * only if it has changed, and as `If-Match` of putStorageState to replace no other version than this one.
   *
   * `GET /alpha/browser-contexts/{browserContextId}/storage-state` · scopes: browser-contexts:state · responses: 200, 304, 400, 401, 403, 404, 406, 429, 500, 503
   */
  getStorageState: Operation<operations, 'getStorageState'>
  /**
   * Replace the storage state.
   *
   * Stores the body as the browser context's new version. It may be a file that Playwright's `storageState({ path })`
   * wrote, of at most 5 MiB. restoreBrowserContextVersion can restore the previous version
   * for a while. With `If-Match`, the body
   * replaces only the version that you have read: of several writers with the same `ETag`, one succeeds.
   *
   * `PUT /alpha/browser-contexts/{browserContextId}/storage-state` · scopes: browser-contexts:state · responses: 204, 400, 401, 403, 404, 409, 412, 413, 415, 429, 500, 503, 507
   */
  putStorageState: Operation<operations, 'putStorageState'>
  /**
   * Get the sign-in of a browser context.
   *
   * Returns how the browser context stays signed in, whether it is, and its latest checks and sign-ins. Secrets among its
   * variables are masked, and the TOTP seed is left out.
   *
   * `GET /alpha/browser-contexts/{browserContextId}/sign-in` · scopes: browser-contexts:read · responses: 200, 400, 401, 403, 404, 406, 429, 500, 503
   */
  getSignIn: Operation<operations, 'getSignIn'>
  /**
   * Set the sign-in of a browser context.
   *
   * Sets the workflow that signs the browser context in, with its variables, or replaces it. The workflow belongs to the
   * account and its definition says `signsIn: true`. A secret that is `********` keeps its value, and so does `totpSeed`; without
   * `totpSeed` it is removed. If the workflow or a variable that is not secret changes, such as an address, secrets and the
   * seed must be given again: the response is 400 otherwise, and names each. So a caller who may set a sign-in cannot have a
   * stored secret sent elsewhere.
   *
   * When a run with this browser context finds that it is signed out, the run is suspended, which costs no attempt. One run of the
   * workflow signs in, whatever the number of runs that wait for it, and all of them go on with the new version. A browser
   * context that is `needsSignIn` is signed in again at once, because its password may be new.
   *
   * `PUT /alpha/browser-contexts/{browserContextId}/sign-in` · scopes: browser-contexts:write · responses: 200, 400, 401, 403, 404, 406, 413, 415, 429, 500, 503
   */
  setSignIn: Operation<operations, 'setSignIn'>
  /**
   * Delete the sign-in of a browser context.
   *
   * Erases the sign-in with its secrets and its history. A run that signs in is cancelled. Runs that wait for it go on, and
   * fail if their workflow needs the session.
   *
   * `DELETE /alpha/browser-contexts/{browserContextId}/sign-in` · scopes: browser-contexts:write · responses: 204, 400, 401, 403, 404, 429, 500, 503
   */
  deleteSignIn: Operation<operations, 'deleteSignIn'>
  /**
   * Sign a browser context in now.
   *
   * Queues a run that signs the browser context in, whether or not it is signed in. While one is queued or running, the call
   * queues no other. `runId` of the response says which run it is. A run that signs in expires unless it starts within an hour.
   *
   * `POST /alpha/browser-contexts/{browserContextId}/sign-in/now` · scopes: browser-contexts:write · responses: 202, 400, 401, 403, 404, 406, 409, 429, 500, 503
   */
  signInNow: Operation<operations, 'signInNow'>
}

/** How to call the operations of Browser Context API 0.2.0. */
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
    listBrowserContextVersions: { method: 'GET', path: '/alpha/browser-contexts/{browserContextId}/versions', retry: 'always' },
    restoreBrowserContextVersion: { method: 'POST', path: '/alpha/browser-contexts/{browserContextId}/versions/{version}/restore', retry: 'always' },
    getStorageState: { method: 'GET', path: '/alpha/browser-contexts/{browserContextId}/storage-state', retry: 'always' },
    putStorageState: { method: 'PUT', path: '/alpha/browser-contexts/{browserContextId}/storage-state', retry: 'always' },
    getSignIn: { method: 'GET', path: '/alpha/browser-contexts/{browserContextId}/sign-in', retry: 'always' },
    setSignIn: { method: 'PUT', path: '/alpha/browser-contexts/{browserContextId}/sign-in', retry: 'always' },
    deleteSignIn: { method: 'DELETE', path: '/alpha/browser-contexts/{browserContextId}/sign-in', retry: 'always' },
    signInNow: { method: 'POST', path: '/alpha/browser-contexts/{browserContextId}/sign-in/now', retry: 'always' },
  },
}
