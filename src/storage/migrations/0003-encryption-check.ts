/** A known encrypted value, with which a process verifies its keys. */
import type { ColumnTypes } from './migrations.ts'

export const script = ({ blob }: ColumnTypes) => `
CREATE TABLE encryption_check (id INTEGER PRIMARY KEY, value ${blob} NOT NULL)`
