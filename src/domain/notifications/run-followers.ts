/** Users who follow a run, and get an email when it ends. */
import type { Store } from '../../storage/store.ts'
import { isFinal } from '../runs/run-state.ts'

/** Unfinished runs that a user follows at most. */
export const followedRunsMax = 100

export class RunFollowers {
  readonly #store: Store
  readonly #now: () => number

  constructor(store: Store, now: () => number = Date.now) {
    this.#store = store
    this.#now = now
  }

  async isFollowing(runId: string, userId: string): Promise<boolean> {
    const rows = this.#store.read.query.selectFrom('run_followers').select('run_id').where('run_id', '=', runId)
    return (await rows.where('user_id', '=', userId).executeTakeFirst()) !== undefined
  }

  /** Returns `finished` for a run that has ended, and `tooMany` when the user follows `followedRunsMax`. */
  async follow(
    accountId: string,
    run: { id: string; status: Parameters<typeof isFinal>[0] },
    userId: string,
  ): Promise<'followed' | 'finished' | 'tooMany'> {
    if (isFinal(run.status)) return 'finished'
    return this.#store.write(async ({ query }) => {
      const rows = query.selectFrom('run_followers').select('run_id').where('user_id', '=', userId)
      const followed = await rows.limit(followedRunsMax).execute()
      if (followed.length >= followedRunsMax && !followed.some(({ run_id }) => run_id === run.id)) return 'tooMany'
      const row = { run_id: run.id, user_id: userId, account_id: accountId, created_at: this.#now() }
      await query
        .insertInto('run_followers')
        .values(row)
        .onConflict((conflict) => conflict.doNothing())
        .execute()
      return 'followed'
    })
  }

  async unfollow(runId: string, userId: string): Promise<void> {
    await this.#store.write(({ query }) =>
      query.deleteFrom('run_followers').where('run_id', '=', runId).where('user_id', '=', userId).execute(),
    )
  }
}
