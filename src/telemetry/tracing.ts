/** Tracing through OpenTelemetry's API, whose calls do nothing until `openTracing` has registered the SDK. */
import { type Span, type SpanOptions, SpanStatusCode, trace } from '@opentelemetry/api'
import type { Logger } from 'pino'
import packageJson from '../../package.json' with { type: 'json' }
import type { Config } from '../config/config.ts'
import type { Store } from '../storage/store.ts'

export const tracer = trace.getTracer('execution-service', packageJson.version)

export interface Tracing {
  /** Exports the remaining spans, for at most a few seconds. */
  close(): Promise<void>
}

/** Registers the SDK, loading it first, if a collector is configured; otherwise returns `undefined`. */
export async function openTracing(
  config: Pick<Config, 'OTEL_EXPORTER_OTLP_ENDPOINT' | 'OTEL_SERVICE_NAME'>,
  log: Logger,
): Promise<Tracing | undefined> {
  if (config.OTEL_EXPORTER_OTLP_ENDPOINT === undefined) return undefined
  return (await import('./open-telemetry.ts')).registerSdk(config.OTEL_SERVICE_NAME, log)
}

/** Runs `act` in a new active span. Of an error, the span records only the class: the message may contain a secret. */
export function inSpan<Result>(name: string, options: SpanOptions, act: () => Promise<Result>): Promise<Result> {
  return tracer.startActiveSpan(name, options, async (span) => {
    try {
      return await act()
    } catch (error) {
      failSpan(span, { name: (error as Error).name })
      throw error
    } finally {
      span.end()
    }
  })
}

export interface SpanError {
  /** An error class or an HTTP status, with few distinct values. */
  name: string
  /** Exported unchanged: it must not contain a secret. */
  message?: string
}

export function failSpan(span: Span, { name, message = '' }: SpanError, at?: number): void {
  span.setStatus({ code: SpanStatusCode.ERROR, message }).setAttribute('error.type', name)
  if (message !== '') span.recordException({ name, message }, at)
}

/** Adds a span for each write in a trace. Its duration includes waiting for other writes and for the disk. */
export function tracedStore(store: Store): Store {
  const write: Store['write'] = (...args) =>
    trace.getActiveSpan() ? inSpan('store write', {}, () => store.write(...args)) : store.write(...args)
  return new Proxy(store, {
    get(target, name) {
      if (name === 'write') return write
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}
