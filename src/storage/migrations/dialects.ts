/** The little that migrations must say in another way for each store. */
import { type Kysely, type RawBuilder, sql } from 'kysely'

/** The type of a primary key that grows with every row. */
export function growingKey<Tables>(db: Kysely<Tables>): RawBuilder<unknown> {
  return isPostgres(db) ? sql`BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY` : sql`INTEGER PRIMARY KEY AUTOINCREMENT`
}

/** Text as Kysely's own statements make it: of two columns that are compared otherwise, no index of one serves the other. */
export function textType<Tables>(db: Kysely<Tables>): RawBuilder<unknown> {
  return isPostgres(db) ? sql`TEXT COLLATE "C"` : sql`TEXT`
}

function isPostgres<Tables>(db: Kysely<Tables>): boolean {
  // Of the two dialects, the only one that takes turns for migrations by a lock that the transaction holds.
  return db.getExecutor().adapter.supportsTransactionalDdl === true
}
