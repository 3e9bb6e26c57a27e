/** What an API key is: a random UUID that is shown once and kept only as a hash (interface, sections 2 and 5). */
import { hash, randomUUID } from 'node:crypto'
import { nameError } from '../display-names.ts'

/** At most this many keys that are not deleted, held by one user. */
export const keysPerUserMax = 5
/** At most this many keys that are neither deleted nor expired, in one account. */
export const activeKeysPerAccountMax = 5

export interface ApiKey {
  id: string
  name: string
  /** The value's first 8 characters. */
  prefix: string
  /** What the key may do; `null` for everything its account may. */
  scopes: string[] | null
  /** The user who created the key and holds it. */
  userId: string
  createdAt: number
  lastUsedAt: number | null
  /** The address and the program of the last caller, as far as they were told. */
  lastUsedBy: string | null
  expiresAt: number | null
  expired: boolean
}

/** An authenticated caller. */
export interface Principal {
  accountId: string
  apiKeyId: string
}

/** A new value: 122 bits of the system's random source as a UUID of version 4 (RFC 9562, section 5.4). */
export function generateKeyValue(): string {
  return randomUUID()
}

/**
 * The hash under which a key is stored. A plain SHA-256 suffices where a password would need a slow one: nobody
 * guesses 122 random bits. UUIDs compare without regard to case (RFC 9562, section 4).
 */
export function hashKeyValue(value: string): Buffer {
  return hash('sha256', value.toLowerCase(), 'buffer')
}

export function prefixOf(value: string): string {
  return value.slice(0, 8)
}

/** Why a key was not created or changed; the message is for the person who asked. */
export class ApiKeyError extends Error {
  /** What of the request it is about; a limit is the user's or the account's, and the holder is who asks for a key. */
  readonly about: 'name' | 'scopes' | 'lifetime' | 'userLimit' | 'accountLimit' | 'repeated' | 'holder'

  constructor(about: ApiKeyError['about'], message: string) {
    super(message)
    this.about = about
  }
}

/** Trims a key's name. @throws {ApiKeyError} */
export function parseKeyName(text: string): string {
  const name = text.trim()
  const fault = nameError(name)
  if (fault) throw new ApiKeyError('name', fault)
  return name
}
