/** What every process of an installation opens: its log, its store and its encryption. */
import { type Logger, pino } from 'pino'
import { type Config, ConfigRefused } from './config.ts'
import { Encryption, installationKey } from './storage/encryption.ts'
import { openSqliteStore } from './storage/sqlite/sqlite-store.ts'
import { type Store, StoreUnavailable } from './storage/store.ts'

/** Structured logs on standard output. Nothing is logged that could hold a key's value: no header, no body, no query. */
export function openLog(config: Config): Logger {
  return pino({ level: config.LOG_LEVEL, base: { pid: process.pid } }, pino.destination(logOutput))
}

/** Lines are written some at a time: one system call for each took 5 µs of every request. */
export const logOutput = { sync: false, minLength: 4096, periodicFlush: 100 }

/** @throws {ConfigRefused} when the data directory cannot be used. */
export async function openStore(config: Config): Promise<Store> {
  return inDataDirectory(config, () => openSqliteStore(config.DATA_DIR))
}

/** @throws {ConfigRefused} when the data directory cannot be used. */
export async function openEncryption(config: Config): Promise<Encryption> {
  const key = await inDataDirectory(config, async () => installationKey(config.DATA_DIR, config.ENCRYPTION_KEY))
  return new Encryption(key)
}

/** A directory that is missing, no directory, not writable or full is the operator's to mend. */
async function inDataDirectory<Result>({ DATA_DIR }: Config, act: () => Promise<Result>): Promise<Result> {
  try {
    return await act()
  } catch (error) {
    const { syscall, message } = error as NodeJS.ErrnoException
    const ofDirectory = syscall !== undefined || error instanceof StoreUnavailable
    if (!ofDirectory) throw error
    throw new ConfigRefused(
      `DATA_DIR (${DATA_DIR}) cannot be used: ${message}. Set it to a directory that can be written to.`,
    )
  }
}
