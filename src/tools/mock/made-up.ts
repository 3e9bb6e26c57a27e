/** Keeps short what Prism makes up: it takes the greatest length that a schema permits, of a list of lists too. */
import type { IHttpOperation } from '@stoplight/types'

/** Long enough to see that it is a list. A hundred runs of twenty artifacts each were 440 KB. */
const itemsMax = 3

interface Schema {
  maxItems?: number
  properties?: { data?: Schema; nextCursor?: Schema }
}

/** A copy whose pages have that many items, and whose other lists have a few. */
export function shortened(operation: IHttpOperation, pageLength = itemsMax): IHttpOperation {
  const copy = structuredClone(operation)
  shorten(copy.responses, new Set())
  for (const { contents = [] } of copy.responses) {
    for (const { schema } of contents) {
      const { data, nextCursor } = (schema as Schema | undefined)?.properties ?? {}
      if (data && nextCursor) data.maxItems = pageLength
    }
  }
  return copy
}

function shorten(value: unknown, seen: Set<object>): void {
  if (typeof value !== 'object' || value === null || seen.has(value)) return
  seen.add(value)
  const schema = value as Schema
  if (typeof schema.maxItems === 'number') schema.maxItems = Math.min(schema.maxItems, itemsMax)
  for (const member of Object.values(value)) shorten(member, seen)
}
