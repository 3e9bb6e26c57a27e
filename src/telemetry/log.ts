/** Where every process of the service says what it does. */
import { type Logger, pino, stdSerializers } from 'pino'
import type { Config } from '../config.ts'
import { StoreUnavailable } from '../storage/store.ts'
import { traceFields } from './tracing/tracing.ts'

/** Structured logs on standard output. Nothing is logged that could hold a key's value: no header, no body, no query. */
export function openLog({
  LOG_LEVEL: level,
  OTEL_EXPORTER_OTLP_ENDPOINT: isTraced,
}: Pick<Config, 'LOG_LEVEL'> & Partial<Pick<Config, 'OTEL_EXPORTER_OTLP_ENDPOINT'>>): Logger {
  const serializers = { err: withoutNeedlessStack }
  const options = { level, base: { pid: process.pid }, serializers, ...(isTraced && { mixin: traceFields }) }
  return pino(options, pino.destination(logOutput))
}

/** Lines are written some at a time: one system call for each took 5 µs of every request. */
export const logOutput = { sync: false, minLength: 4096, periodicFlush: 100 }

/** While the store is away, every process says so several times a second: where in the code it noticed helps nobody. */
function withoutNeedlessStack(error: Error): object {
  if (!(error instanceof StoreUnavailable)) return stdSerializers.err(error)
  return { type: 'StoreUnavailable', message: error.message }
}
