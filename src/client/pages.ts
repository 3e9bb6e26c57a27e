/** Lists of many pages, one item after the other. */
import type { Answer } from './operation.ts'
import { ProblemError, unexpectedAnswer } from './problem.ts'

/** A page of a list. */
export interface Page<Item> {
  data: Item[]
  /** Where the next page starts; `null` on the last one. */
  nextCursor: string | null
}

/**
 * All items of a list: `for await (const item of list)`. Pages are fetched as the loop needs them, and no more when it is
 * left. A failed request is thrown as a ProblemError.
 */
export interface List<Item> extends AsyncIterable<Item> {
  /** The same list by pages, for whoever shows them: `for await (const { data, nextCursor } of list.pages())`. */
  pages(): AsyncIterable<Page<Item>>
}

const leadsBack = 'The page names as the next one a page that the list already had, so that it would never end.'

export function listOf<Item>(pageAt: (cursor: string | undefined) => Promise<Answer<Page<Item>>>): List<Item> {
  async function* pages() {
    const cursors = new Set<string>()
    let cursor: string | undefined
    for (;;) {
      const { data, error, response }: Answer<Page<Item>> = await pageAt(cursor)
      if (error) throw new ProblemError(error)
      yield data
      if (!data.nextCursor) return
      cursor = data.nextCursor
      if (cursors.has(cursor)) throw new ProblemError(unexpectedAnswer(response, leadsBack))
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
