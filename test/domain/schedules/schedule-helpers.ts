/** A domain with a schedule, whose clock the test moves. */
import type { ScheduleChange } from '../../../src/domain/schedules/schedule-request.ts'
import type { NewSchedule } from '../../../src/domain/schedules/schedules.ts'
import { claimableOf, noRetry } from '../../support/claims.ts'
import { type DomainOptions, newAccount, openDomain, type Test } from '../../support/domain.ts'
import type { StoreKind } from '../../support/store-kinds.ts'

export const minute = 60_000

/** A domain whose clock the test moves, and a schedule of its account at every minute. */
export async function openWithSchedule(
  test: Test,
  kind: StoreKind,
  given: Partial<NewSchedule> = {},
  options: Partial<DomainOptions> = {},
) {
  let time = Date.parse('2026-11-23T10:00:00Z')
  const domain = await openDomain(test, { kind, now: () => time, ...options })
  const { principal } = await newAccount(domain)
  const { accountId } = principal
  const create = (members: Partial<NewSchedule> = {}) =>
    domain.schedules.create(
      accountId,
      { workflowId: 'anything', variables: {}, cron: '* * * * *', ...given, ...members },
      principal,
    )
  const created = await create()
  if (created.kind !== 'created') throw new Error(JSON.stringify(created))
  const { id } = created.schedule
  return {
    ...{ domain, principal, accountId, id, create },
    setClock: (moment: number) => {
      time = moment
    },
    now: () => time,
    /** Moves the clock and decides what is due. */
    async pass(milliseconds: number) {
      time += milliseconds
      return domain.scheduler.once()
    },
    get: async () => {
      const schedule = await domain.schedules.get(accountId, id)
      if (!schedule) throw new Error('The schedule is gone.')
      return schedule
    },
    update: (change: ScheduleChange) => domain.schedules.update(accountId, id, change, principal),
    /** The times that have a run, in minutes after ten o'clock, oldest first. */
    async minutes(statuses = ['queued', 'running', 'succeeded', 'cancelled']) {
      const { rows } = await findRuns(domain, id)
      const wanted = rows.filter(({ status }) => statuses.includes(status))
      return wanted.map((row) => new Date(Number(row.scheduled_for)).getUTCMinutes())
    },
    async finish() {
      const claims = await domain.queue.claim('worker', claimableOf(domain.workflows), 1, 1000)
      for (const { runId, attempt } of claims) {
        const lease = { runId, attempt, workerId: 'worker' }
        await domain.queue.complete(lease, { kind: 'succeeded', output: '{}' }, noRetry)
      }
      return claims.length
    },
  }
}

export async function findRuns({ store }: Pick<Awaited<ReturnType<typeof openDomain>>, 'store'>, scheduleId: string) {
  const runs = store.read.query.selectFrom('runs').selectAll().where('schedule_id', '=', scheduleId)
  return { rows: await runs.orderBy('scheduled_for').execute() }
}
