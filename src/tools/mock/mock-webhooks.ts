/** Sends signed webhooks of the mock's runs, and test events, to one address. Each is sent once. */
import type { Logger } from 'pino'
import { v7 as uuid } from 'uuid'
import { signedHeaders, toBody } from '../../domain/webhooks/webhook-event.ts'
import type { Clock, MockRuns } from './mock-runs.ts'

/** The secret in the example of `createWebhookEndpoint`, with which the mock responds. */
export const mockSecret = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD7d3C3hC1X2Y='

const timeoutMilliseconds = 10_000

export class MockWebhooks {
  readonly #url: string
  readonly #clock: Clock
  readonly #log: Logger
  readonly #stopped = new AbortController()

  constructor(url: string, clock: Clock, log: Logger) {
    this.#url = url
    this.#clock = clock
    this.#log = log
  }

  /** Sends the event of the run when it has ended. */
  async follow(runs: MockRuns, runId: string): Promise<void> {
    const { signal } = this.#stopped
    for await (const _ of runs.events(runId, 0, signal) ?? []) if (signal.aborted) return
    const run = runs.get(runId)
    if (!run || signal.aborted) return
    const { workflowId, status, reason, tags, attempts } = run as Record<string, string>
    const [createdAt, finishedAt] = [run.createdAt, run.finishedAt].map((at) => Date.parse(String(at)))
    const members = { workflowId, status, reason, tags, attempts, createdAt, finishedAt }
    await this.#send(`run.${status}`, runId, members)
  }

  async sendTest(): Promise<void> {
    await this.#send('webhook.test', null, { finishedAt: this.#clock.now() })
  }

  stop(): void {
    this.#stopped.abort()
  }

  /** Never rejects. */
  async #send(event: string, runId: string | null, run: object): Promise<void> {
    const body = toBody({ event, run_id: runId, run: JSON.stringify(run) })
    // Receivers compare the time of the signature with their own clock.
    const headers = signedHeaders(uuid(), new Date(), body, [mockSecret])
    const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(timeoutMilliseconds)])
    try {
      const { status } = await fetch(this.#url, { method: 'POST', headers, body, signal, redirect: 'manual' })
      this.#log.info({ event, runId, status }, 'webhook sent')
    } catch (err) {
      if (!this.#stopped.signal.aborted) this.#log.warn({ err, event, runId }, 'webhook failed')
    }
  }
}
