/** The executor's part of an attempt's evidence: decides when it is collected, and sends it to the worker. */
import type { AttemptMessage } from '../executors/messages.ts'
import type { RunBrowser } from '../executors/run-browser.ts'
import type { RawEvidence } from './recorder.ts'

export interface EvidenceOptions {
  runAttempt: number
  /** Values of secret variables, and of secrets in answers that have come. */
  secrets: readonly unknown[]
}

export class RunEvidence {
  readonly #browser: RunBrowser
  readonly #options: EvidenceOptions
  readonly #send: (message: AttemptMessage) => void
  #collecting: Promise<RawEvidence> | undefined
  #sending: Promise<void> | undefined

  constructor(browser: RunBrowser, options: EvidenceOptions, send: (message: AttemptMessage) => void) {
    this.#browser = browser
    this.#options = options
    this.#send = send
  }

  /** Starts to collect, before the browser is closed. The worker then waits for the evidence before it ends the attempt. */
  keep(): void {
    if (this.#collecting) return
    this.#collecting = this.#browser.collectEvidence()
    if (this.#collecting) this.#send({ type: 'evidenceStarted' })
  }

  /** Sends what is being collected. Never rejects: an attempt ends in the same way without evidence. */
  send(): Promise<void> {
    if (!this.#collecting) return Promise.resolve()
    this.#sending ??= this.#sendAll(this.#collecting)
    return this.#sending
  }

  async #sendAll(collecting: Promise<RawEvidence>): Promise<void> {
    try {
      const raw = await collecting
      // Loaded here: few attempts need it.
      const { buildEvidence } = await import('./build-evidence.ts')
      const known = { variables: this.#options.secrets, restored: this.#browser.restored }
      for (const { name, mediaType, content } of buildEvidence(raw, known, this.#options.runAttempt)) {
        this.#send({ type: 'evidence', name, mediaType, content: Buffer.from(content).toString('base64') })
      }
    } catch (error) {
      const { name } = error instanceof Error ? error : { name: typeof error }
      // Its message may quote a secret.
      this.#send({ type: 'log', level: 'warn', message: `The evidence of this attempt is incomplete (${name}).` })
    }
    this.#send({ type: 'evidenceEnded' })
  }
}
