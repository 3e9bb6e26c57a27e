/**
 * Leases users and groups of `EXECUTOR_UIDS`: a user to each account, so that its processes reach neither files nor memory
 * of another account's, and a group to each deployment, so that only processes that execute it can read its files.
 *
 * A lease is a lock on a file, which the kernel releases with the worker: the workers of a machine share a range.
 */
import { chownSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigError } from '../../config/setting-kinds.ts'
import { lockFile } from '../../storage/temporary-directory.ts'
import type { Identity, UserRange } from './executor-identity.ts'
import { ProcessReaper } from './process-reaper.ts'
import { WorkflowError } from './workflow.ts'

/** Only root can create files there, so no workflow can take a lease. */
const locksDirectory = '/run/execution-service-users'

export interface ExecutorUser {
  uid: number
  /** Has the `TMPDIR` of each of its processes. Only they can read it. */
  directory: string
  reaper: ProcessReaper
}

interface Lease {
  id: number
  release(): void
}

export class ExecutorUsers {
  readonly #range: UserRange
  /** By account, least recently used first. */
  readonly #users = new Map<string, ExecutorUser & Lease>()
  /** By directory of a deployment. */
  readonly #groups = new Map<string, Lease>()

  /** @param range the first is for builds, and is leased to no account. */
  constructor(range: UserRange) {
    this.#range = range
    createLocksDirectory()
    this.#removeLeft()
  }

  /**
   * The user of an account. An account keeps its user while there are others.
   *
   * @param hasProcesses whether an account has processes, whose user it keeps.
   * @returns `undefined` if all are leased.
   */
  user(accountId: string, hasProcesses: (accountId: string) => boolean): ExecutorUser | undefined {
    const known = this.#users.get(accountId)
    if (known) this.#users.delete(accountId)
    const user = known ?? this.#leaseUser() ?? this.#takeOver(hasProcesses)
    if (user) this.#users.set(accountId, user)
    return user
  }

  /** The group that can read the files of a deployment; `undefined` if all are leased. */
  group(directory: string): number | undefined {
    const group = this.#groups.get(directory) ?? this.#lease('group')
    if (group) this.#groups.set(directory, group)
    return group?.id
  }

  /** Call it when the directory is removed. */
  releaseGroup(directory: string): void {
    this.#groups.get(directory)?.release()
    this.#groups.delete(directory)
  }

  close(): void {
    for (const { release } of [...this.#users.values(), ...this.#groups.values()]) release()
    this.#users.clear()
    this.#groups.clear()
  }

  #takeOver(hasProcesses: (accountId: string) => boolean): (ExecutorUser & Lease) | undefined {
    const accountId = [...this.#users.keys()].find((each) => !hasProcesses(each))
    if (accountId === undefined) return undefined
    this.#users.get(accountId)?.release()
    this.#users.delete(accountId)
    return this.#leaseUser()
  }

  #leaseUser(): (ExecutorUser & Lease) | undefined {
    const lease = this.#lease('user')
    if (!lease) return undefined
    const { id: uid } = lease
    // A worker that was killed may have left something of another account.
    removeAllOf(uid)
    const directory = mkdtempSync(join(tmpdir(), 'execution-service-account-'))
    chownSync(directory, uid, uid)
    const filesPrefix = () => directory
    const reaper = new ProcessReaper({ graceSeconds: 0, identity: { uid, gid: uid }, filesPrefix })
    const release = () => {
      reaper.close()
      removeAllOf(uid)
      lease.release()
    }
    return { id: uid, uid, directory, reaper, release }
  }

  /** What workers have left that were killed, of users without a lease. */
  #removeLeft(): void {
    const { first, last } = this.#range
    for (const uid of new Set(temporaryFiles().map((file) => file.uid ?? first))) {
      const lock = uid > first && uid <= last ? lockOf('user', uid) : undefined
      if (lock) removeAllOf(uid)
      lock?.release()
    }
  }

  #lease(kind: LeaseKind): Lease | undefined {
    const own = new Set([...(kind === 'user' ? this.#users : this.#groups).values()].map(({ id }) => id))
    for (let id = this.#range.first + 1; id <= this.#range.last; id += 1) {
      const lock = own.has(id) ? undefined : lockOf(kind, id)
      if (lock) return { id, ...lock }
    }
    return undefined
  }
}

/**
 * Leases a user and its group to a build, if there is a range of them: the last one that is free, and the first one of the
 * range if accounts have all others. What the build leaves ends with the lease.
 *
 * @throws {WorkflowError} if all are leased.
 */
export function leaseBuilder(identity: Identity): { identity: Identity; release(): void } {
  if (!identity?.range) return { identity, release: () => {} }
  const { first, last } = identity.range
  createLocksDirectory()
  for (let id = last; id >= first; id -= 1) {
    const user = lockOf('user', id)
    const group = user && lockOf('group', id)
    if (user && group) {
      removeAllOf(id)
      const release = () => {
        removeAllOf(id)
        group.release()
        user.release()
      }
      return { identity: { uid: id, gid: id }, release }
    }
    user?.release()
  }
  throw new WorkflowError('Nothing was built: all users of EXECUTOR_UIDS on the machine are in use.')
}

function createLocksDirectory(): void {
  try {
    mkdirSync(locksDirectory, { mode: 0o700, recursive: true })
  } catch (error) {
    throw new ConfigError(`EXECUTOR_UIDS is set, and ${locksDirectory} cannot be created: ${(error as Error).message}.`)
  }
}

type LeaseKind = 'user' | 'group'

/** @returns undefined when a worker has it. */
const lockOf = (kind: LeaseKind, id: number) => lockFile(join(locksDirectory, `${kind}-${id}`), 0)

const roundsMax = 20

/** Kills the user's processes, also those that fork meanwhile, and removes its temporary files. */
function removeAllOf(uid: number): void {
  for (let round = 0; round < roundsMax && killAllOf(uid); round += 1);
  for (const file of temporaryFiles()) if (file.uid === uid) rmSync(file.path, { recursive: true, force: true })
}

/** With the user of each. */
function temporaryFiles(): { path: string; uid: number | undefined }[] {
  const roots = [...new Set([tmpdir(), '/tmp', '/var/tmp', '/dev/shm'])]
  const paths = roots.flatMap((root) => namesIn(root).map((name) => join(root, name)))
  return paths.map((path) => ({ path, uid: lstatSync(path, { throwIfNoEntry: false })?.uid }))
}

/** @returns whether there were any. */
function killAllOf(uid: number): boolean {
  const pids = namesIn('/proc').filter((name) => /^\d+$/.test(name) && isOf(uid, name))
  for (const pid of pids) {
    try {
      process.kill(Number(pid), 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
  return pids.length > 0
}

/** Zombies have ended: they wait for their parent. */
function isOf(uid: number, pid: string): boolean {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return new RegExp(`^Uid:\\t${uid}\\t`, 'm').test(status) && !/^State:\tZ/m.test(status)
  } catch {
    return false
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}
