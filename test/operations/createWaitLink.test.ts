/** Tests createWaitLink by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { approve } from './example-runs.ts'
import { answeredRun, queueRun, send } from './requests.ts'

describeOperation(
  'createWaitLink',
  { worker: false },
  {
    201(subject) {
      test('returns an address of the dashboard, which is stored as a hash only', async () => {
        const account = await subject.service.createAccount()
        const path = { runId: await queueRun(subject.service, account, approve), name: 'approval' }
        const { body } = await subject.call(account.key, { path, body: { expiresInSeconds: 60 } })
        const token = new URL(body.url).pathname.split('/').at(-1) ?? ''
        expect(token).toHaveLength(43)
        expect(Date.parse(body.expiresAt)).toBeGreaterThan(Date.now())
        const rows = await subject.service.rows('SELECT * FROM wait_links')
        expect(JSON.stringify(rows)).not.toContain(token)
      })
    },
    404(subject) {
      test.each(['constructor', 'toString', '__proto__'])('knows no wait %s, as completeWait does', async (name) => {
        const account = await subject.service.createAccount()
        const path = { runId: await queueRun(subject.service, account, approve), name }
        expect((await subject.call(account.key, { path, body: {} })).status).toBe(404)
        await send(subject.service, 'completeWait', account.key, { path, body: { value: true } }).expect(404)
      })
    },
    409(subject) {
      test('refuses a wait that has its answer', async () => {
        const account = await subject.service.createAccount()
        const path = { runId: await answeredRun(subject.service, account), name: 'approval' }
        expectProblem(subject.operation, await subject.call(account.key, { path, body: {} }), {
          kind: 'wait-ended',
          title: 'Wait ended',
          status: 409,
          detail: 'The wait "approval" has an answer. Nothing was stored.',
        })
      })
    },
  },
)
