/**
 * Stores outside of the service that have secrets of accounts: a directory or a file that an orchestrator mounts, or
 * HashiCorp Vault. Each attempt reads them when it starts, so that a change needs no restart.
 */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../config/config.ts'
import { checkSecret, type SecretStore, SecretStoreError } from './secret-store.ts'
import { VaultSecrets } from './vault-secrets.ts'

/** Where a setting has this, the id of the account replaces it. */
const accountPlace = '{account}'

export type SecretStoreSetting =
  | 'SECRETS_DIR'
  | 'SECRETS_FILE'
  | 'VAULT_ADDR'
  | 'VAULT_TOKEN'
  | 'VAULT_TOKEN_FILE'
  | 'VAULT_NAMESPACE'
  | 'VAULT_SECRETS_PATH'

/** The store that the configuration names; `undefined` if it names none. */
export function createSecretStore(config: Pick<Config, SecretStoreSetting>): SecretStore | undefined {
  const { SECRETS_DIR, SECRETS_FILE, VAULT_ADDR, VAULT_SECRETS_PATH = '' } = config
  if (SECRETS_DIR) return new SecretsDirectory(SECRETS_DIR)
  if (SECRETS_FILE) return new SecretsFile(SECRETS_FILE)
  if (!VAULT_ADDR) return undefined
  const { VAULT_TOKEN: token, VAULT_TOKEN_FILE: tokenFile, VAULT_NAMESPACE: namespace } = config
  const readToken = async () => token ?? (tokenFile ? (await readBounded(tokenFile, 'VAULT_TOKEN_FILE'))?.trim() : '')
  const pathOf = (accountId: string) => VAULT_SECRETS_PATH.replaceAll(accountPlace, accountId)
  return new VaultSecrets({ address: VAULT_ADDR, readToken: async () => (await readToken()) ?? '', namespace, pathOf })
}

/** Of a file, which has one secret or all. */
const fileBytesMax = 1024 * 1024

/** A file of each secret, as Kubernetes and Docker mount them. */
class SecretsDirectory implements SecretStore {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  async read(accountId: string, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const directory = this.#directory.replaceAll(accountPlace, accountId)
    const found = new Map<string, string>()
    for (const name of names) {
      const text = await readBounded(join(directory, name), `The secret ${name} in SECRETS_DIR`)
      // Editors and `echo` end files with a line break.
      if (text !== undefined) found.set(name, checkSecret(name, text.replace(/\r?\n$/, '')))
    }
    return found
  }
}

/** A JSON object of all secrets. */
class SecretsFile implements SecretStore {
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  async read(accountId: string, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const text = await readBounded(this.#path.replaceAll(accountPlace, accountId), 'SECRETS_FILE')
    const secrets = text === undefined ? {} : parseObject(text)
    const found = names.filter((name) => Object.hasOwn(secrets, name))
    return new Map(found.map((name) => [name, checkSecret(name, secrets[name])]))
  }
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>
  } catch {
    // The message of the parser repeats a part of the text.
  }
  throw new SecretStoreError('SECRETS_FILE is no JSON object of secrets by their names.')
}

/** The text of a file; `undefined` if there is none. Never a device or a pipe, from which a read might not return. */
async function readBounded(path: string, what: string): Promise<string | undefined> {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const stats = await file.stat()
      if (!stats.isFile()) throw new SecretStoreError(`${what} is no file.`)
      if (stats.size > fileBytesMax) throw new SecretStoreError(`${what} has more than ${fileBytesMax} bytes.`)
      const buffer = Buffer.alloc(fileBytesMax + 1)
      const { bytesRead } = await file.read(buffer, 0, buffer.length, 0)
      if (bytesRead > fileBytesMax) throw new SecretStoreError(`${what} has more than ${fileBytesMax} bytes.`)
      return buffer.toString('utf8', 0, bytesRead)
    } finally {
      await file.close()
    }
  } catch (error) {
    if (error instanceof SecretStoreError) throw error
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new SecretStoreError(`${what} cannot be read (${code ?? 'unknown error'}).`)
  }
}
