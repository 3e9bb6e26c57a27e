/** The client of the Browser Context API. */
import {
  type BrowserContextAlphaOperations,
  browserContextAlphaOperations,
} from '../../generated/browser-context.alpha/client.ts'
import type { components, operations } from '../../generated/browser-context.alpha/types.ts'
import { operationsOf } from './call.ts'
import type { CallOptions, ClientOptions } from './options.ts'
import { type List, listOf } from './pages.ts'

type BrowserContext = components['schemas']['BrowserContext']

/** The query of `listBrowserContexts`. `limit` is the size of a page, not of the list; `cursor` is where it starts. */
export type BrowserContextFilters = NonNullable<operations['listBrowserContexts']['parameters']['query']>

/** Browser contexts, beyond what one request does. */
export interface BrowserContexts {
  /**
   * All browser contexts of the account, newest first, over all pages.
   *
   * @example
   * for await (const { id, name } of client.browserContexts.list()) console.log(id, name)
   */
  list(filters?: BrowserContextFilters, options?: CallOptions): List<BrowserContext>
}

/** A client of the Browser Context API: a function for each operationId, and `browserContexts` to list them all. */
export interface BrowserContextClient extends BrowserContextAlphaOperations {
  /** List all browser contexts. */
  readonly browserContexts: BrowserContexts
}

/**
 * Makes a client of the Browser Context API (alpha). It holds no connection and needs no closing.
 *
 * @example
 * const client = createBrowserContextClient({ baseUrl: 'http://127.0.0.1:3002', apiKey })
 * const { data: context, error } = await client.createBrowserContext({ body: { name: 'Shop, signed in' } })
 *
 * @throws {TypeError} for an empty `baseUrl`, and for an `apiKey` that is none.
 */
export function createBrowserContextClient(options: ClientOptions): BrowserContextClient {
  const operations = operationsOf(browserContextAlphaOperations, options)
  const list: BrowserContexts['list'] = (filters = {}, callOptions = {}) =>
    listOf((cursor) => {
      const query = { ...filters, ...(cursor !== undefined && { cursor }) }
      return operations.listBrowserContexts({ ...callOptions, params: { query } })
    })
  return { ...operations, browserContexts: { list } }
}
