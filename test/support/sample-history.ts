/** A day of plausible runs, written to the store as if they had happened, for pictures of the dashboard. */
import { v7 as uuid } from 'uuid'
import { RunRollups } from '../../src/domain/statistics/run-rollups.ts'
import type { Store } from '../../src/storage/store.ts'
import type { RunsTable } from '../../src/storage/tables/run-tables.ts'
import { newRunRow } from './run-rows.ts'
import { seededRandom } from './seeded-random.ts'

/** Runs per hour of the day, from midnight on. */
const runsPerHour = [2, 9, 3, 1, 1, 2, 4, 6, 8, 10, 9, 7, 5, 8, 11, 9, 8, 6, 4, 3, 3, 2, 2, 2]

const hourMilliseconds = 60 * 60 * 1000

interface Workload {
  workflowId: string
  /** The API key that queues its runs. */
  keyName: string
  /** Duration of a typical run. */
  seconds: number
  error: string
}

const workloads: Workload[] = [
  {
    workflowId: 'check-links',
    keyName: 'nightly import',
    seconds: 38,
    error: '3 links of https://shop.example are broken',
  },
  { workflowId: 'shop-orders', keyName: 'reporting', seconds: 12, error: 'shop.example responded with 503' },
  {
    workflowId: 'count-words',
    keyName: 'nightly import',
    seconds: 1,
    error: "ENOENT: no such file or directory, open 'drafts/q3.md'",
  },
  {
    workflowId: 'build-manifest',
    keyName: 'nightly import',
    seconds: 6,
    error: "EACCES: permission denied, scandir 'archive'",
  },
  { workflowId: 'page-to-file', keyName: 'reporting', seconds: 9, error: 'Timeout 30000ms exceeded.' },
]

/** Writes finished runs of the 23 hours before the current one, and adds them to the statistics. */
export async function writeSampleHistory(store: Store, accountId: string, now = Date.now()): Promise<void> {
  const random = seededRandom(1)
  const currentHour = now - (now % hourMilliseconds)
  const rows = Array.from({ length: 23 }, (_, index) => currentHour - (23 - index) * hourMilliseconds).flatMap(
    (hour) => {
      const count = runsPerHour[new Date(hour).getUTCHours()] ?? 1
      return Array.from({ length: count }, () => createRun(accountId, hour + random() * hourMilliseconds, random))
    },
  )
  await store.write(({ query }) => query.insertInto('runs').values(rows).execute())
  await new RunRollups(store, () => now).once()
}

function createRun(accountId: string, time: number, random: () => number): RunsTable {
  const createdAt = Math.floor(time)
  const workload = workloads[Math.floor(random() ** 1.5 * workloads.length)] as Workload
  const startedAt = createdAt + Math.floor(random() * 400)
  const finishedAt = startedAt + Math.floor(workload.seconds * 1000 * (0.5 + random()))
  const chance = random()
  const outcome =
    chance < 0.91
      ? { status: 'succeeded', reason: null, error: null }
      : chance < 0.98
        ? {
            status: 'failed',
            reason: 'workflowFailed',
            error: JSON.stringify({ name: 'Error', message: workload.error }),
          }
        : { status: 'cancelled', reason: 'cancelRequested', error: null }
  return {
    ...newRunRow(accountId, {
      id: uuid({ msecs: createdAt }),
      workflow_id: workload.workflowId,
      created_at: createdAt,
    }),
    ...outcome,
    secrets: null,
    attempts: 1,
    attempt_started_at: startedAt,
    attempt_ends: null,
    cancelled_by_key_id: null,
    cancelled_by_user_id: null,
    failures: outcome.error === null ? 0 : 1,
    losses: 0,
    continues: 0,
    continuations: 0,
    executed_ms: 0,
    total_executed_ms: finishedAt - startedAt,
    has_waits: 0,
    signs_in: null,
    output: outcome.status === 'succeeded' ? '{}' : null,
    progress: null,
    cancel_requested: outcome.status === 'cancelled' ? 1 : 0,
    started_at: startedAt,
    finished_at: finishedAt,
    worker_id: null,
    lease_expires_at: null,
    deployment_problem: null,
  }
}

/** Attributes the runs to API keys, which exist only after the first sign-in. */
export async function attributeSampleHistory(store: Store, accountId: string): Promise<void> {
  await store.write(async ({ query }) => {
    const keys = await query.selectFrom('api_keys').select(['id', 'name']).where('account_id', '=', accountId).execute()
    for (const { workflowId, keyName } of workloads) {
      const key = keys.find(({ name }) => name === keyName)
      await query
        .updateTable('runs')
        .set({ api_key_id: key?.id ?? null })
        .where('workflow_id', '=', workflowId)
        .where('api_key_id', 'is', null)
        .where('user_id', 'is', null)
        .execute()
    }
  })
}
