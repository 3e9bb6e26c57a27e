/** Spans as the service makes them, where traces are on. Nothing of OpenTelemetry is loaded where they are not. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Logger } from 'pino'

export interface Span {
  readonly traceId: string
  readonly spanId: string
  /** The `traceparent` of what this span causes (W3C Trace Context). */
  readonly traceparent: string
  child(name: string, options?: SpanOptions): Span
  /** To be called before its end. */
  describe(name: string, attributes: Attributes): void
  /** `error` is told as it is: its message must hold no secret. */
  end(how?: { at?: number; error?: SpanError | undefined }): void
}

export interface SpanError {
  /** A class of errors: a name, or a status. */
  name: string
  message?: string
}

export type Attributes = Record<string, string | number | boolean>

export interface SpanOptions {
  kind?: 'internal' | 'server' | 'client' | 'producer' | 'consumer'
  attributes?: Attributes
  /** When it began, in milliseconds since 1970; now unless given. */
  at?: number
}

/** Where a trace comes from: a caller, or whoever queued a run. */
export interface Origin {
  traceparent: string | undefined
  tracestate?: string | undefined
  /** Whether the span is linked to it as well as being its child. */
  linked?: boolean
}

export interface Tracing {
  /** A span of another process's trace, or of a new one where `origin` names none. */
  begin(name: string, options: SpanOptions, origin: Origin): Span
  /** Sends what is left, for a few seconds at most. */
  close(): Promise<void>
}

export interface TracingOptions {
  OTEL_EXPORTER_OTLP_ENDPOINT: string | undefined
  OTEL_SERVICE_NAME: string
}

/** Traces, if there is somewhere to send them to. */
export async function openTracing(
  { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SERVICE_NAME: serviceName }: TracingOptions,
  log: Logger,
): Promise<Tracing | undefined> {
  if (endpoint === undefined) return undefined
  return (await import('./open-telemetry.ts')).startTracing(serviceName, log)
}

/** What stands before each surface, where traces are on. */
export async function traceHandlers(tracing: Tracing | undefined) {
  if (!tracing) return undefined
  const { traceRequests } = await import('./requests.ts')
  return traceRequests(tracing)
}

export type TraceHandlers = NonNullable<Awaited<ReturnType<typeof traceHandlers>>>

const active = new AsyncLocalStorage<Span | undefined>()

/** The span that the calling code is part of. */
export function activeSpan(): Span | undefined {
  return active.getStore()
}

/** Does `act`, and everything that comes of it, as part of the span. */
export function within<Result>(span: Span, act: () => Result): Result {
  return active.run(span, act)
}

/** Does `act`, and everything that comes of it, as part of no trace. */
export function untraced<Result>(act: () => Result): Result {
  return active.getStore() ? active.run(undefined, act) : act()
}

/** Does `act` as a span of its own, where it is part of a trace. What it throws is told by its name alone. */
export async function traced<Result>(
  name: string,
  options: SpanOptions,
  act: (span: Span | undefined) => Promise<Result>,
): Promise<Result> {
  const span = active.getStore()?.child(name, options)
  if (!span) return act(undefined)
  try {
    const result = await within(span, () => act(span))
    span.end()
    return result
  } catch (error) {
    span.end({ error: { name: (error as Error).name } })
    throw error
  }
}

/** What log lines say of the trace that they belong to, by the names that OpenTelemetry gives these fields. */
export function traceFields(): { trace_id: string; span_id: string } | Record<string, never> {
  const span = active.getStore()
  return span ? { trace_id: span.traceId, span_id: span.spanId } : {}
}
