/** Creating, listing, changing and deleting API keys. Every change is in the audit log. */
import { v7 as uuid } from 'uuid'
import type { Store, Transaction } from '../../storage/store.ts'
import { type Actor, recordAudit } from '../audit-log/audit-log.ts'
import {
  type ApiKey,
  ApiKeyError,
  activeKeysPerAccountMax,
  generateKeyValue,
  hashKeyValue,
  keysPerUserMax,
  parseKeyName,
  prefixOf,
} from './api-key.ts'
import * as rows from './api-keys.sql.ts'
import { ApiKeyAuthenticator, type Caller } from './callers.ts'

export interface NewApiKey {
  /** The same id makes no second key, so that a request which is repeated does not. A new one unless given. */
  id?: string
  accountId: string
  userId: string
  name: string
  scopes: string[] | null
  expiresAt: number | null
}

/** A key with its value, which is stored nowhere. */
export type RevealedKey = ApiKey & { value: string }

export class ApiKeys {
  readonly knownScopes: readonly string[]
  readonly #store: Store
  readonly #now: () => number
  readonly #callers: ApiKeyAuthenticator

  /** @param knownScopes every scope that the documents' security requirements name. */
  constructor(store: Store, knownScopes: Iterable<string>, now: () => number = Date.now) {
    this.#store = store
    this.knownScopes = [...knownScopes]
    this.#now = now
    this.#callers = new ApiKeyAuthenticator(store, now)
  }

  /**
   * Who calls with this value, and with which scopes (`null` for all).
   *
   * @param from the caller's address and program; `undefined` where an earlier call is merely looked at again.
   */
  authenticate(value: string, from?: string): Promise<Caller | undefined> {
    return this.#callers.authenticate(value, from)
  }

