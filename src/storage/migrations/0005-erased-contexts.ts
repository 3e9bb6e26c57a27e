/** Browser contexts that are deleted while their versions are still being erased. */
import { type Kysely, sql } from 'kysely'

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('browser_contexts').addColumn('deleted_at', 'bigint').execute()
  await sql`CREATE INDEX browser_contexts_deleted ON browser_contexts (deleted_at)
    WHERE deleted_at IS NOT NULL`.execute(db)
}
