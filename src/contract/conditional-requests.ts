/** Conditional and range requests (RFC 9110, sections 13 and 14). */

/** Whether one of the entity tags in `If-Match` is `etag`, by strong comparison; `*` matches any. */
export function matchesStrongly(header: string, etag: string): boolean {
  return header === '*' || entityTags(header).includes(etag)
}

/** Whether one of the entity tags in `If-None-Match` is `etag`, by weak comparison; `*` matches any. */
export function matchesWeakly(header: string, etag: string): boolean {
  return header === '*' || entityTags(header).some((tag) => tag.replace('W/', '') === etag)
}

/** Splits a tag that contains a comma. This is harmless, since the tags of this service contain none. */
function entityTags(header: string): string[] {
  return header.split(',').map((tag) => tag.trim())
}

/** Positions of the first and the last byte. */
export interface ByteRange {
  first: number
  last: number
}

/**
 * The bytes of a representation that a request asks for; `undefined` for all of them, because several ranges, other
 * units, malformed values, and ranges of another representation than `ifRange` are ignored.
 */
export function requestedRange(
  { range, ifRange }: { range: string | undefined; ifRange: string | undefined },
  { etag, sizeBytes }: { etag: string; sizeBytes: number },
): ByteRange | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=([0-9]*)-([0-9]*)$/i.exec(range ?? '') ?? []
  const isSingle = first !== '' ? last === '' || Number(last) >= Number(first) : last !== ''
  if (!isSingle || (ifRange !== undefined && ifRange !== etag)) return undefined
  const end = sizeBytes - 1
  if (first !== '') {
    return Number(first) > end
      ? 'unsatisfiable'
      : { first: Number(first), last: last === '' ? end : Math.min(Number(last), end) }
  }
  if (Number(last) === 0) return 'unsatisfiable'
  // No `Content-Range` can describe the last bytes of an empty representation.
  return sizeBytes === 0 ? undefined : { first: Math.max(0, sizeBytes - Number(last)), last: end }
}
