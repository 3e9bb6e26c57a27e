/**
 * Control groups (cgroups(7), version 2) for processes that run the code of workflows, where this process may create them:
 * as root, or in a unit of systemd with `Delegate=yes`. A process cannot leave its control group without the right to change
 * it, so that all descendants are found, also those that have emptied their environment.
 */
import { chownSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Identity } from './executor-identity.ts'

const prefix = 'execution-service-'

/** Creates a control group for the processes of a reaper; `undefined` where that is not possible. */
export function createCgroup(reaperId: string): string | undefined {
  try {
    const own = ownCgroup()
    if (own === undefined) return undefined
    removeLeft(own)
    const path = join(own, `${prefix}${reaperId}`)
    mkdirSync(path)
    return path
  } catch {
    return undefined
  }
}

/** A process that starts takes an empty control group for one that was left, and removes it. */
const addTriesMax = 3

/** The control group of one process, below that of its reaper. */
export class ProcessCgroup {
  readonly #path: string
  readonly #identity: Identity

  /** @param identity the user of the reaper's shell, which kills the processes when this process was killed itself. */
  constructor(parent: string, name: string, identity: Identity) {
    this.#path = join(parent, name)
    this.#identity = identity
  }

  /** Call it before the process runs the code of workflows. Without effect if the machine permits no more control groups. */
  add(pid: number): void {
    for (let tries = 0; tries < addTriesMax; tries += 1) if (attempt(() => this.#add(pid))) return
  }

  #add(pid: number): void {
    mkdirSync(this.#path, { recursive: true })
    if (this.#identity) chownSync(join(this.#path, 'cgroup.kill'), this.#identity.uid, this.#identity.gid)
    writeFileSync(join(this.#path, 'cgroup.procs'), String(pid))
  }

  kill(): void {
    attempt(() => writeFileSync(join(this.#path, 'cgroup.kill'), '1'))
  }

  /** Has no effect while it has processes. */
  remove(): void {
    attempt(() => rmdirSync(this.#path))
  }
}

/** Kills all processes of a reaper. Its control group is removed, or is left to `createCgroup` until they have ended. */
export function killCgroup(path: string): void {
  attempt(() => writeFileSync(join(path, 'cgroup.kill'), '1'))
  attempt(() => removeCgroup(path))
}

function removeCgroup(path: string): void {
  for (const name of directoriesIn(path)) attempt(() => rmdirSync(join(path, name)))
  attempt(() => rmdirSync(path))
}

function ownCgroup(): string | undefined {
  const mount = /^\S+ (\S+) cgroup2 /m.exec(readFileSync('/proc/self/mounts', 'utf8'))?.[1]
  const path = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1]
  return mount === undefined || path === undefined ? undefined : join(mount, path)
}

/** Those of workers that were killed. A control group with processes cannot be removed. */
function removeLeft(own: string): void {
  for (const name of directoriesIn(own)) if (name.startsWith(prefix)) attempt(() => removeCgroup(join(own, name)))
}

function directoriesIn(path: string): string[] {
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? entry.name : []))
}

/** Whether it succeeded. */
function attempt(act: () => void): boolean {
  try {
    act()
    return true
  } catch {
    // The processes have ended, or there are still some.
    return false
  }
}
