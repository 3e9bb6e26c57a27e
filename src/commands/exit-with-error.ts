/** Ends a command that cannot do its work with one sentence for the person who called it, and exit code 1. */

import { ConfigError } from '../config.ts'
import { ListenError } from '../contract/listener.ts'
import { ApiKeyError } from '../domain/api-keys/api-key.ts'
import { WorkflowError } from '../domain/workflows/workflow.ts'
import { StoreTooNew } from '../storage/migrations/migrations.ts'
import { BackupError } from '../storage/sqlite/sqlite-backup.ts'
import { RoleError } from '../surfaces/roles.ts'

/** A call that cannot be carried out as it was made; the message says how to call instead. */
export class CommandError extends Error {}

const forPeople = [
  BackupError,
  CommandError,
  ConfigError,
  WorkflowError,
  ApiKeyError,
  ListenError,
  RoleError,
  StoreTooNew,
]

export async function exitWithError(command: () => Promise<unknown>): Promise<void> {
  try {
    await command()
  } catch (error) {
    const known = forPeople.some((kind) => error instanceof kind)
    process.stderr.write(`${known ? (error as Error).message : (error as Error).stack}\n`)
    process.exit(1)
  }
}
