/** Where every process of the service says what it does. */
import { type Logger, pino } from 'pino'
import type { Config } from './config.ts'

/** Structured logs on standard output. Nothing is logged that could hold a key's value: no header, no body, no query. */
export function openLog({ LOG_LEVEL: level }: Pick<Config, 'LOG_LEVEL'>): Logger {
  return pino({ level, base: { pid: process.pid } }, pino.destination(logOutput))
}

/** Lines are written some at a time: one system call for each took 5 µs of every request. */
export const logOutput = { sync: false, minLength: 4096, periodicFlush: 100 }
