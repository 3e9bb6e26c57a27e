/** The user that runs the code of workflows: EXECUTOR_UID, the first of EXECUTOR_UIDS, or that of the service. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Config } from '../../config/config.ts'
import { ConfigError } from '../../config/setting-kinds.ts'

/** `undefined` for the user of this process. With a range of users, each build leases one of it (`leaseBuilder`). */
export type Identity = { uid: number; gid: number; range?: UserRange } | undefined

export interface UserRange {
  first: number
  last: number
}

const unreadable = 'for each; do [ -r "$each" ] && continue; echo "$each"; exit 1; done'

/** @throws {ConfigError} if this process cannot start processes of that user, or that user cannot run workflows. */
export function executorIdentity({ EXECUTOR_UID, EXECUTOR_UIDS, WORKFLOWS_DIR }: Config): Identity {
  if (EXECUTOR_UID !== undefined && EXECUTOR_UIDS) throw new ConfigError('Set EXECUTOR_UID or EXECUTOR_UIDS, not both.')
  const uid = EXECUTOR_UID ?? EXECUTOR_UIDS?.first
  if (uid === undefined) return undefined
  const name = EXECUTOR_UIDS ? 'EXECUTOR_UIDS' : 'EXECUTOR_UID'
  if (process.getuid?.() !== 0) {
    throw new ConfigError(
      `${name} is set, and only root can start processes of another user: start the service as root, or unset ${name}.`,
    )
  }
  const identity = { uid, gid: primaryGroup(uid), ...(EXECUTOR_UIDS && { range: EXECUTOR_UIDS }) }
  const paths = [process.execPath, fileURLToPath(import.meta.url), ...(WORKFLOWS_DIR ? [WORKFLOWS_DIR] : [])]
  const { status, stdout } = spawnSync('/bin/sh', ['-c', unreadable, 'sh', ...paths], { ...identity, encoding: 'utf8' })
  if (status === 0) return identity
  throw new ConfigError(
    `${name} is ${uid}, which cannot read ${stdout?.trim() || '/bin/sh'}: give this user access, or set another user.`,
  )
}

/** The user that builds deployments: code of workflows runs while they are loaded. Others than root build as themselves. */
export function builderIdentity(config: Config): Identity {
  return process.getuid?.() === 0 ? executorIdentity(config) : undefined
}

/** A user that is not in the list of users has a group with its own number. */
function primaryGroup(uid: number): number {
  const [, gid] = new RegExp(`^[^:]*:[^:]*:${uid}:(\\d+):`, 'm').exec(readFileSync('/etc/passwd', 'utf8')) ?? []
  return Number(gid ?? uid)
}
