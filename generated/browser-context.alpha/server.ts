// Written by `npm run generate` from openapi/browser-context.alpha.yaml. Do not edit.
import type { Handler } from '../../src/contract/handler.ts'
import type { operations } from './types.ts'

/** What a server of Browser Context API 0.1.0 implements. Query parameters with a default are always there. */
export interface BrowserContextAlphaHandlers<Principal> {
  /**
   * List browser contexts, newest first.
   *
   * Lists the account's browser contexts, newest first, in pages.
   *
   * `GET /alpha/browser-contexts` · scopes: browser-contexts:read · answers: 200, 400, 401, 403, 406, 500, 503
   */
  listBrowserContexts: Handler<operations['listBrowserContexts'], 'limit', Principal>
  /**
   * Create a browser context.
   *
   * Makes an empty browser context. The body may be absent, also with `Content-Type: application/json`, as the
   * specification shows it; the context then gets a name made from its id.
   *
   * `POST /alpha/browser-contexts` · scopes: browser-contexts:write · answers: 201, 400, 401, 403, 406, 409, 413, 415, 500, 503
   */
  createBrowserContext: Handler<operations['createBrowserContext'], never, Principal>
  /**
   * Get a browser context.
   *
   * Reads one browser context of the account.
   *
   * `GET /alpha/browser-contexts/{browserContextId}` · scopes: browser-contexts:read · answers: 200, 400, 401, 403, 404, 406, 500, 503
   */
  getBrowserContext: Handler<operations['getBrowserContext'], never, Principal>
  /**
   * Delete a browser context.
   *
   * Erases a browser context. It cannot be brought back.
   *
   * `DELETE /alpha/browser-contexts/{browserContextId}` · scopes: browser-contexts:write · answers: 204, 400, 401, 403, 404, 500, 503
   */
  deleteBrowserContext: Handler<operations['deleteBrowserContext'], never, Principal>
  /**
   * Rename a browser context.
   *
   * Gives a browser context another name.
   *
   * `PATCH /alpha/browser-contexts/{browserContextId}` · scopes: browser-contexts:write · answers: 200, 400, 401, 403, 404, 406, 409, 413, 415, 500, 503
   */
  updateBrowserContext: Handler<operations['updateBrowserContext'], never, Principal>
}
