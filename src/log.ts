/** Where every process of the service says what it does. */
import { type Logger, pino } from 'pino'
import type { Config } from './config.ts'
import { traceFields } from './tracing/tracing.ts'

/** Structured logs on standard output. Nothing is logged that could hold a key's value: no header, no body, no query. */
export function openLog({
  LOG_LEVEL: level,
  OTEL_EXPORTER_OTLP_ENDPOINT: isTraced,
}: Pick<Config, 'LOG_LEVEL'> & Partial<Pick<Config, 'OTEL_EXPORTER_OTLP_ENDPOINT'>>): Logger {
  const options = { level, base: { pid: process.pid }, ...(isTraced && { mixin: traceFields }) }
  return pino(options, pino.destination(logOutput))
}

/** Lines are written some at a time: one system call for each took 5 µs of every request. */
export const logOutput = { sync: false, minLength: 4096, periodicFlush: 100 }
