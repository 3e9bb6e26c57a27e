/** Generates storage states of a given size in Playwright's format. */

export interface StateSize {
  name: string
  bytes: number
  cookies: number
  /** Number of sites with local storage. Restoring and reading open a page for each. */
  origins: number
}

export const stateSizes: StateSize[] = [
  { name: '5 KB', bytes: 5000, cookies: 10, origins: 1 },
  { name: '100 KB', bytes: 100_000, cookies: 40, origins: 4 },
  { name: '5 MB', bytes: 5_000_000, cookies: 100, origins: 10 },
]

const entryBytes = 1000

/** Splits local storage into many small entries, such as tokens, and one large entry per site, such as a cache. */
export function createState({ bytes, cookies, origins }: StateSize) {
  const state = {
    cookies: Array.from({ length: cookies }, (_, index) => ({
      name: `cookie-${index}`,
      value: createText(120),
      domain: `site-${index % origins}.example.com`,
      path: '/',
      expires: 1_900_000_000,
      httpOnly: index % 2 === 0,
      secure: true,
      sameSite: 'Lax' as const,
    })),
    origins: Array.from({ length: origins }, (_, index) => ({
      origin: `https://site-${index}.example.com`,
      localStorage: [] as { name: string; value: string }[],
    })),
  }
  const remaining = () => bytes - Buffer.byteLength(JSON.stringify(state))
  const each = remaining() / origins
  for (const { localStorage } of state.origins) {
    const small = Math.floor(each / 2 / entryBytes)
    for (let index = 0; index < small; index += 1) {
      localStorage.push({ name: `entry-${index}`, value: createText(entryBytes - 35) })
    }
    localStorage.push({ name: 'cache', value: '' })
  }
  const rest = Math.floor(remaining() / origins)
  for (const { localStorage } of state.origins) Object.assign(localStorage.at(-1) ?? {}, { value: createText(rest) })
  return state
}

/** Returns a deterministic text that does not compress well. */
function createText(length: number): string {
  let text = ''
  for (let number = 1; text.length < length; number = (number * 48_271) % 2_147_483_647) text += number.toString(36)
  return text.slice(0, length)
}
