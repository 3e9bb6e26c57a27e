/**
 * Dashboard sessions. A session belongs to the credentials epoch in which the user proved their identity, and is valid
 * only while that is the user's epoch. The store keeps only hashes of tokens, so a stolen copy of it opens no session.
 */
import { hash } from 'node:crypto'
import { v7 as uuid } from 'uuid'
import { dayMilliseconds } from '../../storage/purge-target.ts'
import { ignoreUnavailable, type Store, statement, type Transaction } from '../../storage/store.ts'
import type { SessionsTable } from '../../storage/tables/account-tables.ts'
import { deleteAllOfUser, lockAccountAndUser } from '../api-keys/api-keys.sql.ts'
import { recordAudit } from '../audit-log/audit-log.ts'
import { changeCredentials, endLinksForUser } from './accounts.sql.ts'
import { toActor, type User } from './user.ts'

/** A session ends after this time, even when it is used. */
export const sessionMilliseconds = 7 * dayMilliseconds

/** How often a use is recorded. */
const useMilliseconds = 60_000

export interface Client {
  address: string
  userAgent: string
}

/** Longer user agents are truncated. */
const userAgentLengthMax = 300

/** How the user proved their identity; audited as a sign-in. `undefined` continues another session of the user. */
export type Proof = { how: 'password' | 'link' | 'provider'; secondFactor?: 'code' | 'recovery code' } | undefined

export interface NewSession {
  /** In the epoch in which they proved their identity. */
  user: User
  /** Signed in with a link: the user may set a password without entering the current one. */
  byLink: boolean
  client: Client
  proof: Proof
  /** The session that this one goes on with, in the same environment: it expires when that one would have. */
  continued?: Session | undefined
}

export interface Session extends Client {
  id: string
  userId: string
  credentialsEpoch: number
  byLink: boolean
  createdAt: number
  lastUsedAt: number
  expiresAt: number
  /** The account of the environment that its pages show; `null` for that of the user. */
  environmentId: string | null
}

/** The user's password or second factor has changed, or the user was removed or lost their role, since they proved their identity. */
export class CredentialsChangedError extends Error {}

type SessionRow = Omit<SessionsTable, 'hash'>

const valid = `SELECT sessions.id, user_id, sessions.credentials_epoch, by_link, address, user_agent, sessions.created_at, last_used_at, expires_at, environment_id
  FROM sessions JOIN users ON users.id = user_id AND users.credentials_epoch = sessions.credentials_epoch
  WHERE users.removed_at IS NULL AND users.role IS NOT NULL AND expires_at > ? AND last_used_at > ?`
const findSession = statement<SessionRow, [now: number, usedAfter: number, hash: Uint8Array]>(`${valid} AND hash = ?`)
const listSessions = statement<SessionRow, [now: number, usedAfter: number, userId: string]>(
  `${valid} AND user_id = ? ORDER BY last_used_at DESC, sessions.id DESC`,
)

/** The epoch is compared by the statement that inserts, and again at each use of the session. */
const insertSession = statement<{ id: string }, (string | number | Uint8Array | null)[]>(`INSERT INTO sessions
    (id, hash, user_id, credentials_epoch, by_link, address, user_agent, created_at, last_used_at, expires_at, environment_id)
  SELECT ?, ?, id, credentials_epoch, ?, ?, ?, ?, ?, ?, ? FROM users
    WHERE id = ? AND credentials_epoch = ? AND removed_at IS NULL AND role IS NOT NULL RETURNING id`)

export class Sessions {
  readonly #store: Store
  readonly #idleMilliseconds: number
  readonly #now: () => number

  /** @param idleMilliseconds a session that was not used for this long has ended. */
  constructor(store: Store, idleMilliseconds: number, now: () => number = Date.now) {
    this.#store = store
    this.#idleMilliseconds = idleMilliseconds
    this.#now = now
  }

  /** Returns `undefined` for a session that has ended, expired or was idle for too long. */
  async get(token: string): Promise<Session | undefined> {
    const [row] = await this.#store.read.all(findSession, [...this.#validAt(), hashToken(token)])
    return row && toSession(row)
  }

