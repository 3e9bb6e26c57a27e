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

  async follow(runs: MockRuns, runId: string): Promise<void> {
    const { signal } = this.#stopped
    for await (const _ of runs.events(runId, 0, signal) ?? []) if (signal.aborted) return
    const run = runs.get(runId)
    if (!run || signal.aborted) return
    const { workflowId, status, reason, tags, attempts } = run
    const at = (time: unknown) => Date.parse(String(time))
    const ended = {
      id: runId,
      workflow_id: workflowId,
      reason,
      attempts,
      tags: JSON.stringify(tags),
      created_at: at(run.createdAt),
    }
    await this.#send({ event: `run.${status}`, created_at: at(run.finishedAt) }, ended as Parameters<typeof toBody>[1])
  }

  async sendTest(): Promise<void> {
    await this.#send({ event: 'webhook.test', created_at: this.#clock.now() })
  }

  stop(): void {
    this.#stopped.abort()
  }

  /** Never rejects. */
  async #send(...[event, run]: Parameters<typeof toBody>): Promise<void> {
    const body = toBody(event, run)
    // Receivers compare the time of the signature with their own clock.
    const context = { event: event.event, runId: run?.id ?? null }
    const headers = signedHeaders(uuid(), new Date(), body, [mockSecret])
    const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(timeoutMilliseconds)])
    try {
      const { status } = await fetch(this.#url, { method: 'POST', headers, body, signal, redirect: 'manual' })
      this.#log.info({ ...context, status }, 'webhook sent')
    } catch (err) {
      if (!this.#stopped.signal.aborted) this.#log.warn({ ...context, err }, 'webhook failed')
    }
  }
}
