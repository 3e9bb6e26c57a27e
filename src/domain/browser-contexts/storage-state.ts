/** Storage states: cookies and storage of a browser as Playwright exports them, as JSON text. */
import { isDeepStrictEqual } from 'node:util'

/**
 * The browser's storage state as JSON, or why it is missing. A state above the size limit is not sent to the worker.
 * `undefined` when it was not requested.
 */
export type CapturedState = { json: string } | { tooLarge: number } | { unreadable: string } | undefined

/** Maximum length of the JSON text in UTF-8, as in the OpenAPI document. */
export const stateBytesMax = 5 * 1024 * 1024

/** The state of a browser context without versions. */
export const emptyState = JSON.stringify({ cookies: [], origins: [] })

/** Maximum length of `cookieDomains`, as in the OpenAPI document. */
const cookieDomainsMax = 100

/** The members of a storage state that the service reads. */
export interface StorageState {
  cookies: readonly { domain: string; value: string }[]
  origins: readonly { origin: string }[]
}

/** Stored unencrypted with a version. */
interface StateSummary {
  sizeBytes: number
  /** Distinct and sorted; the first 100. */
  cookieDomains: string[]
}

export function summarizeState(text: string): StateSummary {
  const { cookies } = JSON.parse(text) as StorageState
  const domains = new Set(cookies.map(({ domain }) => domain))
  return { sizeBytes: Buffer.byteLength(text), cookieDomains: [...domains].sort().slice(0, cookieDomainsMax) }
}

/** Whether two states are equal apart from the order of their entries, which browsers do not preserve. */
export function isSameState(a: string, b: string): boolean {
  return a === b || isDeepStrictEqual(normalize(a), normalize(b))
}

type Named = { name?: string; domain?: string; path?: string; origin?: string }
type Origin = Named & { localStorage: Named[]; indexedDB?: unknown[] }

function normalize(text: string): object {
  const { cookies, origins, ...others } = JSON.parse(text) as { cookies: Named[]; origins: Origin[] }
  const sort = <Item extends Named>(items: Item[]) => items.sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1))
  const normalized = origins.map(({ localStorage, indexedDB, ...origin }) => ({
    ...origin,
    localStorage: sort(localStorage),
    // Playwright exports missing databases as an empty list or not at all.
    indexedDB: indexedDB?.length ? indexedDB : undefined,
  }))
  return { cookies: sort(cookies), origins: sort(normalized), ...others }
}

function sortKey({ name, domain, path, origin }: Named): string {
  return JSON.stringify([origin, domain, path, name])
}

/** Shorter values are words such as `true` or `en`: masking them would garble the log and protect nothing. */
const maskedLengthMin = 8
/** Browsers store no longer ones (RFC 6265, section 6.1). A pattern of a much longer one does not compile. */
const maskedLengthMax = 4096

/** The cookie values that logs must not show. */
export function secretCookieValues(text: string): string[] {
  const { cookies } = JSON.parse(text) as StorageState
  return cookies
    .map(({ value }) => value)
    .filter(({ length }) => length >= maskedLengthMin && length <= maskedLengthMax)
}
