/** The operations of the Browser Context API, in the document's words. */
import type { BrowserContextAlphaHandlers } from '../../generated/browser-context.alpha/server.ts'
import type { components } from '../../generated/browser-context.alpha/types.ts'
import type { Principal } from '../api-keys/api-key.ts'
import { invalidRequest, notFound } from '../contract/problem.ts'
import type { BrowserContext, BrowserContexts } from './browser-contexts.ts'

type Wire = components['schemas']['BrowserContext']

const nameTaken = {
  status: 409,
  problem: {
    kind: 'name-taken',
    detail: 'The account has a browser context of this name already. Nothing was stored.',
    errors: [{ pointer: '/name', detail: 'is taken' }],
  },
} as const

export function browserContextOperations(contexts: BrowserContexts): BrowserContextAlphaHandlers<Principal> {
  return {
    async listBrowserContexts({ principal, query }) {
      const page = await contexts.list(principal.accountId, query)
      if (!page) return invalidRequest([{ parameter: 'cursor', detail: 'is not a cursor of this list' }])
      return { status: 200, body: { data: page.contexts.map(wireOf), nextCursor: page.nextCursor } }
    },

    async createBrowserContext({ principal, body }) {
      const context = await contexts.create(principal.accountId, body?.name)
      if (!context) return nameTaken
      return { status: 201, headers: { Location: `/alpha/browser-contexts/${context.id}` }, body: wireOf(context) }
    },

    async getBrowserContext({ principal, path }) {
      const context = await contexts.get(principal.accountId, path.browserContextId)
      return context ? { status: 200, body: wireOf(context) } : notFound('browser context')
    },

    async updateBrowserContext({ principal, path, body }) {
      const renamed = await contexts.rename(principal.accountId, path.browserContextId, body.name)
      if (renamed === 'noSuchContext') return notFound('browser context')
      if (renamed === 'nameTaken') return nameTaken
      return { status: 200, body: wireOf(renamed) }
    },

    async deleteBrowserContext({ principal, path }) {
      const deleted = await contexts.delete(principal.accountId, path.browserContextId)
      return deleted ? { status: 204 } : notFound('browser context')
    },
  }
}

function wireOf({ id, name, createdAt, updatedAt }: BrowserContext): Wire {
  return { id, name, createdAt: new Date(createdAt).toISOString(), updatedAt: new Date(updatedAt).toISOString() }
}
