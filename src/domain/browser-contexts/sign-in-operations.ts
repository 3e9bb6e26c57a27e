/** The operations of the sign-ins of browser contexts. */
import type { BrowserContextAlphaHandlers } from '../../../generated/browser-context.alpha/server.ts'
import type { components } from '../../../generated/browser-context.alpha/types.ts'
import { invalidRequest } from '../../contract/problem.ts'
import type { Principal } from '../api-keys/api-key.ts'
import { notFound, toTimestamp } from '../problems.ts'
import type { BrowserContexts } from './browser-contexts.ts'
import type { SignIn, SignInEntry, SignIns } from './sign-ins.ts'

type SignInOperations = Pick<
  BrowserContextAlphaHandlers<Principal>,
  'getSignIn' | 'setSignIn' | 'deleteSignIn' | 'signInNow'
>

export function signInOperations(signIns: SignIns, contexts: Pick<BrowserContexts, 'get'>): SignInOperations {
  const absent = async (accountId: string, contextId: string) => {
    const context = await contexts.get(accountId, contextId)
    return notFound(context ? 'sign-in of this browser context' : 'browser context')
  }
  const respond = async (accountId: string, contextId: string, signIn: SignIn) =>
    toResponse(signIn, await signIns.history(accountId, contextId))
  return {
    async getSignIn({ principal: { accountId }, path: { browserContextId } }) {
      const signIn = await signIns.get(accountId, browserContextId)
      if (!signIn) return absent(accountId, browserContextId)
      return { status: 200, body: await respond(accountId, browserContextId, signIn) }
    },

    async setSignIn({ principal: { accountId, apiKeyId }, path: { browserContextId }, body }) {
      const { variableData: variables = {}, ...given } = body
      const result = await signIns.set(accountId, browserContextId, { ...given, variables }, { apiKeyId })
      if (result.kind === 'noSuchContext') return notFound('browser context')
      if (result.kind === 'invalid') return invalidRequest(result.errors)
      return { status: 200, body: await respond(accountId, browserContextId, result.signIn) }
    },

    async deleteSignIn({ principal: { accountId, apiKeyId }, path: { browserContextId } }) {
      const deleted = await signIns.delete(accountId, browserContextId, { apiKeyId })
      return deleted ? { status: 204 } : absent(accountId, browserContextId)
    },

    async signInNow({ principal: { accountId, apiKeyId }, path: { browserContextId } }) {
      const started = await signIns.signInNow(accountId, browserContextId, { apiKeyId })
      if (started.kind === 'doesNotFit') {
        const detail = `The workflow cannot sign in: ${started.detail}. Set the sign-in again. Nothing was stored.`
        return { status: 409, problem: { kind: 'sign-in-does-not-fit', detail } }
      }
      const signIn = started.kind === 'started' ? await signIns.get(accountId, browserContextId) : undefined
      if (!signIn) return absent(accountId, browserContextId)
      return { status: 202, body: await respond(accountId, browserContextId, signIn) }
    },
  }
}

function toResponse(signIn: SignIn, history: readonly SignInEntry[]): components['schemas']['SignIn'] {
  const { variables: variableData, error, ...members } = signIn
  return {
    ...members,
    variableData,
    signedInAt: toTimestamp(signIn.signedInAt),
    checkedAt: toTimestamp(signIn.checkedAt),
    nextCheckAt: toTimestamp(signIn.nextCheckAt),
    needsSignInSince: toTimestamp(signIn.needsSignInSince),
    error,
    history: history.map(({ by, startedAt, endedAt, ...entry }) => ({
      ...entry,
      by: by?.name ?? null,
      startedAt: toTimestamp(startedAt),
      endedAt: toTimestamp(endedAt),
    })),
    createdAt: toTimestamp(signIn.createdAt),
    updatedAt: toTimestamp(signIn.updatedAt),
  }
}
