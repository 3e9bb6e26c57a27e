/**
 * Run tokens: each reads one run for at most an hour, in place of the API key that made it. They are not stored: a token
 * names its key, its run and its end, and is signed with the installation's key. It ends with its API key, which every
 * request looks up.
 */
import { timingSafeEqual } from 'node:crypto'
import { parse, stringify } from 'uuid'
import type { Encryption } from '../../storage/encryption.ts'
import type { Principal } from './api-key.ts'
import type { ApiKeys } from './api-keys.ts'
import { permitsRun } from './workflow-restriction.ts'

export interface RunToken {
  token: string
  expiresAt: number
}

/** The name of the documents' security scheme. */
export const runTokenScheme = 'bearerRunToken'

const prefix = 'rt_'
const uuidBytes = 16
/** Key, run, and the end in seconds since 1970. */
const contentBytes = 2 * uuidBytes + 4
const signatureBytes = 32
/** 68 bytes are 91 characters in base64url. */
const pattern = /^rt_[A-Za-z0-9_-]{91}$/

export class RunTokens {
  readonly #encryption: Encryption
  readonly #apiKeys: ApiKeys
  readonly #now: () => number

  constructor(encryption: Encryption, apiKeys: ApiKeys, now: () => number = Date.now) {
    this.#encryption = encryption
    this.#apiKeys = apiKeys
    this.#now = now
  }

  static looksLike(credential: string): boolean {
    return credential.startsWith(prefix)
  }

  create({ apiKeyId }: Principal, runId: string, seconds: number): RunToken {
    const expiresAt = Math.floor(this.#now() / 1000) + seconds
    const end = Buffer.alloc(4)
    end.writeUInt32BE(expiresAt)
    const content = Buffer.concat([parse(apiKeyId), parse(runId), end])
    const signature = this.#encryption.sign('run-token', content.toString('base64url'))
    return { token: prefix + Buffer.concat([content, signature]).toString('base64url'), expiresAt: expiresAt * 1000 }
  }

  /** The caller with the scopes of the token's key; `undefined` if the token or its key is invalid. */
  async authenticate(token: string, from?: string) {
    const content = this.#verify(token)
    if (!content || content.readUInt32BE(2 * uuidBytes) * 1000 <= this.#now()) return undefined
    const caller = await this.#apiKeys.authenticateToken(stringify(content.subarray(0, uuidBytes)), from)
    const runId = stringify(content.subarray(uuidBytes, 2 * uuidBytes))
    return caller && { ...caller, principal: { ...caller.principal, runId }, permits: permitsRun(runId) }
  }

  #verify(token: string): Buffer | undefined {
    const bytes = pattern.test(token) ? Buffer.from(token.slice(prefix.length), 'base64url') : undefined
    // The last character has bits that no byte uses.
    if (!bytes || prefix + bytes.toString('base64url') !== token) return undefined
    const [content, signature] = [bytes.subarray(0, contentBytes), bytes.subarray(contentBytes)]
    const valid = this.#encryption.signatures('run-token', content.toString('base64url'))
    const isValid = signature.length === signatureBytes && valid.some((each) => timingSafeEqual(each, signature))
    return isValid ? content : undefined
  }
}
