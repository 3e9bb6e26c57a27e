/** Tests deleteRun by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { putArtifact, queueRun, send } from './requests.ts'

describeOperation(
  'deleteRun',
  { worker: false },
  {
    204(subject) {
      test('erases a finished run with its events and artifacts', async () => {
        const account = await subject.service.createAccount()
        const [runId, kept] = [await queueRun(subject.service, account), await queueRun(subject.service, account)]
        await putArtifact(subject.service, runId)
        await send(subject.service, 'cancelRun', account.key, { path: { runId } }).expect(200)
        await subject.call(account.key, { path: { runId } })
        const artifact = { runId, artifactName: 'hello.txt' }
        await send(subject.service, 'getRun', account.key, { path: { runId } }).expect(404)
        await send(subject.service, 'streamRunEvents', account.key, { path: { runId } }).expect(404)
        await send(subject.service, 'getRunArtifact', account.key, { path: artifact }).expect(404)
        const { body } = await send(subject.service, 'listRuns', account.key)
        expect(body.data.map(({ id }: { id: string }) => id)).toEqual([kept])
        for (const table of ['run_events', 'artifacts', 'run_steps']) {
          expect(await subject.service.rows(`SELECT 1 AS one FROM ${table} WHERE run_id = ?`, runId)).toEqual([])
        }
        expect(await subject.service.rows('SELECT 1 AS one FROM runs WHERE id = ?', runId)).toEqual([])
      })

      test('is recorded in the audit log with the API key', async () => {
        const { account, request } = await subject.caller()
        await subject.send(request)
        const [, runId = ''] = /runs\/([^/]+)/.exec(request.path) ?? []
        const entries = await subject.service.rows('SELECT * FROM audit_log WHERE subject_id = ? ORDER BY id', runId)
        expect(entries).toMatchObject([
          { action: 'run.cancelled' },
          { account_id: account.id, action: 'run.deleted', actor_kind: 'caller', subject_name: 'greet' },
        ])
      })
    },
    404(subject) {
      test('a deleted run is not found', async () => {
        const { account } = await subject.caller()
        const runId = await queueRun(subject.service, account)
        await send(subject.service, 'cancelRun', account.key, { path: { runId } }).expect(200)
        await send(subject.service, 'deleteRun', account.key, { path: { runId } }).expect(204)
        await subject.call(account.key, { path: { runId } })
      })
    },
    409(subject) {
      test.each(['queued', 'running'])('refuses a run that is %s, and says to cancel it first', async (status) => {
        const account = await subject.service.createAccount()
        const runId = await queueRun(subject.service, account)
        const lease = 'UPDATE runs SET status = ?, lease_expires_at = ? WHERE id = ?'
        await subject.service.change(lease, status, Date.now() + 3_600_000, runId)
        const response = await subject.call(account.key, { path: { runId } })
        expectProblem(subject.operation, response, {
          kind: 'run-not-finished',
          title: 'Run not finished',
          status: 409,
          detail: `The run is ${status}. Cancel it and wait for its end, then delete it. Nothing was deleted.`,
        })
        await send(subject.service, 'getRun', account.key, { path: { runId } }).expect(200)
        await subject.service.change(lease, 'queued', null, runId)
      })
    },
  },
)
