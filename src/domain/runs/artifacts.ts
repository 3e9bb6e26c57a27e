/** Files that runs make, such as a PDF or a screenshot: kept in the store for some days. */

import { dayMilliseconds, type PurgeTarget, takeBatch } from '../../storage/purge-target.ts'
import { inList, parseId } from '../../storage/statement-values.ts'
import type { Store, Transaction } from '../../storage/store.ts'

/** As the document's ArtifactMediaType has them. */
export const artifactMediaTypes = [
  'application/octet-stream',
  'application/json',
  'application/pdf',
  'application/zip',
  'image/jpeg',
  'image/png',
  'image/webp',
  'text/csv',
  'text/plain',
] as const

export type ArtifactMediaType = (typeof artifactMediaTypes)[number]

export interface Artifact {
  name: string
  mediaType: ArtifactMediaType
  sizeBytes: number
  createdAt: number
  /** When it is removed. */
  expiresAt: number
}

export const artifactBytesMax = 10 * 1024 * 1024
/** Of one run. */
export const artifactsMax = 20
export const artifactBytesOfRunMax = 50 * 1024 * 1024
/** How often one attempt may write one: what is replaced counts for no other limit, and each write has to reach the disk. */
export const artifactWritesMax = 100

/** As the document's ArtifactName has it: safe as a file's name and in a URL. */
export const artifactNamePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/

/** An artifact that cannot be kept; the message says why. */
export class ArtifactError extends Error {}

export interface NewArtifact {
  name: string
  mediaType: ArtifactMediaType
  content: Uint8Array
}

interface Row {
  run_id: string
  name: string
  media_type: ArtifactMediaType
  size_bytes: number
  created_at: number
}

const columns = 'run_id, name, media_type, size_bytes, created_at'
const putSql = `INSERT INTO artifacts (run_id, name, media_type, size_bytes, attempt, created_at, content)
  VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run_id, name) DO UPDATE SET media_type = excluded.media_type,
  size_bytes = excluded.size_bytes, attempt = excluded.attempt, created_at = excluded.created_at,
  content = excluded.content`
const othersSql = `SELECT COUNT(*) AS count, COALESCE(SUM(size_bytes), 0) AS bytes FROM artifacts
  WHERE run_id = ? AND name <> ?`
const readSql = `SELECT ${columns}, content FROM artifacts WHERE run_id = ? AND name = ? AND created_at > ?
  AND run_id IN (SELECT id FROM runs WHERE account_id = ?)`
const oldSql = `SELECT run_id, name, size_bytes FROM artifacts WHERE created_at <= ?
  ORDER BY created_at, run_id, name LIMIT 100`
const removeSql = 'DELETE FROM artifacts WHERE run_id = ? AND name = ?'

export class RunArtifacts {
  readonly #store: Store
  readonly #keptMilliseconds: number
  readonly #now: () => number

  constructor(store: Store, retentionDays: number, now: () => number = Date.now) {
    this.#store = store
    this.#keptMilliseconds = retentionDays * dayMilliseconds
    this.#now = now
  }

  /** The artifacts of the runs, oldest first, by run. */
  async of(runIds: readonly string[]): Promise<Map<string, Artifact[]>> {
    const found = new Map<string, Artifact[]>()
    if (runIds.length === 0) return found
    const { marks, values } = inList(runIds)
    const sql = `SELECT ${columns} FROM artifacts WHERE run_id IN (${marks}) AND created_at > ? ORDER BY created_at, name`
    for (const row of await this.#store.read.all<Row>(sql, [...values, this.#oldest()])) {
      found.set(row.run_id, [...(found.get(row.run_id) ?? []), this.#artifactOf(row)])
    }
    return found
  }

  /** The artifact with its bytes; `undefined` when the account has no such run or artifact. */
  async read(
    accountId: string,
    runId: string,
    name: string,
  ): Promise<(Artifact & { content: Uint8Array }) | undefined> {
    const id = parseId(runId)
    if (id === undefined) return undefined
    const values = [id, name, this.#oldest(), accountId]
    const [row] = await this.#store.read.all<Row & { content: Uint8Array }>(readSql, values)
    return row && { ...this.#artifactOf(row), content: row.content }
  }

  /** Those whose time is over. */
  get old(): PurgeTarget {
    type Old = Pick<Row, 'run_id' | 'name' | 'size_bytes'>
    const oldest = (tx: Transaction) => tx.all<Old>(oldSql, [this.#oldest()])
    return {
      next: async (tx) => {
        const [first] = await oldest(tx)
        return first && `${first.run_id}/${first.name}`
      },
      remove: async (tx) => {
        for (const { run_id, name } of takeBatch(await oldest(tx))) await tx.all(removeSql, [run_id, name])
      },
    }
  }

  #oldest(): number {
    return this.#now() - this.#keptMilliseconds
  }

  #artifactOf(row: Row): Artifact {
    return {
      name: row.name,
      mediaType: row.media_type,
      sizeBytes: row.size_bytes,
      createdAt: row.created_at,
      expiresAt: row.created_at + this.#keptMilliseconds,
    }
  }
}

/** @throws {ArtifactError} for what no run may keep. */
export function checkArtifact({ name, mediaType, content }: NewArtifact): void {
  if (!artifactNamePattern.test(name)) {
    throw new ArtifactError(
      `"${name}" cannot be an artifact's name: use up to 100 letters, digits, dots, underscores and hyphens, a letter or digit first.`,
    )
  }
  if (!artifactMediaTypes.includes(mediaType)) {
    throw new ArtifactError(
      `"${mediaType}" is no media type of artifacts: use one of ${artifactMediaTypes.join(', ')}.`,
    )
  }
  if (content.length > artifactBytesMax) {
    throw new ArtifactError(`${name} has ${content.length} bytes; an artifact may have ${artifactBytesMax}.`)
  }
}

/** Keeps the artifact, in place of one of the same name. @throws {ArtifactError} */
export async function putArtifact(
  tx: Transaction,
  { runId, attempt }: { runId: string; attempt: number },
  artifact: NewArtifact,
  at: number,
): Promise<void> {
  checkArtifact(artifact)
  const { name, mediaType, content } = artifact
  const [others] = await tx.all<{ count: number; bytes: number }>(othersSql, [runId, name])
  const { count = 0, bytes = 0 } = others ?? {}
  if (count >= artifactsMax) throw new ArtifactError(`A run may make ${artifactsMax} artifacts.`)
  if (bytes + content.length > artifactBytesOfRunMax) {
    throw new ArtifactError(`The artifacts of a run may have ${artifactBytesOfRunMax} bytes together.`)
  }
  await tx.all(putSql, [runId, name, mediaType, content.length, attempt, at, content])
}
