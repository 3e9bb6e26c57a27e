/** What a surface says to a caller who has made as many requests as they may: 429 with `Retry-After` and RateLimit headers. */
import { problemAnswer } from './answer.ts'
import type { LooseAnswer } from './exchange.ts'

/** That a principal may make no more requests for now. */
export interface RateLimitExceeded {
  /** How many requests they may make within the window. */
  requestsMax: number
  windowSeconds: number
  /** Seconds until the next request is admitted, at least 1. */
  retryAfterSeconds: number
}

/** Counts a request of the principal, and tells when it is one too many. */
export type Admit<P> = (principal: P) => Promise<RateLimitExceeded | undefined>

/** RateLimit headers as of draft-ietf-httpapi-ratelimit-headers-10. */
export function rateLimited({ requestsMax, windowSeconds, retryAfterSeconds }: RateLimitExceeded): LooseAnswer {
  const seconds = (count: number) => `${count} second${count === 1 ? '' : 's'}`
  const detail = `This API key may make ${requestsMax} requests in ${seconds(windowSeconds)}. Try again in ${seconds(retryAfterSeconds)}.`
  return problemAnswer(
    { kind: 'rate-limited', detail },
    {
      'Retry-After': String(retryAfterSeconds),
      RateLimit: `"api-key";r=0;t=${retryAfterSeconds}`,
      'RateLimit-Policy': `"api-key";q=${requestsMax};w=${windowSeconds}`,
    },
  )
}
