/** Refuses what the embedded store's commands cannot do with PostgreSQL, which has better ones of its own. */
import { CommandError } from './exit-with-error.ts'

/** @throws {CommandError} */
export function refusePostgres({ DATABASE_URL }: NodeJS.ProcessEnv): void {
  if (!DATABASE_URL) return
  throw new CommandError(
    [
      'DATABASE_URL is set: this command is for the embedded store. Back up PostgreSQL with its own tools, such as',
      `\`pg_dump --format=custom --schema='execution_service*' --file=FILE "$DATABASE_URL"\` and`,
      '`pg_restore --clean --if-exists --dbname="$DATABASE_URL" FILE` with all processes stopped,',
      'or pg_basebackup with its write-ahead log, and keep the encryption key apart.',
    ].join('\n'),
  )
}
