/** Sessions of the dashboard. The store keeps a hash of each id, so that a stolen copy of it opens no session. */
import { hash } from 'node:crypto'
import type { Store, Transaction } from '../../storage/store.ts'

export interface StoredSession {
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

  /** `undefined` for one that has expired or ended. */
  async get(id: string): Promise<StoredSession | undefined> {
    const [row] = await this.#store.read.all<StoredSession>(findSql, [hashSessionId(id)])
    return row && row.expiresAt > this.#now() ? row : undefined
  }

  /** Also forgets what has expired. One that has ended does not begin again: a session is written once. */
  async create(id: string, { userId, data, expiresAt }: StoredSession): Promise<void> {
    await this.#store.write(async ({ query }) => {
      await query.deleteFrom('sessions').where('expires_at', '<=', this.#now()).execute()
      await query
        .insertInto('sessions')
        .values({ hash: hashSessionId(id), user_id: userId, data, expires_at: expiresAt })
        .onConflict((it) => it.column('hash').doNothing())
        .execute()
    })
  }

  async delete(id: string): Promise<void> {
    await this.#store.write(({ query }) =>
      query.deleteFrom('sessions').where('hash', '=', hashSessionId(id)).executeTakeFirst(),
    )
  }
}

/** An id has 192 random bits; nobody guesses what a plain hash of it was made from. */
export function hashSessionId(id: string): Buffer {
  return hash('sha256', id, 'buffer')
}

/** Ends every session of the user. */
export async function deleteUserSessions({ query }: Transaction, userId: string): Promise<void> {
  await query.deleteFrom('sessions').where('user_id', '=', userId).execute()
}
