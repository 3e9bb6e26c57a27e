/** An API key: a random UUID whose value is shown once and stored only as a hash. */
import { hash, randomUUID } from 'node:crypto'
import type { Role } from '../accounts/roles.ts'
import { nameError } from '../display-names.ts'

/** Keys per user, expired ones included. */
export const keysPerUserMax = 5
/** Keys per account, expired ones excluded. */
export const activeKeysPerAccountMax = 5

/** Maximum hours during which the old value of a rotated key still works. */
export const overlapHoursMax = 24

export interface ApiKey {
  id: string
  name: string
  /** The first 8 characters of the value. */
  prefix: string
  /** The creator's role, which limits the scopes; `null` when the creator has no role, and the key therefore no scope. */
  role: Role | null
  /** The scopes that limit the key; `null` for full access. */
  scopes: string[] | null
  /** The workflows to which the key is restricted; `null` for all of the account. */
  workflowIds: string[] | null
  userId: string
  createdAt: number
  lastUsedAt: number | null
  /** Address and user agent of the last caller, if known. */
  lastUsedBy: string | null
  expiresAt: number | null
  expired: boolean
}

/** The protection space of API keys in `WWW-Authenticate` (RFC 9110, section 11.5). */
export const apiKeyRealm = 'execution-service'

export interface Principal {
  accountId: string
  apiKeyId: string
  /** The name of the key's environment, if the account has several. */
  environment?: string
  /** Set for a run token, which permits reading this run only. */
  runId?: string
  /** The workflows to which the key is restricted, if it is. */
  workflowIds?: readonly string[]
}

/** 122 random bits as a UUID of version 4 (RFC 9562, section 5.4). */
export function generateKeyValue(): string {
  return randomUUID()
}

/**
 * SHA-256 is enough for 122 random bits; only passwords need a slow hash. UUIDs compare case-insensitively (RFC 9562,
 * section 4).
 */
export function hashKeyValue(value: string): Buffer {
  return hash('sha256', value.toLowerCase(), 'buffer')
}

const keyPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Returns the value in lower case, or `undefined` if it is not a UUID and therefore no key. */
export function parseKeyValue(value: string): string | undefined {
  const lower = value.toLowerCase()
  return keyPattern.test(lower) ? lower : undefined
}

/** A rejected change. The message is for the person who asked for it. */
export class ApiKeyError extends Error {
  /** `holder`: the user was removed. `repeated`: the request was made before. */
  readonly about:
    | 'name'
    | 'scopes'
    | 'workflows'
    | 'lifetime'
    | 'overlap'
    | 'userLimit'
    | 'accountLimit'
    | 'repeated'
    | 'holder'

  constructor(about: ApiKeyError['about'], message: string) {
    super(message)
    this.about = about
  }
}

/** Trims the name. @throws {ApiKeyError} */
export function parseKeyName(text: string): string {
  const name = text.trim()
  const error = nameError(name)
  if (error) throw new ApiKeyError('name', error)
  return name
}
