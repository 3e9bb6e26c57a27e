/** Tests activateDeployment by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { queueRun, send, storeDeployment } from './requests.ts'

describeOperation(
  'activateDeployment',
  { worker: false },
  {
    200(subject) {
      test('new runs use the deployment at once, and the audit log names the key', async () => {
        const account = await subject.service.createAccount()
        const first = await storeDeployment(subject.service, account, '1.0.0')
        const second = await storeDeployment(subject.service, account, '1.1.0')
        const path = { deploymentId: first }
        const { body } = await subject.call(account.key, { path })
        expect(body).toMatchObject({ id: first, current: true, breakingChanges: [] })
        expect(body.previousDeployment).toMatchObject({ id: second, current: false })
        const runId = await queueRun(subject.service, account, { path: { workflowId: 'stored' } })
        expect((await send(subject.service, 'getRun', account.key, { path: { runId } })).body.deploymentId).toBe(first)
        // Repeated, it changes nothing.
        expect((await subject.call(account.key, { path })).body.previousDeployment.id).toBe(first)
        const recorded = 'SELECT actor_kind, subject_id FROM audit_log WHERE account_id = ? AND action = ?'
        const entries = await subject.service.rows(recorded, account.id, 'workflows.rolledBack')
        expect(entries).toEqual([{ actor_kind: 'caller', subject_id: first }])
      })

      test('the deployment for all accounts sets the own one aside', async () => {
        const account = await subject.service.createAccount()
        const own = await storeDeployment(subject.service, account, '1.0.0')
        const list = async () => (await send(subject.service, 'listDeployments', account.key)).body
        const { installationDeployment } = await list()
        expect(installationDeployment).toMatchObject({ current: false })
        const path = { deploymentId: installationDeployment.id }
        const { body } = await subject.call(account.key, { path, body: { allowBreaking: true } })
        expect(body).toMatchObject({ id: path.deploymentId, current: true })
        const change = { workflowId: 'stored', before: '1.0.0', after: null, fallsBack: false }
        expect([body.previousDeployment.id, body.changes]).toEqual([own, [change]])
        expect((await list()).installationDeployment.current).toBe(true)
      })
    },
    409(subject) {
      test('refuses what breaks callers, unless that is allowed', async () => {
        const account = await subject.service.createAccount()
        const first = await storeDeployment(subject.service, account, '2.0.0')
        const output = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }
        await storeDeployment(subject.service, account, '2.1.0', Date.now(), { output })
        const path = { deploymentId: first }
        const response = await subject.call(account.key, { path, body: {} })
        expectProblem(subject.operation, response, { kind: 'breaks-callers', title: 'Breaks callers', status: 409 })
        expect(response.body.detail).toMatch(/^The workflow stored has the version 2\.0\.0 after 2\.1\.0/)
        expect(response.body.detail).toMatch(/Nothing was changed\.$/)
        const body = { allowBreaking: true }
        const allowed = await send(subject.service, 'activateDeployment', account.key, { path, body }).expect(200)
        expect(allowed.body.breakingChanges).toEqual(response.body.detail.split('\n').slice(0, -1))
      })
    },
  },
)
