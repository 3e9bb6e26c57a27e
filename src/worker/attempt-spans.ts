/** An attempt as a span of its run's trace, with its steps and its browser. */
import type { Claim } from '../domain/runs/claim.ts'
import { messageAttributes } from '../domain/runs/trace-attributes.ts'
import { type Span, type SpanError, type Tracing, within } from '../telemetry/tracing/tracing.ts'
import type { AttemptEnd, AttemptWatch, WatchAttempt, WatchedStep } from './watch.ts'

export function attemptSpans(tracing: Tracing): WatchAttempt {
  return (claim) => new AttemptSpans(tracing, claim)
}

class AttemptSpans implements AttemptWatch {
  readonly #name: string
  readonly #span: Span
  readonly #steps = new Map<string, Span>()

  /**
   * A child of the span that queued the run, so that one trace tells all of a run; and linked to it, as the conventions
   * for messaging ask of every span that processes a message.
   */
  constructor(tracing: Tracing, { workflowId, runId, attempt, traceContext }: Claim) {
    this.#name = `process ${workflowId}`
    const attributes = { ...messageAttributes('process', workflowId, runId), 'execution_service.attempt': attempt }
    const origin = { traceparent: traceContext ?? undefined, linked: true }
    this.#span = tracing.begin(this.#name, { kind: 'consumer', attributes }, origin)
  }

  within<Result>(act: () => Result): Result {
    return within(this.#span, act)
  }

  step({ name, state, at }: WatchedStep): void {
    if (state === 'started') this.#steps.set(name, this.#span.child(`step ${name}`, { at }))
    else if (state === 'finished') this.#endStep(name, { at })
    else if (state === 'failed') this.#endStep(name, { at, error: { name: 'StepFailed' } })
    // One that an earlier attempt has finished took no time.
    else this.#span.child(`step ${name}`, { at, attributes: { 'execution_service.reused': true } }).end({ at })
  }

  browserWanted(answered: Promise<{ type: string }>): void {
    const span = this.#span.child('start browser')
    // What it could not be started for stands in the run's error.
    void answered.then(({ type }) =>
      span.end(type === 'browserRefused' ? { error: { name: 'BrowserUnavailable' } } : {}),
    )
  }

  ended(how: AttemptEnd): void {
    const error = errorOf(how)
    for (const name of [...this.#steps.keys()]) this.#endStep(name, error && { error: { name: error.name } })
    this.#span.describe(this.#name, { 'execution_service.outcome': how?.kind ?? 'notCarriedThrough' })
    this.#span.end(error && { error })
  }

  #endStep(name: string, how: Parameters<Span['end']>[0]): void {
    this.#steps.get(name)?.end(how)
    this.#steps.delete(name)
  }
}

/** What an outcome says of an error has its secrets masked. */
function errorOf(how: AttemptEnd): SpanError | undefined {
  if (how === undefined) return { name: 'NotCarriedThrough' }
  if (how.kind === 'failed') return how.error
  return fine.includes(how.kind) ? undefined : { name: how.kind }
}

/** An attempt that ended so has not failed. */
const fine: string[] = ['succeeded', 'cancelled', 'workerStopped']
