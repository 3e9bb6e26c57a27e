/** For runs that repeat others. */
import type { ColumnTypes } from './migrations.ts'

export const script = ({ text }: ColumnTypes) => `
ALTER TABLE runs ADD COLUMN rerun_of ${text}`
