/** Which artifacts are evidence of what an attempt's browser did; the others are files of workflows. */
import type { ColumnTypes } from './migrations.ts'

export const script = ({ text }: ColumnTypes) =>
  `ALTER TABLE artifacts ADD COLUMN kind ${text} NOT NULL DEFAULT 'workflow'`
