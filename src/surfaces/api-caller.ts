/** Authenticates requests for what an API's host serves besides its operations, by the same keys, scopes and limits. */
import type { Request, Response } from 'express'
import { credentialReader } from '../contract/credential.ts'
import type { Exchange } from '../contract/exchange.ts'
import { Problem } from '../contract/problem.ts'
import { rateLimited, rateLimitHeaders } from '../contract/response.ts'
import { includesScopes, type LimitRate } from '../contract/stages.ts'
import type { TenantLimits } from '../contract/tenant-limits.ts'
import { apiKeyRealm, type Principal } from '../domain/api-keys/api-key.ts'
import type { ApiKeys } from '../domain/api-keys/api-keys.ts'

export interface CallerDependencies {
  apiKeys: ApiKeys
  limitRate: LimitRate<Principal> | undefined
  tenantLimits: TenantLimits
}

export interface Caller {
  credential: string
  principal: Principal
  /** Whether the key has all of these scopes. */
  hasScopes(scopes: readonly string[]): boolean
}

const { read: readCredential, challenge } = credentialReader({ type: 'bearer' }, apiKeyRealm)

/**
 * The caller of a request with an API key. Without a valid one, responds with 401 and returns `undefined`; so it does, with
 * 403, to a key that is restricted to workflows, which has operations only.
 *
 * @throws {Problem} when the rate limit of the key is exceeded.
 */
export async function admitCaller(
  { apiKeys, limitRate, tenantLimits }: CallerDependencies,
  request: Request,
  response: Response,
): Promise<Caller | undefined> {
  const exchange: Exchange<Principal> = response.locals.exchange
  const client = `${request.ip} ${request.headers['user-agent']?.slice(0, 100) ?? ''}`.trim()
  const credential = readCredential(request)
  const found = credential && (await apiKeys.authenticate(credential, client))
  if (!credential || !found) {
    refuse(response, 401)
    return undefined
  }
  const { principal, scopes } = found
  exchange.principal = principal
  exchange.rateLimit = await limitRate?.(principal, client)
  if (exchange.rateLimit?.isExceeded) {
    const { problem, headers } = rateLimited(exchange.rateLimit)
    throw new Problem(problem as never, headers as Record<string, string>)
  }
  const headers = exchange.rateLimit ? rateLimitHeaders(exchange.rateLimit) : {}
  response.set({ ...headers, 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' })
  exchange.tenant = tenantLimits.begin(principal.accountId, response)
  if (principal.workflowIds) {
    refuse(response, 403)
    return undefined
  }
  return { credential, principal, hasScopes: (needed) => includesScopes(scopes, needed) }
}

/** The response of every operation to such a request (section 7 of the specification). */
export function refuse(response: Response, status: 401 | 403): void {
  if (status === 401) response.set('WWW-Authenticate', challenge)
  response.set({ 'Content-Type': 'text/plain', 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' })
  response.status(status).end(status === 401 ? 'Unauthorized' : 'Forbidden')
}
