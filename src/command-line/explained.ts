/** Ends a command that cannot do its work with one sentence for the person who called it, and exit code 1. */
import { ApiKeyRefused } from '../api-keys/api-key.ts'
import { ConfigRefused } from '../config.ts'
import { ListenRefused } from '../contract/listener.ts'
import { RoleRefused } from '../roles.ts'
import { StoreTooNew } from '../storage/migrations/migrations.ts'
import { BackupRefused } from '../storage/sqlite/backup.ts'
import { WorkflowRefused } from '../workflows/workflow.ts'

/** A call that cannot be carried out as it was made; the message says how to call instead. */
export class CallRefused extends Error {}

const forPeople = [
  BackupRefused,
  CallRefused,
  ConfigRefused,
  WorkflowRefused,
  ApiKeyRefused,
  ListenRefused,
  RoleRefused,
  StoreTooNew,
]

export async function explained(command: () => Promise<unknown>): Promise<void> {
  try {
    await command()
  } catch (error) {
    const known = forPeople.some((kind) => error instanceof kind)
    process.stderr.write(`${known ? (error as Error).message : (error as Error).stack}\n`)
    process.exit(1)
  }
}
