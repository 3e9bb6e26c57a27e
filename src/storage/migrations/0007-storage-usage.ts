/** For storage quotas: how many bytes each account stores, as maintenance last measured it. */
import type { ColumnTypes } from './migrations.ts'

export const script = ({ text }: ColumnTypes) => `
CREATE TABLE storage_usage (account_id ${text} PRIMARY KEY REFERENCES accounts (id), bytes BIGINT NOT NULL)`
