/** A value that opens under the installation's keys alone, by which a process knows that it has them. */
import type { Kysely } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('encryption_check')
    .addColumn('id', 'integer', (it) => it.primaryKey())
    .addColumn('value', 'blob', (it) => it.notNull())
    .execute()
}
