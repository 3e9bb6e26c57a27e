/** Deletes deployments that have not been current for RUN_RETENTION_DAYS and that no unfinished run needs. */
import { dayMilliseconds, type PurgeTarget } from '../../storage/purge-target.ts'
import { findPinnedRun } from '../../storage/runs/run-maintenance.ts'
import { statement, type Transaction } from '../../storage/store.ts'
import { firstIdAt } from '../runs/run.ts'

/**
 * The time at which each deployment was superseded: that of the activation after its last one in its account. None for
 * those that are current. Not those that were deployed last: after a rollback, a service that starts with the same content
 * must find them to know that it was rolled back.
 */
const findSuperseded = statement<{ id: string; superseded_at: number }, []>(
  `SELECT deployment_id AS id, superseded_at FROM (
    SELECT id, deployment_id, LEAD(at) OVER (PARTITION BY COALESCE(account_id, '') ORDER BY id) AS superseded_at
    FROM deployment_activations) AS followed
  WHERE superseded_at IS NOT NULL
    AND id IN (SELECT MAX(id) FROM deployment_activations GROUP BY deployment_id)
    AND deployment_id NOT IN (SELECT deployment_id FROM deployment_activations WHERE id IN (
      SELECT MAX(id) FROM deployment_activations WHERE kind = 'deploy' GROUP BY account_id))
  ORDER BY superseded_at`,
)

/** A process may pin runs to a deployment for about a second after its end; clocks may differ. */
const slackMilliseconds = 60 * 60 * 1000

/** Maintenance runs each second, but deployments expire after days. */
const pauseMilliseconds = 60 * 1000

export function supersededDeployments(retentionDays: number, now: () => number): PurgeTarget {
  let noneUntil = 0
  const next = async (tx: Transaction): Promise<string | undefined> => {
    if (now() < noneUntil) return undefined
    const upTo = now() - retentionDays * dayMilliseconds
    for (const { id, superseded_at } of await tx.all(findSuperseded, [])) {
      if (superseded_at > upTo) break
      const [pinned] = await tx.all(findPinnedRun, [firstIdAt(superseded_at + slackMilliseconds), id])
      if (!pinned) return id
    }
    noneUntil = now() + pauseMilliseconds
    return undefined
  }
  return {
    next,
    async remove(tx) {
      const id = await next(tx)
      if (id === undefined) return
      await tx.query.deleteFrom('deployment_activations').where('deployment_id', '=', id).execute()
      await tx.query.deleteFrom('deployments').where('id', '=', id).execute()
    },
  }
}
