/** The operations of the Browser Context API. */
import type { BrowserContextAlphaHandlers } from '../../../generated/browser-context.alpha/server.ts'
import type { components } from '../../../generated/browser-context.alpha/types.ts'
import { matchesStrongly, matchesWeakly } from '../../contract/conditional-requests.ts'
import { JsonText } from '../../contract/i-json.ts'
import type { Principal } from '../api-keys/api-key.ts'
import { notFound, toTimestamp, wrongCursor } from '../problems.ts'
import { readSized } from '../sized.ts'
import type { BrowserContext, BrowserContexts } from './browser-contexts.ts'
import type { ContextInUse, ContextVersions, Version, VersionChanged } from './context-versions.ts'
import { signInOperations } from './sign-in-operations.ts'
import type { SignIns } from './sign-ins.ts'

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
  signIns: SignIns
}

export function browserContextOperations({
  browserContexts: contexts,
  contextVersions: versions,
  signIns,
}: BrowserContextDependencies): BrowserContextAlphaHandlers<Principal> {
  return {
    async listBrowserContexts({ principal, query, reserve }) {
      const page = await contexts.findPage(principal.accountId, query)
      if (!page) return wrongCursor
      const data = (await readSized(reserve, page)).map(toResponse)
      return { status: 200, body: { data, nextCursor: page.nextCursor } }
    },

    async createBrowserContext({ principal: { accountId, apiKeyId }, body }) {
      const context = await contexts.create(accountId, body?.name, { apiKeyId })
      if (!context) return nameTaken
      const headers = { Location: `/alpha/browser-contexts/${context.id}` }
      return { status: 201, headers, body: toResponse(context) }
    },

    async getBrowserContext({ principal, path }) {
      const context = await contexts.get(principal.accountId, path.browserContextId)
      return context ? { status: 200, body: toResponse(context) } : notFound('browser context')
    },

    async updateBrowserContext({ principal: { accountId, apiKeyId }, path, body }) {
      const renamed = await contexts.rename(accountId, path.browserContextId, body.name, { apiKeyId })
      if (renamed === 'noSuchContext') return notFound('browser context')
      if (renamed === 'nameTaken') return nameTaken
      return { status: 200, body: toResponse(renamed) }
    },

    async deleteBrowserContext({ principal: { accountId, apiKeyId }, path }) {
      const deleted = await contexts.delete(accountId, path.browserContextId, { apiKeyId })
      return deleted ? { status: 204 } : notFound('browser context')
    },

    async listBrowserContextVersions({ principal, path, query }) {
      const page = await versions.listPage(principal.accountId, path.browserContextId, query)
      if (!page) return notFound('browser context')
      if (page === 'wrongCursor') return wrongCursor
      return { status: 200, body: { data: page.versions.map(toVersionResponse), nextCursor: page.nextCursor } }
    },

    async restoreBrowserContextVersion({ principal: { accountId, apiKeyId }, path, header, reserve }) {
      const { browserContextId, version } = path
      const kept = await versions.list(accountId, browserContextId)
      if (!kept) return notFound('browser context')
      const current = kept.find(({ isCurrent }) => isCurrent)
      // The call may be the repetition of one whose response was lost.
      if (current && (current.number === version || current.restoredFrom === version)) return versionResponse(current)
      await reserve(kept.find(({ number }) => number === version)?.sizeBytes ?? 0)
      const options = { actor: { apiKeyId }, mayReplace: mayReplaceBy(header['If-Match']) }
      const restored = await versions.restore(accountId, browserContextId, version, { apiKeyId }, options)
      if (!restored) return notFound('version of the browser context')
      if ('heldByRunId' in restored) return inUse(restored)
      if ('currentVersionId' in restored) return versionChanged(restored)
      return versionResponse(restored)
    },

    ...signInOperations(signIns, contexts),

    async getStorageState({ principal: { accountId, apiKeyId }, path: { browserContextId }, header, reserve }) {
      const known = header['If-None-Match']
      const found = await versions.findCurrent(accountId, browserContextId)
      if (found && known && matchesWeakly(known, etagOf(found.id)))
        return { status: 304, headers: { ETag: etagOf(found.id) } }
      await reserve(found?.sizeBytes ?? 0)
      const current = await versions.reveal(accountId, browserContextId, { apiKeyId })
      if (!current) return notFound('browser context')
      // It was validated when it was stored.
      return { status: 200, headers: { ETag: etagOf(current.id) }, body: new JsonText(current.state) as never }
    },

    async putStorageState({ principal: { accountId, apiKeyId }, path, header, body }) {
      const mayReplace = mayReplaceBy(header['If-Match'])
      const state = JSON.stringify(body)
      const options = { mayReplace, actor: { apiKeyId } }
      const replaced = await versions.replace(accountId, path.browserContextId, state, { apiKeyId }, options)
      if (!replaced) return notFound('browser context')
      if ('heldByRunId' in replaced) return inUse(replaced)
      if ('currentVersionId' in replaced) return versionChanged(replaced)
      return { status: 204, headers: { ETag: etagOf(replaced.id) } }
    },
  }
}

/** Ids of versions never recur, not even after a backup is restored. */
function etagOf(versionId: string): string {
  return `"${versionId}"`
}

function mayReplaceBy(ifMatch: string | undefined) {
  return ifMatch === undefined ? undefined : (versionId: string) => matchesStrongly(ifMatch, etagOf(versionId))
}

function versionChanged({ currentVersionId }: VersionChanged) {
  const detail =
    'The storage state is no longer the version in If-Match. Read it again, apply your change to it, and send that with the new ETag. Nothing was stored.'
  const errors = [{ header: 'If-Match', detail: 'names no current version' }]
  const headers = { ETag: etagOf(currentVersionId) }
  return { status: 412 as const, headers, problem: { kind: 'version-changed', detail, errors } }
}

function inUse({ heldByRunId }: ContextInUse) {
  const detail = `Run ${heldByRunId} uses the browser context. Wait for its end, or cancel it. Nothing was stored.`
  return { status: 409, problem: { kind: 'browser-context-in-use', detail } } as const
}

function versionResponse(version: Version) {
  return { status: 200 as const, headers: { ETag: etagOf(version.id) }, body: toVersionResponse(version) }
}

function toVersionResponse(version: Version): components['schemas']['BrowserContextVersion'] {
  const { number, isCurrent, cookieDomains, sizeBytes, runId, restoredFrom, createdAt } = version
  const described = { isCurrent, cookieDomains, sizeBytes, runId, restoredFrom }
  return { version: number, ...described, createdAt: toTimestamp(createdAt) }
}

function toResponse(context: BrowserContext): components['schemas']['BrowserContext'] {
  const [createdAt, updatedAt] = [toTimestamp(context.createdAt), toTimestamp(context.updatedAt)]
  const signIn = context.signIn && {
    ...context.signIn,
    signedInAt: toTimestamp(context.signIn.signedInAt),
    needsSignInSince: toTimestamp(context.signIn.needsSignInSince),
  }
  return { ...context, createdAt, updatedAt, lastUsedAt: toTimestamp(context.lastUsedAt), signIn }
}
