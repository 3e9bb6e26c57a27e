/** JSON Pointer (RFC 6901): the only code that escapes, unescapes and follows one. */

/** Member names and array indexes from the root of a value to a place in it. */
export type Path = readonly (string | number)[]

/** `['a/b', 0]` → `/a~1b/0`. */
export function toPointer(path: Path): string {
  return path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

/** `/a~1b/0` → `['a/b', '0']`; the empty pointer names the root. */
export function parsePointer(pointer: string): string[] {
  const tokens = pointer.split('/').slice(1)
  if (!pointer.includes('~')) return tokens
  return tokens.map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** The value at the pointer, or `undefined`. Inherited members do not count, so an untrusted pointer is safe. */
export function valueAt(root: unknown, pointer: string): unknown {
  let value = root
  for (const name of parsePointer(pointer)) {
    const isHolder = typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    if (!isHolder) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}
