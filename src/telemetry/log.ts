/** Structured logs of every process, on standard output. */
import { trace } from '@opentelemetry/api'
import { type Logger, pino, stdSerializers } from 'pino'
import type { Config } from '../config/config.ts'
import { StoreUnavailable } from '../storage/store.ts'

/** Log lines never contain an API key: callers pass no header, body or query to the log. */
export function openLog({
  LOG_LEVEL: level,
  OTEL_EXPORTER_OTLP_ENDPOINT: isTraced,
}: Pick<Config, 'LOG_LEVEL'> & Partial<Pick<Config, 'OTEL_EXPORTER_OTLP_ENDPOINT'>>): Logger {
  const serializers = { err: serializeError }
  const options = { level, base: { pid: process.pid }, serializers, ...(isTraced && { mixin: traceFields }) }
  return pino(options, openLogOutput())
}

/** Lines wait for others until there are this many bytes, or for this long. */
const waiting = { bytesMax: 4096, millisecondsMax: 100 }

/**
 * Writes lines in batches: one system call per line took 5 µs of every request. The periodic flush of pino's destination
 * would write an empty line ten times a second in an idle process.
 */
export function openLogOutput(dest: string | number = 1) {
  const output = pino.destination({ dest, sync: false, minLength: waiting.bytesMax })
  const write = output.write.bind(output)
  let isWaiting = false
  const flush = () => {
    isWaiting = false
    // With a callback, an output that was closed does not throw.
    output.flush(() => {})
  }
  output.write = (line) => {
    if (!isWaiting) setTimeout(flush, waiting.millisecondsMax).unref()
    isWaiting = true
    return write(line)
  }
  return output
}

/** Omits the stack of `StoreUnavailable`, which every process logs several times a second during an outage. */
function serializeError(error: Error): object {
  if (!(error instanceof StoreUnavailable)) return stdSerializers.err(error)
  return { type: 'StoreUnavailable', message: error.message }
}

/** The active span, by OpenTelemetry's field names for logs in other formats. */
function traceFields(): Record<string, string> {
  const span = trace.getActiveSpan()?.spanContext()
  return span ? { trace_id: span.traceId, span_id: span.spanId } : {}
}
