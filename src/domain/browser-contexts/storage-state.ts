/** Storage states: what Playwright writes of a browser's cookies and storage, as JSON text. */
import { isDeepStrictEqual } from 'node:util'

/** Of the JSON text, in UTF-8; the document says the same of a request's body. */
export const stateBytesMax = 5 * 1024 * 1024

/** What a browser context without a version holds. */
export const emptyState = JSON.stringify({ cookies: [], origins: [] })

/** As the document has it; no host's name is longer (RFC 1035, section 2.3.4). */
export const domainLengthMax = 253

/** How many are told of a state, as the document has it. */
const cookieDomainsMax = 100

/** As much of a storage state as the service looks at. */
export interface StorageState {
  cookies: readonly { domain: string; value: string }[]
  origins: readonly { origin: string }[]
}

/** What is told of a storage state without opening it. */
export interface StateSummary {
  sizeBytes: number
  /** Sorted, each once; the first of them. */
  cookieDomains: string[]
}

export function summarizeState(text: string): StateSummary {
  const { cookies } = JSON.parse(text) as StorageState
  const domains = new Set(cookies.map(({ domain }) => domain))
  return { sizeBytes: Buffer.byteLength(text), cookieDomains: [...domains].sort().slice(0, cookieDomainsMax) }
}

/** How long the longest domain of its cookies is. @throws when one has none. */
export function longestDomainLength(text: string): number {
  const { cookies } = JSON.parse(text) as StorageState
  return cookies.reduce((length, { domain }) => Math.max(length, [...domain].length), 0)
}

/** Whether two states hold the same: the order in which a browser tells them means nothing. */
export function isSameState(a: string, b: string): boolean {
  return a === b || isDeepStrictEqual(inOrder(a), inOrder(b))
}

type Named = { name?: string; domain?: string; path?: string; origin?: string }

function inOrder(text: string): object {
  const { cookies, origins, ...others } = JSON.parse(text) as { cookies: Named[]; origins: Origin[] }
  const sorted = <Item extends Named>(items: Item[]) => items.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
  const ordered = origins.map(({ localStorage, indexedDB, ...origin }) => ({
    ...origin,
    localStorage: sorted(localStorage),
    // Playwright tells that there is none by an empty list, or by nothing.
    indexedDB: indexedDB?.length ? indexedDB : undefined,
  }))
  return { cookies: sorted(cookies), origins: sorted(ordered), ...others }
}

type Origin = Named & { localStorage: Named[]; indexedDB?: unknown[] }

function keyOf({ name, domain, path, origin }: Named): string {
  return JSON.stringify([origin, domain, path, name])
}

/** Shorter ones are words like `true` or `en`, which would be masked all over the log and protect nothing. */
const maskedLengthMin = 8

/** The values of its cookies that no log may show. */
export function secretCookieValues(text: string): string[] {
  const { cookies } = JSON.parse(text) as StorageState
  return cookies.map(({ value }) => value).filter((value) => value.length >= maskedLengthMin)
}
