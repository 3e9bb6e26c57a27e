/** One span per attempt in the trace of its run, with child spans for its steps and the start of its browser. */
import { context, propagation, ROOT_CONTEXT, type Span, SpanKind, type SpanOptions, trace } from '@opentelemetry/api'
import type { Claim } from '../domain/runs/claim.ts'
import { messageAttributes } from '../domain/runs/trace-attributes.ts'
import { failSpan, type SpanError, tracer } from '../telemetry/tracing.ts'
import type { AttemptEnd, AttemptWatch, WatchedStep } from './watch.ts'

export class AttemptSpans implements AttemptWatch {
  readonly #span: Span
  readonly #steps = new Map<string, Span>()

  /**
   * The span is a child of the span that queued the run, so that one trace shows the whole run. It also links to it, as
   * the conventions for messaging require of every span that processes a message.
   */
  constructor({ workflowId, runId, attempt, traceContext }: Claim) {
    const attributes = { ...messageAttributes('process', workflowId, runId), 'execution_service.attempt': attempt }
    const parent = propagation.extract(ROOT_CONTEXT, { traceparent: traceContext ?? undefined })
    const sender = trace.getSpanContext(parent)
    const links = sender ? [{ context: sender }] : []
    this.#span = tracer.startSpan(`process ${workflowId}`, { kind: SpanKind.CONSUMER, attributes, links }, parent)
  }

  within<Result>(act: () => Result): Result {
    return context.with(trace.setSpan(ROOT_CONTEXT, this.#span), act)
  }

  step({ name, state, at }: WatchedStep): void {
    if (state === 'started') this.#steps.set(name, this.#startChild(`step ${name}`, { startTime: at }))
    else if (state === 'finished') this.#endStep(name, at)
    else if (state === 'failed') this.#endStep(name, at, { name: 'StepFailed' })
    else {
      // The value comes from an earlier attempt.
      const attributes = { 'execution_service.reused': true }
      this.#startChild(`step ${name}`, { startTime: at, attributes }).end(at)
    }
  }

  browserWanted(answered: Promise<{ type: string }>): void {
    const span = this.#startChild('start browser')
    void answered.then(({ type }) => {
      // The run's error contains the reason.
      if (type === 'browserRefused') failSpan(span, { name: 'BrowserUnavailable' })
      span.end()
    })
  }

  ended(how: AttemptEnd): void {
    const error = errorOf(how)
    for (const name of [...this.#steps.keys()]) this.#endStep(name, undefined, error && { name: error.name })
    this.#span.setAttribute('execution_service.outcome', how?.kind ?? 'notCarriedThrough')
    if (error) failSpan(this.#span, error)
    this.#span.end()
  }

  #startChild(name: string, options?: SpanOptions): Span {
    return tracer.startSpan(name, options, trace.setSpan(ROOT_CONTEXT, this.#span))
  }

  #endStep(name: string, at?: number, error?: SpanError): void {
    const span = this.#steps.get(name)
    if (span && error) failSpan(span, error, at)
    span?.end(at)
    this.#steps.delete(name)
  }
}

/** Outcomes of attempts that did not fail. */
const successes: string[] = ['succeeded', 'cancelled', 'workerStopped']

/** The error's message has its secrets masked. */
function errorOf(how: AttemptEnd): SpanError | undefined {
  if (how === undefined) return { name: 'NotCarriedThrough' }
  if (how.kind === 'failed') return how.error
  return successes.includes(how.kind) ? undefined : { name: how.kind }
}
