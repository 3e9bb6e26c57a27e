/** The operations of the Browser Context API. */
import type { BrowserContextAlphaHandlers } from '../../../generated/browser-context.alpha/server.ts'
import type { components } from '../../../generated/browser-context.alpha/types.ts'
import { invalidRequest } from '../../contract/problem.ts'
import type { Principal } from '../api-keys/api-key.ts'
import { notFound } from '../problems.ts'
import type { BrowserContext, BrowserContexts } from './browser-contexts.ts'
import type { ContextInUse, ContextVersions } from './context-versions.ts'

const nameTaken = {
  status: 409,
  problem: {
    kind: 'name-taken',
    detail: 'The account already has a browser context with this name. Nothing was stored.',
    errors: [{ pointer: '/name', detail: 'is taken' }],
  },
} as const

export interface BrowserContextDependencies {
  browserContexts: BrowserContexts
  contextVersions: ContextVersions
}

export function browserContextOperations({
  browserContexts: contexts,
  contextVersions: versions,
}: BrowserContextDependencies): BrowserContextAlphaHandlers<Principal> {
  return {
    async listBrowserContexts({ principal, query }) {
      const page = await contexts.list(principal.accountId, query)
      if (!page) return invalidRequest([{ parameter: 'cursor', detail: 'is not a cursor of this list' }])
      return { status: 200, body: { data: page.contexts.map(toResponse), nextCursor: page.nextCursor } }
    },

    async createBrowserContext({ principal, body }) {
      const context = await contexts.create(principal.accountId, body?.name)
      if (!context) return nameTaken
      const headers = { Location: `/alpha/browser-contexts/${context.id}` }
      return { status: 201, headers, body: toResponse(context) }
    },

    async getBrowserContext({ principal, path }) {
      const context = await contexts.get(principal.accountId, path.browserContextId)
      return context ? { status: 200, body: toResponse(context) } : notFound('browser context')
    },

    async updateBrowserContext({ principal, path, body }) {
      const renamed = await contexts.rename(principal.accountId, path.browserContextId, body.name)
      if (renamed === 'noSuchContext') return notFound('browser context')
      if (renamed === 'nameTaken') return nameTaken
      return { status: 200, body: toResponse(renamed) }
    },

    async deleteBrowserContext({ principal, path }) {
      const deleted = await contexts.delete(principal.accountId, path.browserContextId)
      return deleted ? { status: 204 } : notFound('browser context')
    },

    async getStorageState({ principal, path }) {
      const state = await versions.read(principal.accountId, path.browserContextId)
      return state === undefined ? notFound('browser context') : { status: 200, body: JSON.parse(state) }
    },

    async putStorageState({ principal, path, body }) {
      const { accountId, apiKeyId } = principal
      const replaced = await versions.replace(accountId, path.browserContextId, JSON.stringify(body), { apiKeyId })
      if (!replaced) return notFound('browser context')
      return 'heldByRunId' in replaced ? inUse(replaced) : { status: 204 }
    },
  }
}

function inUse({ heldByRunId }: ContextInUse) {
  const detail = `Run ${heldByRunId} holds the browser context. Wait for its end, or cancel it. Nothing was stored.`
  return { status: 409, problem: { kind: 'browser-context-in-use', detail } } as const
}

function toResponse(context: BrowserContext): components['schemas']['BrowserContext'] {
  const { createdAt, updatedAt, lastUsedAt } = context
  return {
    ...context,
    createdAt: new Date(createdAt).toISOString(),
    updatedAt: new Date(updatedAt).toISOString(),
    lastUsedAt: lastUsedAt === null ? null : new Date(lastUsedAt).toISOString(),
  }
}
