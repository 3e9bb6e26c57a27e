/** What fault tests have counted, and what they could not try: kept for the table that is printed at their end. */
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Figures {
  /** How many requests were acknowledged by 202. */
  acknowledged?: number
  /** How many processes, or groups of them, were killed. */
  killed?: number
  /** What was acknowledged and is not there. */
  lost?: number
  /** What happened twice and may happen once. */
  doubled?: number
  /** How many requests were refused, by any status. */
  refused?: number
  /** How long that took which the promise bounds. */
  seconds?: number
}

interface Tried {
  /** `P1` to `P16`. */
  promise: string
  store: string
  /** What was done, as the table says it. */
  fault: string
}

export type Finding = Tried &
  ({ figures: Figures /** Anything else that was counted. */; remark?: string } | { /** Why not. */ skipped: string })

/** Where the tests of the run find the directory for their figures. */
export const directoryVariable = 'TEST_FIGURES'

export function record(finding: Finding): void {
  const directory = process.env[directoryVariable]
  if (!directory)
    throw new Error('No directory for figures: the project in vitest.config.ts has no globalSetup for it.')
  writeFileSync(join(directory, `${randomUUID()}.json`), JSON.stringify(finding))
}