  /**
   * Makes a key and returns its value, which is stored nowhere.
   *
   * @throws {ApiKeyError} for its name, at a limit, for scopes that may not be chosen, or when its user was removed.
   */
  async create(key: NewApiKey, by: Actor): Promise<RevealedKey> {
    const draft = this.#draft({ ...key, name: parseKeyName(key.name) }, key.id)
    await this.#store.write(async (tx) => {
      await rows.lockAccountAndUser(tx, key.accountId, key.userId)
      // Who was signed in when the request came may have been removed by now.
      if (!(await rows.mayHold(tx, key.accountId, key.userId))) {
        throw new ApiKeyError('holder', 'This user was removed from the account.')
      }
      if (await rows.exists(tx, draft.id)) {
        throw new ApiKeyError('repeated', 'This key was created already; its value is not shown again.')
      }
      await this.#refuseScopes(tx, key)
      await this.#refuseBeyondLimits(tx, key, draft.createdAt)
      await insert(tx, draft)
      const details = { prefix: draft.prefix, scopes: draft.scopes, expiresAt: draft.expiresAt }
      await recordAudit(tx, key.accountId, { action: 'apiKey.created', by, subject: draft, details })
    })
    return draft
  }

  /** Keys of the account that are not deleted, oldest first. */
  async list(accountId: string): Promise<ApiKey[]> {
    return rows.list(this.#store.read, accountId, this.#now())
  }

  async get(accountId: string, id: string): Promise<ApiKey | undefined> {
    return rows.find(this.#store.read, accountId, id, this.#now())
  }

  /** Revokes the key: from the moment this resolves, no process accepts it. Returns whether there was such a key. */
  async delete(accountId: string, id: string, by: Actor): Promise<boolean> {
    return this.#store.write(async (tx) => {
      const key = await rows.find(tx, accountId, id, this.#now())
      return key !== undefined && this.#delete(tx, accountId, key, by)
    })
  }

  /** Returns whether there is such a key. @throws {ApiKeyError} for the name. */
  async rename(accountId: string, id: string, text: string, by: Actor): Promise<boolean> {
    const name = parseKeyName(text)
    return this.#store.write(async (tx) => {
      const key = await rows.find(tx, accountId, id, this.#now())
      if (!key || key.name === name) return key !== undefined
      await rows.rename(tx, id, name)
      const details = { from: key.name, to: name }
      await recordAudit(tx, accountId, { action: 'apiKey.renamed', by, subject: { id, name }, details })
      return true
    })
  }

  /**
   * Puts a new key in the place of one, with its name, scopes and lifetime: when the new value is returned, the old
   * one is refused. It is one transaction, so that it needs no room below the limits.
   *
   * @param newId as the id of a new key.
   * @throws {ApiKeyError} when it was done already, or an expired key's successor would be beyond a limit.
   */
  async rotate(accountId: string, id: string, newId: string, by: Actor): Promise<RevealedKey | undefined> {
    return this.#store.write(async (tx) => {
      const key = await rows.find(tx, accountId, id, this.#now())
      if (key) await rows.lockAccountAndUser(tx, accountId, key.userId)
      if (await rows.exists(tx, newId)) {
        throw new ApiKeyError('repeated', 'This key was rotated already; its new value is not shown again.')
      }
      if (!key || !(await rows.mayHold(tx, accountId, key.userId))) return undefined
      const lifetime = key.expiresAt === null ? null : key.expiresAt - key.createdAt
      const expiresAt = lifetime === null ? null : this.#now() + lifetime
      const draft = this.#draft({ ...key, accountId, expiresAt }, newId)
      if (!(await this.#delete(tx, accountId, key, by, { replacedBy: newId }))) return undefined
      await this.#refuseBeyondLimits(tx, { accountId, userId: key.userId }, draft.createdAt)
      await insert(tx, draft)
      const details = { replaces: id, prefix: draft.prefix }
      await recordAudit(tx, accountId, { action: 'apiKey.rotated', by, subject: draft, details })
      return draft
    })
  }

  /** Whether the user could create one more key now, and if not, why. */
  async findLimitError(accountId: string, userId: string): Promise<ApiKeyError | undefined> {
    const keys = await this.list(accountId)
    const held = keys.filter((key) => key.userId === userId).length
    return beyondLimit(held, keys.filter(({ expired }) => !expired).length)
  }

  async close(): Promise<void> {
    await this.#callers.close()
  }

  #draft({ name, scopes, expiresAt, userId, accountId }: NewApiKey, id: string = uuid()) {
    const value = generateKeyValue()
    const unused = { lastUsedAt: null, lastUsedBy: null, expired: false }
    return {
      id,
      accountId,
      value,
      userId,
      name,
      scopes,
      expiresAt,
      prefix: prefixOf(value),
      createdAt: this.#now(),
      ...unused,
    }
  }

  /** False when somebody else has just deleted it. */
  async #delete(tx: Transaction, accountId: string, key: ApiKey, by: Actor, details = {}): Promise<boolean> {
    if (!(await rows.markDeleted(tx, accountId, key.id, this.#now()))) return false
    const known = { ...details, prefix: key.prefix, lastUsedAt: key.lastUsedAt }
    await recordAudit(tx, accountId, { action: 'apiKey.deleted', by, subject: key, details: known })
    return true
  }

  async #refuseScopes(tx: Transaction, { accountId, scopes }: NewApiKey): Promise<void> {
    if (scopes === null) return
    if (!(await rows.scopesEnabled(tx, accountId))) {
      throw new ApiKeyError('scopes', 'Scopes are not enabled for this account: create the key without them.')
    }
    const unknown = scopes.find((scope) => !this.knownScopes.includes(scope))
    if (unknown === undefined && scopes.length > 0) return
    const known = this.knownScopes.join(', ')
    const what = unknown === undefined ? 'No scope is given' : `There is no scope "${unknown}"`
    throw new ApiKeyError('scopes', `${what}; choose from ${known}.`)
  }

  async #refuseBeyondLimits(
    tx: Transaction,
    { accountId, userId }: { accountId: string; userId: string },
    now: number,
  ) {
    await rows.markAllExpired(tx, accountId, now)
    const { held, active } = await rows.count(tx, accountId, userId)
    const refusal = beyondLimit(held, active)
    if (refusal) throw refusal
  }
}

function beyondLimit(held: number, active: number): ApiKeyError | undefined {
  if (held >= keysPerUserMax) {
    const message = `This user holds ${held} API keys, the most there can be: delete one first.`
    return new ApiKeyError('userLimit', message)
  }
  if (active >= activeKeysPerAccountMax) {
    const message = `This account has ${active} active API keys, the most there can be: delete one first.`
    return new ApiKeyError('accountLimit', message)
  }
  return undefined
}

async function insert(tx: Transaction, { value, ...key }: RevealedKey & { accountId: string }): Promise<void> {
  await rows.insert(tx, { ...key, hash: hashKeyValue(value) })
}
