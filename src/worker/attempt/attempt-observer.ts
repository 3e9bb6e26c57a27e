/** Observers of attempts, for metrics and traces. An observer changes nothing about an attempt and must not throw. */
import { context, propagation, ROOT_CONTEXT, type Span, SpanKind, type SpanOptions, trace } from '@opentelemetry/api'
import type { Claim } from '../../domain/queue/attempts.ts'
import { messageAttributes } from '../../domain/runs/run.ts'
import type { Outcome } from '../../domain/runs/run-state.ts'
import { failSpan, type SpanError, tracer } from '../../telemetry/tracing.ts'
import type { Reply } from '../executors/executor-process.ts'

/** `undefined` when the attempt was not executed because of an error in the worker. */
export type AttemptEnd = Outcome | { kind: 'leaseLost' } | undefined

export interface ObservedStep {
  /** With secrets masked. */
  name: string
  state: 'started' | 'finished' | 'failed' | 'reused'
  at: number
}

export interface AttemptObserver {
  /** The executor was sent the attempt. */
  started?(): void
  step?(step: ObservedStep): void
  browserRequested?(reply: Promise<Reply>): void
  /** Called once, when the outcome is stored or cannot be. */
  ended?(how: AttemptEnd): void
  /** Runs the attempt, for example with its span as the active one. */
  within?<Result>(act: () => Result): Result
}

/** Called when an attempt was claimed. */
export type ObserveAttempt = (claim: Claim) => AttemptObserver

export function observeWithAll(observe: readonly ObserveAttempt[], claim: Claim): Required<AttemptObserver> {
  const all = observe.map((each) => each(claim))
  return {
    started() {
      for (const each of all) each.started?.()
    },
    step(step) {
      for (const each of all) each.step?.(step)
    },
    browserRequested(reply) {
      for (const each of all) each.browserRequested?.(reply)
    },
    ended(how) {
      for (const each of all) each.ended?.(how)
    },
    within<Result>(act: () => Result): Result {
      const wrap = (inner: () => Result, each: AttemptObserver) => () => (each.within ? each.within(inner) : inner())
      return all.reduce(wrap, act)()
    },
  }
}

/** One span per attempt in the trace of its run, with child spans for its steps and the start of its browser. */
export class AttemptSpans implements AttemptObserver {
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

  step({ name, state, at }: ObservedStep): void {
    if (state === 'started') this.#steps.set(name, this.#startChild(`step ${name}`, { startTime: at }))
    else if (state === 'finished') this.#endStep(name, at)
    else if (state === 'failed') this.#endStep(name, at, { name: 'StepFailed' })
    else {
      // The value comes from an earlier attempt.
      const attributes = { 'execution_service.reused': true }
      this.#startChild(`step ${name}`, { startTime: at, attributes }).end(at)
    }
  }

  browserRequested(reply: Promise<{ type: string }>): void {
    const span = this.#startChild('start browser')
    void reply.then(({ type }) => {
      // The run's error contains the reason.
      if (type === 'browserUnavailable') failSpan(span, { name: 'BrowserUnavailable' })
      span.end()
    })
  }

  ended(how: AttemptEnd): void {
    const error = spanError(how)
    for (const name of [...this.#steps.keys()]) this.#endStep(name, undefined, error && { name: error.name })
    this.#span.setAttribute('execution_service.outcome', how?.kind ?? 'notExecuted')
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
function spanError(how: AttemptEnd): SpanError | undefined {
  if (how === undefined) return { name: 'NotExecuted' }
  if (how.kind === 'failed') return how.error
  return successes.includes(how.kind) ? undefined : { name: how.kind }
}
