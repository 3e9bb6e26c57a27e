/** Creates, lists, renames, rotates and deletes API keys. Every change is in the audit log. */
import { v7 as uuid } from 'uuid'
import { ignoreUnavailable, type Store, type Transaction, untilAnswered } from '../../storage/store.ts'
import { effectiveScopes, permitsScope, type Role, toRole } from '../accounts/roles.ts'
import { type Action, type Actor, recordAudit } from '../audit-log/audit-log.ts'
import type { Refusals } from '../audit-log/refusals.ts'
import {
  type ApiKey,
  ApiKeyError,
  activeKeysPerAccountMax,
  generateKeyValue,
  hashKeyValue,
  keysPerUserMax,
  overlapHoursMax,
  type Principal,
  parseKeyName,
  parseKeyValue,
} from './api-key.ts'
import * as rows from './api-keys.sql.ts'
import { type PermitsRequest, requireValidRestriction, restrictTo } from './workflow-restriction.ts'

const hourMilliseconds = 60 * 60 * 1000

export interface NewApiKey {
  /** Makes the call idempotent; by default a new ID. */
  id?: string
  accountId: string
  userId: string
  name: string
  scopes: string[] | null
  /** Restricts the key to these workflows. By default, it is for all of the account. */
  workflowIds?: string[] | null
  expiresAt: number | null
}

/** A key with its value, which cannot be read later. */
export type RevealedKey = ApiKey & { value: string }

export class ApiKeys {
  readonly knownScopes: readonly string[]
  readonly #store: Store
  readonly #now: () => number
  readonly #authenticator: ApiKeyAuthenticator

  /**
   * @param knownScopes every scope in the security requirements of the OpenAPI documents.
   * @param refusals records refused keys; omitted where no callers are authenticated.
   */
  constructor(store: Store, knownScopes: Iterable<string>, now: () => number = Date.now, refusals?: Refusals) {
    this.#store = store
    this.knownScopes = [...knownScopes]
    this.#now = now
    this.#authenticator = new ApiKeyAuthenticator(store, this.knownScopes, now, refusals)
  }

  /**
   * The caller with this key value and their scopes (`null` means all).
   *
   * @param from the caller's address and user agent; `undefined` to check an authenticated caller again.
   */
  authenticate(value: string, from?: string): Promise<Caller | undefined> {
    return this.#authenticator.authenticate(value, from)
  }

  /** The caller of a token that was made with this key, while the key is valid. */
  authenticateToken(keyId: string, from?: string): Promise<Caller | undefined> {
    return this.#authenticator.authenticateToken(keyId, from)
  }

