/** Artifacts: files that runs produce, such as a PDF or a screenshot, stored until their retention ends. */
import type { ByteRange } from '../../contract/conditional-requests.ts'
import { Contents } from '../../storage/blobs/contents.ts'
import { dayMilliseconds, type PurgeTarget, takeBatch } from '../../storage/purge-target.ts'
import { runsOfAccount } from '../../storage/runs/run-lookups.ts'
import { inList, parseId } from '../../storage/statement-values.ts'
import { type Store, statement } from '../../storage/store.ts'
import type { Artifact, ArtifactKind } from '../runs/artifact.ts'
import type { Sized } from '../sized.ts'
import type { ArtifactMediaType } from '../workflows/define-workflow.ts'

type SelectRange = (artifact: Artifact) => ByteRange | 'unsatisfiable' | undefined

export interface ReadArtifact extends Artifact {
  range: ReturnType<SelectRange>
  content: Uint8Array
}

interface Row {
  run_id: string
  name: string
  kind: ArtifactKind
  attempt: number
  media_type: ArtifactMediaType
  size_bytes: number
  created_at: number
}

const columns = 'run_id, name, media_type, size_bytes, created_at, kind, attempt'

const findArtifact = statement<
  Row & { blob: string | null },
  [runId: string, name: string, createdAfter: number, accountId: string]
>(
  `SELECT ${columns}, blob FROM artifacts WHERE run_id = ? AND name = ? AND created_at > ?
    AND run_id IN (${runsOfAccount})`,
)
const readContent = statement<
  { content: Uint8Array | null; blob: string | null },
  [firstByte: number, bytes: number, runId: string, name: string, createdAt: number]
>(`SELECT substr(content, ?, ?) AS content, blob FROM artifacts
  WHERE run_id = ? AND name = ? AND created_at = ?`)
const findExpired = statement<Pick<Row, 'run_id' | 'name' | 'size_bytes'>, [createdUpTo: number]>(
  `SELECT run_id, name, size_bytes FROM artifacts WHERE created_at <= ? ORDER BY created_at, run_id, name LIMIT 100`,
)
export const deleteArtifact = statement<object, [runId: string, name: string]>(
  'DELETE FROM artifacts WHERE run_id = ? AND name = ?',
)

export class RunArtifacts {
  readonly #store: Store
  readonly #retentionMilliseconds: number
  readonly #now: () => number
  readonly #contents: Contents

  constructor(
    store: Store,
    retentionDays: number,
    now: () => number = Date.now,
    contents: Contents = new Contents(store),
  ) {
    this.#store = store
    this.#contents = contents
    this.#retentionMilliseconds = retentionDays * dayMilliseconds
    this.#now = now
  }

  /** The artifacts of each run, oldest first. */
  async findByRun(runIds: readonly string[]): Promise<Map<string, Artifact[]>> {
    const found = new Map<string, Artifact[]>()
    if (runIds.length === 0) return found
    const { marks, values } = inList(runIds)
    const sql = `SELECT ${columns} FROM artifacts WHERE run_id IN (${marks}) AND created_at > ? ORDER BY created_at, name`
    for (const row of await this.#store.read.all<Row>(sql, [...values, this.#expiredSince()])) {
      found.set(row.run_id, [...(found.get(row.run_id) ?? []), this.#toArtifact(row)])
    }
    return found
  }

  async read(accountId: string, runId: string, name: string): Promise<ReadArtifact | undefined> {
    return (await this.find(accountId, runId, name))?.read()
  }

  /**
   * The artifact to read with the bytes that `select` chooses, by default all of them; `undefined` when the account has no
   * such run or artifact.
   */
  async find(
    accountId: string,
    runId: string,
    name: string,
    select?: SelectRange,
  ): Promise<Sized<ReadArtifact | undefined> | undefined> {
    const id = parseId(runId)
    if (id === undefined) return undefined
    const [row] = await this.#store.read.all(findArtifact, [id, name, this.#expiredSince(), accountId])
    if (!row) return undefined
    const artifact = this.#toArtifact(row)
    const range = select?.(artifact)
    const forget = () => {}
    if (range === 'unsatisfiable') {
      return { sizeBytes: 0, forget, read: async () => ({ ...artifact, range, content: new Uint8Array() }) }
    }
    const { first, last } = range ?? { first: 0, last: row.size_bytes - 1 }
    const sizeBytes = last - first + 1
    const read = async (): Promise<ReadArtifact | undefined> => {
      const [found] = await this.#store.read.all(readContent, [first + 1, sizeBytes, id, name, row.created_at])
      // SQLite reads an empty file as NULL.
      const inRow = found?.content ?? new Uint8Array()
      const content = found?.blob ? await this.#contents.readBlob(found.blob, first, sizeBytes) : found && inRow
      if (content) return { ...artifact, range, content }
      // It was replaced or removed between the two statements.
      if (!found || (await this.#isReplaced(id, name, row.created_at)))
        return (await this.find(accountId, runId, name, select))?.read()
      throw new Error(`The content of the artifact ${name} of the run ${runId} is missing: see ARTIFACTS_URL.`)
    }
    return { sizeBytes, forget, isRemote: row.blob !== null, read }
  }

  async #isReplaced(id: string, name: string, createdAt: number): Promise<boolean> {
    return (await this.#store.read.all(readContent, [1, 0, id, name, createdAt])).length === 0
  }

  get expired(): PurgeTarget {
    return {
      next: async (tx) => {
        const [first] = await tx.all(findExpired, [this.#expiredSince()])
        return first && `${first.run_id}/${first.name}`
      },
      remove: async (tx) => {
        const batch = takeBatch(await tx.all(findExpired, [this.#expiredSince()]))
        for (const { run_id, name } of batch) await tx.all(deleteArtifact, [run_id, name])
      },
    }
  }

  /** Artifacts created up to this time have expired. */
  #expiredSince(): number {
    return this.#now() - this.#retentionMilliseconds
  }

  #toArtifact(row: Row): Artifact {
    return {
      name: row.name,
      kind: row.kind,
      attempt: row.attempt,
      mediaType: row.media_type,
      sizeBytes: row.size_bytes,
      createdAt: row.created_at,
      expiresAt: row.created_at + this.#retentionMilliseconds,
    }
  }
}
