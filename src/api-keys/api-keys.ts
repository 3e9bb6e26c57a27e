/** Creating, listing, deleting and authenticating API keys. */
import { v7 as uuid } from 'uuid'
import type { Session, Store } from '../storage/store.ts'
import {
  type ApiKey,
  ApiKeyRefused,
  activeInAccountMax,
  hashOf,
  heldByUserMax,
  newValue,
  type Principal,
  prefixOf,
} from './api-key.ts'
import * as rows from './store.ts'

export interface NewApiKey {
  accountId: string
  userId: string
  name: string
  scopes: string[] | null
  expiresAt: number | null
}

export interface Caller {
  principal: Principal
  scopes: string[] | null
}

/** How often the last uses seen since then are written down. */
const lastUsedMilliseconds = 5000

export class ApiKeys {
  readonly #store: Store
  readonly #knownScopes: ReadonlySet<string>
  readonly #now: () => number
  readonly #lastUsed = new Map<string, number>()
  /** Those of this turn of the event loop, by value. */
  readonly #lookUps = new Map<string, Promise<Caller | undefined>>()
  #turn: Promise<void> | undefined
  readonly #timer: NodeJS.Timeout

  /** @param knownScopes every scope that the documents' security requirements name. */
  constructor(store: Store, knownScopes: Iterable<string>, now: () => number = Date.now) {
    this.#store = store
    this.#knownScopes = new Set(knownScopes)
    this.#now = now
    this.#timer = setInterval(() => this.#writeLastUsed().catch(() => {}), lastUsedMilliseconds).unref()
  }

  /**
   * Makes a key and returns its value, which is stored nowhere.
   *
   * @throws {ApiKeyRefused} at a limit, or for scopes that may not be chosen.
   */
  async create(key: NewApiKey): Promise<ApiKey & { value: string }> {
    const value = newValue()
    const id = uuid()
    const createdAt = this.#now()
    await this.#store.write(async (session) => {
      await rows.lockOwners(session, key.accountId, key.userId)
      await this.#refuseScopes(session, key)
      await this.#refuseBeyondLimits(session, key, createdAt)
      await rows.insert(session, { ...key, id, createdAt, hash: hashOf(value), prefix: prefixOf(value) })
    })
    const { name, scopes, expiresAt } = key
    return { id, value, name, scopes, expiresAt, prefix: prefixOf(value), createdAt, lastUsedAt: null, expired: false }
  }

  /** Keys of the account that are not deleted, oldest first. */
  async list(accountId: string): Promise<ApiKey[]> {
    return rows.list(this.#store.read, accountId, this.#now())
  }

  /** Revokes the key: from the moment this resolves, no process accepts it. Returns whether there was such a key. */
  async delete(accountId: string, id: string): Promise<boolean> {
    return this.#store.write((session) => rows.markDeleted(session, accountId, id, this.#now()))
  }

  /**
   * Who calls with this value, and with which scopes (`null` for all). There is no cache between this and the
   * store, so that a deleted key is refused at once everywhere. Calls with the same value that arrive in the same turn
   * of the event loop share one look-up, which begins after the last of them: a fifth of a request's CPU at 64
   * connections.
   */
  authenticate(value: string): Promise<Caller | undefined> {
    let caller = this.#lookUps.get(value)
    if (!caller) {
      caller = this.#endOfTurn().then(() => this.#lookUp(value))
      this.#lookUps.set(value, caller)
    }
    return caller
  }

  #endOfTurn(): Promise<void> {
    this.#turn ??= new Promise((resolve) => {
      setImmediate(() => {
        this.#lookUps.clear()
        this.#turn = undefined
        resolve()
      })
    })
    return this.#turn
  }

  async #lookUp(value: string): Promise<Caller | undefined> {
    const key = await rows.findByHash(this.#store.read, hashOf(value))
    if (!key || key.expired_at !== null) return undefined
    const now = this.#now()
    if (key.expires_at !== null && key.expires_at <= now) {
      // Written down, so that a clock that steps back does not bring the key back to life.
      await this.#store.write((session) => rows.markExpired(session, key.id, now))
      return undefined
    }
    this.#lastUsed.set(key.id, now)
    const scopes = key.scopes === null ? null : (JSON.parse(key.scopes) as string[])
    return { principal: { accountId: key.account_id, apiKeyId: key.id }, scopes }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#writeLastUsed()
  }

  async #writeLastUsed(): Promise<void> {
    if (this.#lastUsed.size === 0) return
    const uses = [...this.#lastUsed]
    this.#lastUsed.clear()
    await this.#store.write((session) => rows.markUsed(session, uses))
  }

  async #refuseScopes(session: Session, { accountId, scopes }: NewApiKey): Promise<void> {
    if (scopes === null) return
    if (!(await rows.scopesEnabled(session, accountId))) {
      throw new ApiKeyRefused('Scopes are not enabled for this account: create the key without them.')
    }
    const unknown = scopes.find((scope) => !this.#knownScopes.has(scope))
    if (unknown === undefined && scopes.length > 0) return
    const known = [...this.#knownScopes].join(', ')
    throw new ApiKeyRefused(
      `${unknown === undefined ? 'No scope is given' : `There is no scope "${unknown}"`}; choose from ${known}.`,
    )
  }

  async #refuseBeyondLimits(session: Session, { accountId, userId }: NewApiKey, now: number): Promise<void> {
    await rows.markAllExpired(session, accountId, now)
    const { held, active } = await rows.count(session, accountId, userId)
    if (held >= heldByUserMax) {
      throw new ApiKeyRefused(`This user holds ${held} API keys, the most there can be: delete one first.`)
    }
    if (active >= activeInAccountMax) {
      throw new ApiKeyRefused(`This account has ${active} active API keys, the most there can be: delete one first.`)
    }
  }
}
