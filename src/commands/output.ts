/** Output of commands: results and tables on standard output, errors for people on standard error. */
import { inspect } from 'node:util'
import { ConfigError } from '../config/setting-kinds.ts'
import { ListenError } from '../contract/listener.ts'
import { UserError } from '../domain/accounts/user.ts'
import { ApiKeyError } from '../domain/api-keys/api-key.ts'
import { WorkflowError } from '../domain/workflows/workflow.ts'
import { RoleError } from '../surfaces/roles.ts'
import { CommandError } from './command-error.ts'

export { CommandError }

export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** After this time, a person wants to know what a command waits for. */
const silentMilliseconds = 2000

/** Says what the command does if that takes longer than two seconds: on standard error, so that results stay alone. */
export async function announce<Result>(what: string, work: Promise<Result>): Promise<Result> {
  const timer = setTimeout(() => process.stderr.write(`${what} …\n`), silentMilliseconds)
  return work.finally(() => clearTimeout(timer))
}

/** Formats rows with the same members as a table with a header. */
export function table(rows: Record<string, unknown>[]): string {
  const names = Object.keys(rows[0] ?? {})
  const text = (value: unknown) => (value === null ? '-' : String(value))
  const widths = names.map((name) => Math.max(name.length, ...rows.map((row) => text(row[name]).length)))
  const line = (cells: string[]) =>
    cells
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd()
  return [line(names), ...rows.map((row) => line(names.map((name) => text(row[name]))))].join('\n')
}

/** Whether the error is expected, and printed without its stack. Loads the store's code only now. */
async function isExpected(error: unknown): Promise<boolean> {
  const expected = [CommandError, ConfigError, WorkflowError, ApiKeyError, UserError, ListenError, RoleError]
  if (expected.some((kind) => error instanceof kind)) return true
  const [{ EnvironmentError }, { StoreTooNew }, { StoreMoved }, { BackupError }] = await Promise.all([
    import('../domain/accounts/environments.ts'),
    import('../storage/migrations/migrations.ts'),
    import('../storage/sqlite/moved-store.ts'),
    import('../storage/sqlite/sqlite-backup.ts'),
  ])
  return [EnvironmentError, StoreTooNew, StoreMoved, BackupError].some((kind) => error instanceof kind)
}

/** Runs a command. On an error, prints its message, or its stack and causes if it is unexpected, and exits with code 1. */
export async function exitOnError(command: () => Promise<unknown>): Promise<void> {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    // The reader, such as `head`, has closed the pipe.
    process.exit()
  })
  try {
    await command()
  } catch (error) {
    process.stderr.write(`${(await isExpected(error)) ? (error as Error).message : inspect(error)}\n`)
    process.exit(1)
  }
}
