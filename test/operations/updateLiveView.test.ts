/** Tests updateLiveView by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { claimedAttempt, send } from './requests.ts'

describeOperation(
  'updateLiveView',
  { worker: false },
  {
    200(subject) {
      test('says that a view has ended, or that its dashboard cannot be reached', async () => {
        const { service } = subject
        const account = await service.createAccount()
        const { runId, attempt } = await claimedAttempt(service, account)
        const viewId = crypto.randomUUID()
        const update = async () => {
          const body = { tabs: [], waitForCommands: true }
          return (await subject.call(account.key, { path: { runId, attempt, viewId }, body })).body
        }
        expect(await update()).toEqual({ state: 'ended', commands: [], present: [] })
        const columns = 'id, run_id, address, expires_at'
        const row = [viewId, runId, 'http://127.0.0.1:1', Date.now() + 60_000]
        await service.change(`INSERT INTO live_views (${columns}) VALUES (?, ?, ?, ?)`, ...row)
        expect(await update()).toEqual({ state: 'unreachable', commands: [], present: [] })
        // A dashboard whose last viewer has left.
        await service.change('UPDATE live_views SET address = ? WHERE id = ?', service.dashboardUrl, viewId)
        expect((await update()).state).toBe('ended')
      })
    },
    409(subject) {
      test('refuses an attempt that has ended', async () => {
        const account = await subject.service.createAccount()
        const { runId, attempt } = await claimedAttempt(subject.service, account)
        const path = { runId, attempt, viewId: crypto.randomUUID() }
        await send(subject.service, 'handBackAttempt', account.key, { path: { runId, attempt }, body: {} }).expect(204)
        expectProblem(subject.operation, await subject.call(account.key, { path, body: {} }), {
          ...{ kind: 'lease-lost', title: 'Lease lost', status: 409 },
          detail: 'The lease of this attempt is over. Drop the attempt, and report nothing more.',
        })
      })
    },
  },
)
