/** The worker's part of an attempt's evidence: stores it, and bounds how long the end of the attempt waits for it. */
import { evidenceFilesMax, type NewArtifact } from '../domain/runs/artifact-limits.ts'
import type { AttemptMessage } from './messages.ts'

type EvidenceMessage = Extract<AttemptMessage, { type: 'evidenceStarted' | 'evidence' | 'evidenceEnded' }>

const evidenceMillisecondsMax = 10_000

export class AttemptEvidence {
  /** Resolves when the evidence is stored, or will not be. */
  readonly settled: Promise<void>
  readonly #attempt: number
  readonly #save: (artifact: NewArtifact) => Promise<void>
  readonly #resolve: () => void
  #state: 'none' | 'pending' | 'settled' = 'none'
  #timer: NodeJS.Timeout | undefined
  #files = 0
  #saving: Promise<void> = Promise.resolve()
  /** Whether the executor has sent all of it. */
  hasEnded = false

  /** @param save stores a file; it must not reject. */
  constructor(attempt: number, save: (artifact: NewArtifact) => Promise<void>) {
    this.#attempt = attempt
    this.#save = save
    const { promise, resolve } = Promise.withResolvers<void>()
    this.settled = promise
    this.#resolve = resolve
  }

  get isPending(): boolean {
    return this.#state === 'pending'
  }

  /** @throws {Error} for a message that only a workflow that writes to the channel sends. */
  onMessage(message: EvidenceMessage): void {
    switch (message.type) {
      case 'evidenceStarted':
        if (this.#state !== 'none') throw new Error('The executor sends evidence once.')
        this.#state = 'pending'
        this.#timer = setTimeout(() => this.settle(), evidenceMillisecondsMax)
        return
      case 'evidence':
        return this.#onFile(message)
      case 'evidenceEnded':
        this.hasEnded = true
        void this.#saving.then(() => this.settle())
    }
  }

  /** Stops waiting for evidence. */
  settle(): void {
    clearTimeout(this.#timer)
    this.#state = 'settled'
    this.#resolve()
  }

  #onFile({ name, mediaType, content }: Extract<EvidenceMessage, { type: 'evidence' }>): void {
    // The attempt no longer waits for it.
    if (this.#state === 'settled') return
    this.#files += 1
    if (this.#files > evidenceFilesMax || !name.startsWith(`attempt-${this.#attempt}-`)) {
      throw new Error('The executor sent a file that is not evidence of its attempt.')
    }
    const artifact = { name, mediaType: mediaType as NewArtifact['mediaType'], content: Buffer.from(content, 'base64') }
    this.#saving = this.#saving.then(() => (this.isPending ? this.#save({ ...artifact, kind: 'evidence' }) : undefined))
  }
}
