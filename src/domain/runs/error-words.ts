/** The words of errors, by which `listRuns` finds failed runs. */
import { errorTerm, termRows } from '../../storage/run-terms.ts'
import type { Transaction } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables/run-tables.ts'
import type { RunError } from './run-state.ts'

/** Each word is two rows: 24 words cover most messages, and cost about 5 KB. */
const wordsMax = 24
const wordLengthMax = 64

/** The first different words of a text, in lower case. Longer words are left out. */
export function errorWords(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{M}\p{N}_]+/gu) ?? []
  return [...new Set(words.filter(({ length }) => length <= wordLengthMax))].slice(0, wordsMax)
}

/** Makes a run that has just failed or timed out findable by its error. @param json as it is stored. */
export async function insertErrorWords(
  tx: Transaction,
  run: Pick<RunsTable, 'id' | 'account_id' | 'workflow_id' | 'status'>,
  json: string,
): Promise<void> {
  const { name, message }: RunError = JSON.parse(json)
  const words = errorWords(`${name} ${message}`)
  if (words.length > 0) {
    await tx.statements.insertTerms(
      tx,
      words.flatMap((word) => termRows(run, errorTerm(word))),
    )
  }
}
