/** What every process of an installation opens: its log, its store and its encryption. */
import { type Logger, pino } from 'pino'
import type { Config } from './config.ts'
import { Encryption, installationKey } from './storage/encryption.ts'
import { openSqliteStore } from './storage/sqlite/sqlite-store.ts'
import type { Store } from './storage/store.ts'

/** Structured logs on standard output. Nothing is logged that could hold a key's value: no header, no body, no query. */
export function openLog(config: Config): Logger {
  return pino({ level: config.LOG_LEVEL, base: { pid: process.pid } }, pino.destination({ sync: false }))
}

export function openEncryption(config: Config): Encryption {
  return new Encryption(installationKey(config.DATA_DIR, config.ENCRYPTION_KEY))
}

export function openStore(config: Config): Promise<Store> {
  return openSqliteStore(config.DATA_DIR)
}
