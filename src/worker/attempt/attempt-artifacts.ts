/** Stores the artifacts of an attempt: those that the workflow writes, and evidence. */
import type { StorageUsage } from '../../domain/accounts/storage-usage.ts'
import type { Claim } from '../../domain/queue/attempts.ts'
import {
  ArtifactError,
  artifactWritesMax,
  type NewArtifact,
  tooManyArtifactWrites,
} from '../../domain/runs/artifact.ts'
import { inlineBytesMax } from '../../storage/blobs/contents.ts'
import type { ExecutorEvent } from '../executors/executor-process.ts'
import type { AttemptQueue } from './attempt.ts'
import { type Reporter, retryUntilAvailable } from './reporter.ts'

type ArtifactEvent = Extract<ExecutorEvent, { type: 'artifact' }>

interface AttemptArtifactsDependencies {
  queue: AttemptQueue
  usage: Pick<StorageUsage, 'refusal' | 'add'>
}

export class AttemptArtifacts {
  readonly #dependencies: AttemptArtifactsDependencies
  readonly #claim: Claim
  readonly #reporter: Reporter
  readonly #redact: (text: string) => string
  #writes = 0
  #isSaving = false

  constructor(
    dependencies: AttemptArtifactsDependencies,
    claim: Claim,
    reporter: Reporter,
    redact: (text: string) => string,
  ) {
    this.#dependencies = dependencies
    this.#claim = claim
    this.#reporter = reporter
    this.#redact = redact
  }

  /**
   * Stores an artifact of the workflow, and reports it together with the pending reports.
   *
   * @returns the error that the workflow gets, if the artifact was not stored.
   * @throws {Error} synchronously, while another artifact is being stored.
   */
  save(event: ArtifactEvent): Promise<'leaseLost' | { error?: string }> {
    if (this.#isSaving) throw new Error('The executor sends one artifact at a time.')
    this.#isSaving = true
    return this.#tryToSave(event).finally(() => {
      this.#isSaving = false
    })
  }

  async #tryToSave({ name, mediaType, content }: ArtifactEvent): Promise<'leaseLost' | { error?: string }> {
    this.#writes += 1
    if (this.#writes > artifactWritesMax) {
      return { error: tooManyArtifactWrites }
    }
    const { queue, usage } = this.#dependencies
    const { accountId } = this.#claim
    const refusal = usage.refusal(accountId)
    if (refusal) return { error: `${refusal} The artifact was not stored.` }
    const bytes = Buffer.from(content, 'base64')
    const artifact = { name: this.#redact(name), mediaType: mediaType as NewArtifact['mediaType'], content: bytes }
    const report = this.#reporter.report('artifact', { name: artifact.name, mediaType, sizeBytes: bytes.length })
    await this.#reporter.written()
    let before = this.#reporter.take()
    try {
      if (bytes.length > inlineBytesMax && before.length > 0) {
        // Its content may take long: an attempt that ends meanwhile has reported what was before.
        const reported = before
        if (!(await retryUntilAvailable(() => queue.report(this.#claim, reported)))) return 'leaseLost'
        before = []
      }
      const saved = await retryUntilAvailable(() => queue.keepArtifact(this.#claim, artifact, [...before, report]))
      if (saved) usage.add(accountId, bytes.length)
      return saved ? {} : 'leaseLost'
    } catch (error) {
      if (!(error instanceof ArtifactError)) throw error
      const reported = await retryUntilAvailable(() => queue.report(this.#claim, before))
      return reported ? { error: error.message } : 'leaseLost'
    }
  }

  /** Stores evidence. Never rejects: evidence that cannot be stored does not change the attempt's outcome. */
  async saveEvidence(artifact: NewArtifact): Promise<void> {
    const { queue, usage } = this.#dependencies
    const { accountId } = this.#claim
    try {
      if (usage.refusal(accountId)) return
      if (await queue.keepArtifact(this.#claim, artifact, [])) usage.add(accountId, artifact.content.length)
    } catch {
      this.#reporter.add('log', { level: 'warn', message: `The evidence ${artifact.name} could not be stored.` })
    }
  }
}
