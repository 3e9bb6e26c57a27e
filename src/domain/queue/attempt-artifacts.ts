/** Stores the artifacts of an attempt: those of its workflow, and evidence. */
import { type Contents, discardBlob, ifUploaded, type StoredContent, useBlob } from '../../storage/blobs/contents.ts'
import { type Store, statement, type Transaction } from '../../storage/store.ts'
import {
  ArtifactError,
  type ArtifactKind,
  checkArtifact,
  checkArtifactsOfRun,
  evidenceAttemptsMax,
  evidenceFilesMax,
  type NewArtifact,
} from '../runs/artifact.ts'
import type { ArtifactMediaType } from '../workflows/define-workflow.ts'

const upsertArtifact = statement<
  { blob: string | null },
  [string, string, ArtifactMediaType, number, number, ArtifactKind, number, Uint8Array, string | null]
>(
  // The time increases with each replacement, even when clocks differ, because it is the ETag.
  `INSERT INTO artifacts (run_id, name, media_type, size_bytes, created_at, kind, attempt, content, blob)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (run_id, name) DO UPDATE SET media_type = excluded.media_type, size_bytes = excluded.size_bytes,
    created_at = CASE WHEN excluded.created_at > artifacts.created_at THEN excluded.created_at
      ELSE artifacts.created_at + 1 END, attempt = excluded.attempt, kind = excluded.kind, content = excluded.content,
    blob = excluded.blob WHERE excluded.kind = 'workflow' OR artifacts.kind = 'evidence' RETURNING blob`,
)
const sumOthers = statement<{ count: number; bytes: number }, [runId: string, name: string]>(
  `SELECT COUNT(*) AS count, COALESCE(SUM(size_bytes), 0) AS bytes FROM artifacts
    WHERE run_id = ? AND name <> ? AND kind = 'workflow'`,
)
const countOtherEvidence = statement<{ count: number }, [runId: string, attempt: number, name: string]>(
  `SELECT COUNT(*) AS count FROM artifacts WHERE run_id = ? AND attempt = ? AND name <> ? AND kind = 'evidence'`,
)
/** Keeps the evidence of the last attempts that have any. */
const deleteOldEvidence = statement<object, [runId: string, sameRunId: string, attempts: number]>(
  `DELETE FROM artifacts WHERE run_id = ? AND kind = 'evidence' AND attempt NOT IN (SELECT attempt FROM artifacts
    WHERE run_id = ? AND kind = 'evidence' GROUP BY attempt ORDER BY attempt DESC LIMIT ?)`,
)

interface AttemptOfRun {
  runId: string
  attempt: number
}

/** An artifact whose content is stored, to be written to its row. */
export interface PreparedArtifact extends Omit<NewArtifact, 'content'>, StoredContent {
  sizeBytes: number
}

/**
 * Checks the artifact, writes its content, and then stores it. False when the lease was lost.
 *
 * @param withLease see `RunQueue.withLease`. It ends repeated attempts while contents cannot be written.
 * @param put calls `putArtifact` in the transaction of `withLease`.
 * @throws {ArtifactError}
 */
export async function storeArtifact(
  { contents, store }: { contents: Contents; store: Store },
  ofAttempt: AttemptOfRun,
  artifact: NewArtifact,
  withLease: (work: (tx: Transaction) => Promise<void>) => Promise<boolean>,
  put: (tx: Transaction, prepared: PreparedArtifact) => Promise<void>,
): Promise<boolean> {
  checkArtifact(artifact)
  const sized = { ...artifact, sizeBytes: artifact.content.length }
  // A large artifact that the limits of the run exclude is not uploaded.
  const checkFirst = (work: (tx: Transaction) => Promise<void>) =>
    withLease(async (tx) => {
      await requireSpace(tx, ofAttempt, sized)
      await work(tx)
    })
  const stored = await contents.write(artifact.content, checkFirst)
  if (!stored) return false
  const prepared = { ...sized, ...stored }
  try {
    return await ifUploaded(withLease((tx) => put(tx, prepared)))
  } catch (error) {
    if (error instanceof ArtifactError && prepared.blob !== null)
      await store.write((tx) => discardBlob(tx, prepared), { concurrent: true })
    throw error
  }
}

/** @throws {ArtifactError} if the run may not have the artifact besides its others. */
async function requireSpace(
  tx: Transaction,
  { runId, attempt }: AttemptOfRun,
  { name, kind = 'workflow', sizeBytes }: Pick<PreparedArtifact, 'name' | 'kind' | 'sizeBytes'>,
): Promise<void> {
  if (kind === 'evidence') {
    const [files] = await tx.all(countOtherEvidence, [runId, attempt, name])
    if ((files?.count ?? 0) < evidenceFilesMax) return
    throw new ArtifactError(`An attempt may have at most ${evidenceFilesMax} files of evidence.`)
  }
  const [others] = await tx.all(sumOthers, [runId, name])
  const { count = 0, bytes = 0 } = others ?? {}
  checkArtifactsOfRun({ count, bytes: bytes + sizeBytes })
}

/**
 * Stores the artifact; replaces one of the same name. Evidence replaces no file of the workflow, and does not count
 * towards the workflow's limits.
 *
 * @throws {ArtifactError}
 */
export async function putArtifact(
  tx: Transaction,
  ofAttempt: AttemptOfRun,
  artifact: PreparedArtifact,
  at: number,
): Promise<void> {
  const { name, mediaType, sizeBytes, content, blob, kind = 'workflow' } = artifact
  await requireSpace(tx, ofAttempt, artifact)
  const { runId, attempt } = ofAttempt
  const row = [runId, name, mediaType, sizeBytes, at, kind, attempt, content, blob] as const
  const [stored] = await tx.all(upsertArtifact, [...row])
  await (stored ? useBlob(tx, artifact) : discardBlob(tx, artifact))
  if (kind === 'evidence') await tx.all(deleteOldEvidence, [runId, runId, evidenceAttemptsMax])
}
