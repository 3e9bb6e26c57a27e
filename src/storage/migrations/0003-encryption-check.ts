/** A known encrypted value, with which a process verifies its keys. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('encryption_check')
    .addColumn('id', 'integer', (col) => col.primaryKey())
    .addColumn('value', 'blob', (col) => col.notNull())
    .execute()
}
