/** Iterates over paginated lists. */
import type { Result } from './operation.ts'
import { ProblemError, unexpectedResponse } from './problem.ts'

export interface Page<Item> {
  data: Item[]
  /** Cursor of the next page; `null` on the last one. */
  nextCursor: string | null
}

/**
 * All items of a list: `for await (const item of list)`. Pages are fetched on demand; leaving the loop stops fetching.
 * A failed request throws a ProblemError.
 */
export interface List<Item> extends AsyncIterable<Item> {
  /** The same list page by page: `for await (const { data, nextCursor } of list.pages())`. */
  pages(): AsyncIterable<Page<Item>>
}

export function createList<Item>(fetchPage: (cursor: string | undefined) => Promise<Result<Page<Item>>>): List<Item> {
  async function* pages() {
    const cursors = new Set<string>()
    let cursor: string | undefined
    for (;;) {
      const { data, error, response }: Result<Page<Item>> = await fetchPage(cursor)
      if (error) throw new ProblemError(error)
      yield data
      if (!data.nextCursor) return
      cursor = data.nextCursor
      if (cursors.has(cursor))
        throw new ProblemError(unexpectedResponse(response, 'The pages of the list form a loop.'))
      cursors.add(cursor)
    }
  }
  return {
    pages,
    async *[Symbol.asyncIterator]() {
      for await (const { data } of pages()) yield* data
    },
  }
}