  /** The user's sessions, the last used first. */
  async list(userId: string): Promise<Session[]> {
    return (await this.#store.read.all(listSessions, [...this.#validAt(), userId])).map(toSession)
  }

  /** Stores a session, and deletes those that have expired. @throws {CredentialsChangedError} */
  async create(token: string, { user, byLink, client, proof, continued }: NewSession): Promise<void> {
    const now = this.#now()
    const userAgent = client.userAgent.slice(0, userAgentLengthMax)
    const first = { createdAt: now, expiresAt: now + sessionMilliseconds, environmentId: null }
    const { createdAt, expiresAt, environmentId } = continued ?? first
    const times = [createdAt, now, expiresAt]
    const values = [uuid(), hashToken(token), byLink ? 1 : 0, client.address, userAgent, ...times, environmentId]
    await this.#store.write(async (tx) => {
      const [, usedAfter] = this.#validAt()
      const ended = tx.query.deleteFrom('sessions')
      await ended.where((it) => it.or([it('expires_at', '<=', now), it('last_used_at', '<=', usedAfter)])).execute()
      const [created] = await tx.all(insertSession, [...values, user.id, user.credentialsEpoch])
      if (!created) throw new CredentialsChangedError()
      if (proof) await recordSignIn(tx, user, client, proof, now)
    })
  }

  /** Records a use, at most once a minute. Best effort: a use that is not recorded lets the session end earlier. */
  async recordUse({ id, lastUsedAt }: Session, { address, userAgent }: Client): Promise<void> {
    const now = this.#now()
    if (now - lastUsedAt < useMilliseconds) return
    const use = { last_used_at: now, address, user_agent: userAgent.slice(0, userAgentLengthMax) }
    const written = this.#store.write(({ query }) =>
      query.updateTable('sessions').set(use).where('id', '=', id).where('last_used_at', '<', now).executeTakeFirst(),
    )
    await written.catch(ignoreUnavailable)
  }

  /** Shows another environment on the session's pages. @param environmentId an environment of the user's account. */
  async enterEnvironment({ id }: Session, environmentId: string | null): Promise<void> {
    const session = { environment_id: environmentId }
    await this.#store.write(({ query }) =>
      query.updateTable('sessions').set(session).where('id', '=', id).executeTakeFirst(),
    )
  }

  async end(token: string): Promise<void> {
    const hash = hashToken(token)
    await this.#store.write(({ query }) => query.deleteFrom('sessions').where('hash', '=', hash).executeTakeFirst())
  }

  /** Ends one of the user's sessions. Returns whether it existed. */
  async endById(user: User, id: string): Promise<boolean> {
    return this.#store.write(async (tx) => {
      const session = tx.query.deleteFrom('sessions').where('id', '=', id).where('user_id', '=', user.id)
      const row = await session.returning('address').executeTakeFirst()
      if (!row) return false
      const entry = { action: 'user.sessionEnded', by: toActor(user), details: { address: row.address } } as const
      await recordAudit(tx, user.accountId, entry)
      return true
    })
  }

  /** Ends all sessions of the user, sign-ins in progress, and sign-in links; with `apiKeys`, also the user's API keys. */
  async endAll(user: User, { apiKeys = false } = {}): Promise<void> {
    const by = toActor(user)
    const at = this.#now()
    await this.#store.write(async (tx) => {
      if (apiKeys) await lockAccountAndUser(tx, user.accountId, user.id)
      await changeCredentials(tx, user, {})
      await endLinksForUser(tx, user.id, ['welcome', 'signIn'], at)
      for (const { accountId, ...subject } of apiKeys ? await deleteAllOfUser(tx, user.id, at) : [])
        await recordAudit(tx, accountId, { action: 'apiKey.deleted', by, subject })
      await recordAudit(tx, user.accountId, { action: 'user.signedOutEverywhere', by })
    })
  }

  #validAt(): [now: number, usedAfter: number] {
    const now = this.#now()
    return [now, now - this.#idleMilliseconds]
  }
}

async function recordSignIn(
  tx: Transaction,
  user: User,
  { address }: Client,
  proof: object,
  at: number,
): Promise<void> {
  await tx.query.updateTable('users').set({ last_signed_in_at: at }).where('id', '=', user.id).execute()
  const details = { ...proof, address }
  await recordAudit(tx, user.accountId, { action: 'user.signedIn', by: toActor(user), details })
}

/** Hashes the token of a session or link. Both have 192 random bits, so a fast unsalted hash is enough. */
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

function toSession(row: SessionRow): Session {
  return {
    id: row.id,
    userId: row.user_id,
    credentialsEpoch: row.credentials_epoch,
    byLink: row.by_link === 1,
    address: row.address,
    userAgent: row.user_agent,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    expiresAt: row.expires_at,
    environmentId: row.environment_id,
  }
}
