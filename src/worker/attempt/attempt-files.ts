/** Writes the files of a run where its workflow can read them, and removes them after the attempt. */
import { randomUUID } from 'node:crypto'
import { chmodSync, rmSync } from 'node:fs'
import { chmod, chown, mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { FileOfRun } from '../../domain/files/file-of-run.ts'
import type { Files } from '../../domain/files/files.ts'
import type { Claim } from '../../domain/queue/attempts.ts'
import { secretsAad } from '../../domain/runs/run.ts'
import type { Identity } from '../../domain/workflows/executor-identity.ts'
import { insertSecrets } from '../../domain/workflows/secrets.ts'
import type { FileVariable, Workflows } from '../../domain/workflows/workflows.ts'
import type { ValueEncryption } from '../../storage/encryption.ts'
import { createTemporaryDirectory, type TemporaryDirectory } from '../../storage/temporary-directory.ts'
import { retryUntilAvailable } from './reporter.ts'

/** Where the files of runs are: in the store, or behind the service. */
export interface FileSource {
  /** @throws {FileMissing} */
  find(claim: Claim, variables: readonly FileVariable[]): Promise<FileOfRun[]>
  /** @throws {StoreUnavailable} when a later call may succeed. */
  read(claim: Claim, file: FileOfRun): AsyncIterable<Uint8Array>
}

export function storedFiles(files: Pick<Files, 'findOfRun' | 'stream'>): FileSource {
  return {
    find: ({ runId }, variables) => files.findOfRun(runId, variables),
    read: (_claim, file) => files.stream(file).chunks,
  }
}

export interface PreparedFiles {
  /** By JSON Pointer in the variables. */
  paths: Readonly<Record<string, string>>
  /** By path. */
  ids: ReadonlyMap<string, string>
  remove(): void
}

/** Executors may enter it, and see only the directories whose names they know. */
const rootMode = 0o711

interface Dependencies {
  source: FileSource
  encryption: ValueEncryption
}

export class AttemptFiles {
  readonly #dependencies: Dependencies
  #root: TemporaryDirectory | undefined

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  /**
   * Resolves with nothing when the variables name no file.
   *
   * @param identity the user that executes the attempt, if not the worker's.
   * @throws {FileMissing}
   */
  async prepare(claim: Claim, workflows: Workflows, identity: Identity): Promise<PreparedFiles | undefined> {
    if (!workflows.takesFiles(claim.workflowId)) return undefined
    const { source, encryption } = this.#dependencies
    const { secrets, accountId, runId, variables } = claim
    const values = secrets ? JSON.parse(encryption.decrypt(secrets, secretsAad(accountId, runId))) : {}
    const named = workflows.filesIn(claim.workflowId, insertSecrets(variables, values))
    if (named.length === 0) return undefined
    const found = await retryUntilAvailable(() => source.find(claim, named))
    const directory = join(this.#open(), randomUUID())
    const remove = () => rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
    try {
      await mkdir(directory, { mode: 0o700 })
      const paths: Record<string, string> = {}
      const ids = new Map<string, string>()
      for (const file of found) {
        const path = join(directory, file.id, file.name)
        paths[file.pointer] = path
        if (ids.has(path)) continue
        ids.set(path, file.id)
        await this.#write(claim, file, path, identity)
      }
      if (identity) await chown(directory, identity.uid, identity.gid)
      return { paths, ids, remove }
    } catch (error) {
      remove()
      throw error
    }
  }

  close(): void {
    this.#root?.remove()
    this.#root = undefined
  }

  #open(): string {
    if (!this.#root) {
      this.#root = createTemporaryDirectory('files')
      chmodSync(this.#root.path, rootMode)
    }
    return this.#root.path
  }

  /** Each file has a directory, so that equal names do not meet. It becomes the executor's when it is complete. */
  async #write(claim: Claim, file: FileOfRun, path: string, identity: Identity): Promise<void> {
    const directory = join(path, '..')
    await mkdir(directory, { mode: 0o700 })
    await retryUntilAvailable(async () => {
      const handle = await open(path, 'w', 0o600)
      try {
        for await (const chunk of this.#dependencies.source.read(claim, file)) await handle.writeFile(chunk)
      } finally {
        await handle.close()
      }
    })
    await chmod(path, 0o400)
    if (!identity) return
    await chown(path, identity.uid, identity.gid)
    await chown(directory, identity.uid, identity.gid)
  }
}
