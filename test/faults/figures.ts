/** Collects what fault tests count, for the table in `docs/reliability.md`. */
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Figures {
  /** Requests acknowledged with 202. */
  acknowledged?: number
  /** Processes, or groups of them, killed. */
  killed?: number
  /** Acknowledged, but missing afterwards. */
  lost?: number
  /** Happened twice, but may happen only once. */
  duplicated?: number
  /** Requests refused with any status. */
  refused?: number
  /** Duration of what the promise bounds. */
  seconds?: number
}

interface Experiment {
  /** `P1` to `P16`. */
  promise: string
  store: string
  /** What the test did. */
  fault: string
}

export type Finding = Experiment & ({ figures: Figures; remark?: string } | { /** The reason. */ skipped: string })

/** The environment variable with the directory for figures. */
export const directoryVariable = 'TEST_FIGURES'

export function record(finding: Finding): void {
  const directory = process.env[directoryVariable]
  if (!directory)
    throw new Error(`${directoryVariable} is not set: the project in vitest.config.ts lacks print-figures.ts.`)
  writeFileSync(join(directory, `${randomUUID()}.json`), JSON.stringify(finding))
}