  /** @throws {ApiKeyError} for an invalid name, scope or workflow ID, at a limit, for a repeated ID, or if the user was removed. */
  async create(key: NewApiKey, by: Actor): Promise<RevealedKey> {
    const unlimited = this.#draft({ ...key, name: parseKeyName(key.name) }, key.id)
    return this.#store.write(async (tx) => {
      await rows.lockAccountAndUser(tx, key.accountId, key.userId)
      // The user may have been removed since the request was authenticated.
      const role = await rows.findRoleOfUser(tx, key.accountId, key.userId)
      if (!role) throw new ApiKeyError('holder', 'This user has been removed from the account.')
      const draft = { ...unlimited, role }
      if (await rows.exists(tx, draft.id)) {
        throw new ApiKeyError('repeated', 'This key has already been created. Its value was shown once.')
      }
      await this.#requireValidScopes(tx, key, role)
      requireValidRestriction(draft)
      await this.#requireBelowLimits(tx, key)
      await insert(tx, draft)
      const { prefix, scopes, workflowIds, expiresAt } = draft
      const details = { prefix, scopes, ...(workflowIds && { workflows: workflowIds }), expiresAt }
      await recordAudit(tx, key.accountId, { action: 'apiKey.created', by, subject: draft, details })
      return draft
    })
  }

  /** The account's keys, oldest first. */
  async list(accountId: string): Promise<ApiKey[]> {
    return rows.list(this.#store.read, accountId, this.#now())
  }

  async get(accountId: string, id: string): Promise<ApiKey | undefined> {
    return rows.find(this.#store.read, accountId, id, this.#now())
  }

  /** Deletes the key: once this resolves, no process accepts it. Returns whether the key existed. */
  async delete(accountId: string, id: string, by: Actor): Promise<boolean> {
    return this.#store.write(async (tx) => {
      const key = await rows.find(tx, accountId, id, this.#now())
      return key !== undefined && this.#delete(tx, accountId, key, by)
    })
  }

  /** Returns whether the key exists. @throws {ApiKeyError} for an invalid name. */
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
   * Replaces a key by a new one with the same name, scopes, workflows and lifetime, in one transaction. Without an overlap, the old
   * value stops working when the new one starts to, and a limit that is reached does not prevent it. With one, the old
   * key expires at its end, and counts until it is deleted.
   *
   * @param newId makes the call idempotent.
   * @param overlapHours for how long both values work, from 0 to `overlapHoursMax`.
   * @throws {ApiKeyError} for another overlap, if `newId` exists, or if both keys together would exceed a limit.
   */
  async rotate(
    accountId: string,
    id: string,
    newId: string,
    by: Actor,
    overlapHours = 0,
  ): Promise<RevealedKey | undefined> {
    requireOverlap(overlapHours)
    return this.#store.write(async (tx) => {
      // No other write happens at the same time: a deleted key, whose access was revoked, gets no successor.
      const key = await rows.find(tx, accountId, id, this.#now())
      if (key) await rows.lockAccountAndUser(tx, accountId, key.userId)
      if (await rows.exists(tx, newId)) {
        throw new ApiKeyError('repeated', 'This key has already been rotated. Its new value was shown once.')
      }
      const role = key && (await rows.findRoleOfUser(tx, accountId, key.userId))
      if (!key || !role) return undefined
      // Not by its expiry, which an earlier rotation may have brought forward.
      const lifetime = await rows.findLifetime(tx, id)
      const expiresAt = lifetime === null ? null : this.#now() + lifetime
      const draft = { ...this.#draft({ ...key, accountId, expiresAt }, newId), role }
      const overlap = key.expired ? 0 : overlapHours
      const oldKeyExpiresAt = Math.min(
        key.expiresAt ?? Number.POSITIVE_INFINITY,
        this.#now() + overlap * hourMilliseconds,
      )
      if (overlap > 0) await rows.shorten(tx, id, { expiresAt: oldKeyExpiresAt, lifetime })
      else await this.#delete(tx, accountId, key, by, { replacedBy: newId })
      await this.#requireBelowLimits(tx, draft)
      await insert(tx, draft)
      const details = { replaces: id, prefix: draft.prefix, ...(overlap > 0 && { oldKeyExpiresAt }) }
      await recordAudit(tx, accountId, { action: 'apiKey.rotated', by, subject: draft, details })
      return draft
    })
  }

  /** The limit that prevents the user from creating another key now, if any. */
  async findLimitError(accountId: string, userId: string): Promise<ApiKeyError | undefined> {
    const keys = await this.list(accountId)
    const ofUser = keys.filter((key) => key.userId === userId).length
    return limitError(ofUser, keys.filter(({ expired }) => !expired).length)
  }

  async close(): Promise<void> {
    await this.#authenticator.close()
  }

  #draft({ name, scopes, workflowIds: ids = null, expiresAt, userId, accountId }: NewApiKey, id: string = uuid()) {
    const value = generateKeyValue()
    const workflowIds = ids && [...new Set(ids)]
    const key = { id, accountId, value, userId, name, scopes, workflowIds, expiresAt, prefix: value.slice(0, 8) }
    return { ...key, createdAt: this.#now(), lastUsedAt: null, lastUsedBy: null, expired: false }
  }

  /** Returns false if another transaction has deleted the key. */
  async #delete(tx: Transaction, accountId: string, key: ApiKey, by: Actor, reason = {}): Promise<boolean> {
    if (!(await rows.markDeleted(tx, accountId, key.id, this.#now()))) return false
    const details = { ...reason, prefix: key.prefix, lastUsedAt: key.lastUsedAt }
    await recordAudit(tx, accountId, { action: 'apiKey.deleted', by, subject: key, details })
    return true
  }

  async #requireValidScopes(tx: Transaction, { accountId, scopes }: NewApiKey, role: Role): Promise<void> {
    if (scopes === null) return
    if (!(await rows.hasScopesEnabled(tx, accountId))) {
      throw new ApiKeyError(
        'scopes',
        'Scopes are off for this account. An admin turns them on in the dashboard, under Settings → General.',
      )
    }
    const known = this.knownScopes.join(', ')
    if (scopes.length === 0) throw new ApiKeyError('scopes', `Choose at least one scope of ${known}.`)
    const unknown = scopes.find((scope) => !this.knownScopes.includes(scope))
    if (unknown !== undefined) throw new ApiKeyError('scopes', `Unknown scope "${unknown}". Choose from ${known}.`)
    const forbidden = scopes.find((scope) => !permitsScope(role, scope))
    if (forbidden === undefined) return
    const message = `The role ${role} does not permit the scope ${forbidden}. Choose others, or ask an admin to create the key.`
    throw new ApiKeyError('scopes', message)
  }

  async #requireBelowLimits(tx: Transaction, { accountId, userId }: { accountId: string; userId: string }) {
    await rows.markAllExpired(tx, accountId, this.#now())
    const { ofUser, active } = await rows.count(tx, accountId, userId)
    const error = limitError(ofUser, active)
    if (error) throw error
  }
}

/** For how long both values of a rotated key count, in the texts about limits. */
export const rotatedNote = `The old value of a rotated key counts for the account until it expires, at most ${overlapHoursMax} hours after the rotation, and for its user until it is deleted.`

function limitError(ofUser: number, active: number): ApiKeyError | undefined {
  if (ofUser >= keysPerUserMax) {
    return new ApiKeyError(
      'userLimit',
      `This user has ${ofUser} API keys, which is the limit. Delete one first. ${rotatedNote}`,
    )
  }
  if (active >= activeKeysPerAccountMax) {
    const message = `This account has ${active} active API keys, which is the limit. Delete one first. ${rotatedNote}`
    return new ApiKeyError('accountLimit', message)
  }
  return undefined
}

/** @throws {ApiKeyError} */
function requireOverlap(hours: number): void {
  if (Number.isInteger(hours) && hours >= 0 && hours <= overlapHoursMax) return
  throw new ApiKeyError('overlap', `Enter a whole number of hours from 0 to ${overlapHoursMax}.`)
}

async function insert(tx: Transaction, { value, ...key }: RevealedKey & { accountId: string }): Promise<void> {
  await rows.insert(tx, { ...key, hash: hashKeyValue(value) })
}

// Looks up the API key of every request, and records when keys were used.

interface Caller {
  principal: Principal
  scopes: string[] | null
  /** Set for a key that is restricted to workflows. */
  permits?: PermitsRequest
}

interface WaitingCaller extends PromiseWithResolvers<Caller | undefined> {
  hash: Uint8Array
  /** `undefined` when an authenticated caller is checked again. */
  from: string | undefined
}

const flushMilliseconds = 5000
/** Bounds the parameters of a look-up. */
const lookUpMax = 256

class ApiKeyAuthenticator {
  readonly #store: Store
  readonly #knownScopes: readonly string[]
  readonly #now: () => number
  readonly #refusals: Refusals | undefined
  /** Uses to be written by the next flush, by key ID. */
  readonly #uses = new Map<string, rows.KeyUse>()
  /** Callers that wait for the next look-up, by key value. */
  readonly #waiting = new Map<string, WaitingCaller>()
  #lookingUp: Promise<void> | undefined
  readonly #timer: NodeJS.Timeout

  constructor(store: Store, knownScopes: readonly string[], now: () => number, refusals: Refusals | undefined) {
    this.#store = store
    this.#knownScopes = knownScopes
    this.#now = now
    this.#refusals = refusals
    this.#timer = setInterval(() => this.#flush().catch(() => {}), flushMilliseconds).unref()
  }

  /**
   * Every call queries the store, without a cache, so that all processes refuse a deleted key at once. Calls that arrive
   * together share a query, which begins after the last of them: while one is under way, the next gathers.
   */
  async authenticate(text: string, from: string | undefined): Promise<Caller | undefined> {
    const value = parseKeyValue(text)
    if (value === undefined) return this.#refuse(from)
    let caller = this.#waiting.get(value)
    if (!caller) {
      caller = { ...Promise.withResolvers<Caller | undefined>(), hash: hashKeyValue(value), from }
      this.#waiting.set(value, caller)
      this.#lookingUp ??= this.#lookUpWaiting()
    }
    return caller.promise
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    // A stop does not wait for the store: the times of the last calls are lost.
    await this.#flush().catch(ignoreUnavailable)
  }

  async #lookUpWaiting(): Promise<void> {
    // Lets requests that have arrived on other connections be parsed.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#waiting.size > 0) {
      const next = [...this.#waiting].slice(0, lookUpMax)
      for (const [value] of next) this.#waiting.delete(value)
      await untilAnswered(this.#store, this.#lookUp(next.map(([, caller]) => caller)))
    }
    this.#lookingUp = undefined
  }

  /** Authenticates a token that was made with the key, as the key itself. The last caller of the key does not change. */
  async authenticateToken(keyId: string, from: string | undefined): Promise<Caller | undefined> {
    const key = await rows.findById(this.#store.read, keyId)
    return key ? this.#admit(key, from, true) : this.#refuse(from)
  }

  async #lookUp(callers: readonly WaitingCaller[]): Promise<void> {
    const toText = (hash: Uint8Array) => Buffer.from(hash).toString('base64')
    try {
      const hashes = callers.map(({ hash }) => hash)
      const found = (await rows.findByHashes(this.#store.read, hashes)).map((row) => [toText(row.hash), row] as const)
      const keys = new Map(found)
      for (const { hash, from, resolve, reject } of callers) {
        const key = keys.get(toText(hash))
        if (key) this.#admit(key, from).then(resolve, reject)
        else this.#refuseUnknown(hash, from).then(resolve, reject)
      }
    } catch (error) {
      for (const { reject } of callers) reject(error)
    }
  }

  /** A key that was deleted: its owner missed that, or an attacker has it. */
  async #refuseUnknown(hash: Uint8Array, from: string | undefined): Promise<undefined> {
    return this.#refuse(from, await rows.findDeletedByHash(this.#store.read, hash))
  }

  async #admit(key: rows.KeyRow, from: string | undefined, isToken = false): Promise<Caller | undefined> {
    if (key.expired_at !== null) return this.#refuse(from, key, 'apiKey.usedAfterExpiry')
    const now = this.#now()
    if (key.expires_at !== null && key.expires_at <= now) {
      // Recorded, so that a clock that steps back cannot reactivate the key.
      await this.#store.write((tx) => rows.markExpired(tx, key.id, now))
      return this.#refuse(from, key, 'apiKey.usedAfterExpiry')
    }
    // The key's row has the creator's role, so that a request needs no further statement.
    const role = toRole(key.role)
    if (!role) return this.#refuse(from, key, 'apiKey.usedWithoutRole')
    this.#uses.set(key.id, { at: now, by: (isToken ? undefined : from) ?? this.#uses.get(key.id)?.by ?? null })
    const created = key.scopes === null ? null : (JSON.parse(key.scopes) as string[])
    const scopes = effectiveScopes(created, role, this.#knownScopes)
    const { environment } = key
    const principal = { accountId: key.account_id, apiKeyId: key.id, ...(environment !== null && { environment }) }
    if (key.workflow_ids === null) return { principal, scopes }
    const workflowIds: string[] = JSON.parse(key.workflow_ids)
    return { principal: { ...principal, workflowIds }, scopes, permits: restrictTo(workflowIds) }
  }

  /** @param from `undefined` when an authenticated caller is checked again, which is no new refusal. */
  #refuse(from: string | undefined, key?: rows.RefusedKey, action: Action = 'apiKey.usedAfterDeletion'): undefined {
    if (from === undefined) return
    const audit = key && { action, accountId: key.account_id, subject: { id: key.id, name: key.name } }
    this.#refusals?.record({ message: 'API key refused', client: from, audit })
  }

  /** Writes the collected uses outside of requests, so that no caller waits for it. */
  async #flush(): Promise<void> {
    if (this.#uses.size === 0) return
    const uses = [...this.#uses]
    this.#uses.clear()
    await this.#store
      .write((tx) => rows.markUsed(tx, uses))
      .catch((error) => {
        // Keep them for the next flush, except where a later use has been seen.
        for (const [id, use] of uses) if (!this.#uses.has(id)) this.#uses.set(id, use)
        throw error
      })
  }
}
