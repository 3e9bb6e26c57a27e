/** Dashboard sessions. The store keeps only hashes of session IDs, so a stolen copy of it opens no session. */
import { hash } from 'node:crypto'
import type { Store, Transaction } from '../../storage/store.ts'

interface StoredSession {
  userId: string
  data: string
  expiresAt: number
}

const findSql = 'SELECT user_id AS "userId", data, expires_at AS "expiresAt" FROM sessions WHERE hash = ?'

export class Sessions {
  readonly #store: Store
  readonly #now: () => number

  constructor(store: Store, now: () => number = Date.now) {
    this.#store = store
    this.#now = now
  }

  /** Returns `undefined` for a session that has ended or expired. */
  async get(id: string): Promise<StoredSession | undefined> {
    const [row] = await this.#store.read.all<StoredSession>(findSql, [hashToken(id)])
    return row && row.expiresAt > this.#now() ? row : undefined
  }

  /** Stores a session unless its ID exists, and deletes expired sessions. Sessions are never updated. */
  async create(id: string, { userId, data, expiresAt }: StoredSession): Promise<void> {
    await this.#store.write(async ({ query }) => {
      await query.deleteFrom('sessions').where('expires_at', '<=', this.#now()).execute()
      await query
        .insertInto('sessions')
        .values({ hash: hashToken(id), user_id: userId, data, expires_at: expiresAt })
        .onConflict((it) => it.column('hash').doNothing())
        .execute()
    })
  }

  async delete(id: string): Promise<void> {
    await this.#store.write(({ query }) =>
      query.deleteFrom('sessions').where('hash', '=', hashToken(id)).executeTakeFirst(),
    )
  }
}

/** Hashes a session ID or the token of a link. Both have 192 random bits, so a fast unsalted hash is enough. */
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

export async function deleteUserSessions({ query }: Transaction, userId: string): Promise<void> {
  await query.deleteFrom('sessions').where('user_id', '=', userId).execute()
}
