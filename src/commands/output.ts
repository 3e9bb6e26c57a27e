/** Output of commands: results and tables on standard output, errors for people on standard error. */
import { ConfigError } from '../config/setting-kinds.ts'
import { ListenError } from '../contract/listener.ts'
import { ApiKeyError } from '../domain/api-keys/api-key.ts'
import { WorkflowError } from '../domain/workflows/workflow.ts'
import { StoreTooNew } from '../storage/migrations/migrations.ts'
import { BackupError } from '../storage/sqlite/sqlite-backup.ts'
import { RoleError } from '../surfaces/roles.ts'

export function print(text: string): void {
  process.stdout.write(`${text}\n`)
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

/** A command that cannot do what was asked; the message says what to do instead. */
export class CommandError extends Error {}

/** Expected errors, which are printed without their stack. */
const expected = [
  BackupError,
  CommandError,
  ConfigError,
  WorkflowError,
  ApiKeyError,
  ListenError,
  RoleError,
  StoreTooNew,
]

/** Runs a command; on an error, prints its message, or its stack if it is unexpected, and exits with code 1. */
export async function exitOnError(command: () => Promise<unknown>): Promise<void> {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    // The reader, such as `head`, has closed the pipe.
    process.exit()
  })
  try {
    await command()
  } catch (error) {
    const isExpected = expected.some((kind) => error instanceof kind)
    process.stderr.write(`${isExpected ? (error as Error).message : (error as Error).stack}\n`)
    process.exit(1)
  }
}
