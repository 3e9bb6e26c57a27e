/** Storage states of a given size, as Playwright writes them. */

export interface StateSize {
  name: string
  bytes: number
  cookies: number
  /** Sites with local storage. Each costs a page of its own to restore and to read. */
  origins: number
}

export const stateSizes: StateSize[] = [
  { name: '5 KB', bytes: 5000, cookies: 10, origins: 1 },
  { name: '100 KB', bytes: 100_000, cookies: 40, origins: 4 },
  { name: '5 MB', bytes: 5_000_000, cookies: 100, origins: 10 },
]

const entryBytes = 1000

/** Half of it in many small entries, half in few large ones, as sites do: tokens here, cached answers there. */
export function stateOf({ bytes, cookies, origins }: StateSize) {
  const state = {
    cookies: Array.from({ length: cookies }, (_, index) => ({
      name: `cookie-${index}`,
      value: textOf(120),
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
  const room = () => bytes - Buffer.byteLength(JSON.stringify(state))
  const each = room() / origins
  for (const { localStorage } of state.origins) {
    const small = Math.floor(each / 2 / entryBytes)
    for (let index = 0; index < small; index += 1) {
      localStorage.push({ name: `entry-${index}`, value: textOf(entryBytes - 35) })
    }
    localStorage.push({ name: 'cache', value: '' })
  }
  const rest = Math.floor(room() / origins)
  for (const { localStorage } of state.origins) Object.assign(localStorage.at(-1) ?? {}, { value: textOf(rest) })
  return state
}

/** Not compressible to nothing, and always the same. */
function textOf(length: number): string {
  let text = ''
  for (let number = 1; text.length < length; number = (number * 48_271) % 2_147_483_647) text += number.toString(36)
  return text.slice(0, length)
}
