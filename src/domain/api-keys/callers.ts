/** Who calls with which API key: the look-up that every request makes, and the notes of when keys were used. */

import type { Store } from '../../storage/store.ts'
import { recordAudit } from '../audit-log/audit-log.ts'
import { hashKeyValue, type Principal } from './api-key.ts'
import * as rows from './api-keys.sql.ts'

export interface Caller {
  principal: Principal
  scopes: string[] | null
}

/** A deleted key that somebody still uses. */
interface LateUse {
  accountId: string
  name: string
  use: rows.Use
}

/** How often the uses seen since then are written down. */
const noteMilliseconds = 5000
/** A deleted key that is used again and again is noted this often. */
const lateUseMilliseconds = 60 * 60 * 1000

export class ApiKeyAuthenticator {
  readonly #store: Store
  readonly #now: () => number
  readonly #uses = new Map<string, rows.Use>()
  readonly #lateUses = new Map<string, LateUse>()
  /** When late uses were noted last, by key. */
  readonly #lateNotes = new Map<string, number>()
  /** Those of this turn of the event loop, by value. */
  readonly #lookUps = new Map<string, Promise<Caller | undefined>>()
  #turn: Promise<void> | undefined
  readonly #timer: NodeJS.Timeout

  constructor(store: Store, now: () => number) {
    this.#store = store
    this.#now = now
    this.#timer = setInterval(() => this.#note().catch(() => {}), noteMilliseconds).unref()
  }

  /**
   * There is no cache between this and the store, so that a deleted key is refused at once everywhere. Calls with the
   * same value that arrive in the same turn of the event loop share one look-up, which begins after the last of them:
   * a fifth of a request's CPU at 64 connections.
   */
  authenticate(value: string, from: string | undefined): Promise<Caller | undefined> {
    let caller = this.#lookUps.get(value)
    if (!caller) {
      caller = this.#endOfTurn().then(() => this.#lookUp(value, from))
      this.#lookUps.set(value, caller)
    }
    return caller
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#note()
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

  async #lookUp(value: string, from: string | undefined): Promise<Caller | undefined> {
    const hash = hashKeyValue(value)
    const key = await rows.findByHash(this.#store.read, hash)
    if (!key) {
      if (from !== undefined) await this.#lookAtDeleted(hash, from)
      return undefined
    }
    if (key.expired_at !== null) return undefined
    const now = this.#now()
    if (key.expires_at !== null && key.expires_at <= now) {
      // Written down, so that a clock that steps back does not bring the key back to life.
      await this.#store.write((tx) => rows.markExpired(tx, key.id, now))
      return undefined
    }
    this.#uses.set(key.id, { at: now, by: from ?? this.#uses.get(key.id)?.by ?? null })
    const scopes = key.scopes === null ? null : (JSON.parse(key.scopes) as string[])
    return { principal: { accountId: key.account_id, apiKeyId: key.id }, scopes }
  }

  /** Somebody has not learnt of the deletion, or has got hold of an old key: either way its account wants to know. */
  async #lookAtDeleted(hash: Uint8Array, from: string): Promise<void> {
    const key = await rows.findDeletedByHash(this.#store.read, hash)
    if (!key) return
    const now = this.#now()
    if (now - (this.#lateNotes.get(key.id) ?? Number.NEGATIVE_INFINITY) < lateUseMilliseconds) return
    this.#lateNotes.set(key.id, now)
    this.#lateUses.set(key.id, { accountId: key.account_id, name: key.name, use: { at: now, by: from } })
  }

  /** Not within the request: nobody who calls is to wait for it. */
  async #note(): Promise<void> {
    if (this.#uses.size === 0 && this.#lateUses.size === 0) return
    const uses = [...this.#uses]
    const lateUses = [...this.#lateUses]
    this.#uses.clear()
    this.#lateUses.clear()
    const written = this.#store.write(async (tx) => {
      await rows.markUsed(tx, uses)
      for (const [id, { accountId, name, use }] of lateUses) {
        const by = { kind: 'caller', id: null, name: use.by ?? 'somebody' } as const
        const entry = { action: 'apiKey.usedAfterDeletion', by, subject: { id, name }, at: use.at } as const
        await recordAudit(tx, accountId, entry)
      }
    })
    await written.catch((error) => {
      // For the next time, but for what was seen since then.
      for (const [id, use] of uses) if (!this.#uses.has(id)) this.#uses.set(id, use)
      for (const [id, use] of lateUses) if (!this.#lateUses.has(id)) this.#lateUses.set(id, use)
      throw error
    })
  }
}
