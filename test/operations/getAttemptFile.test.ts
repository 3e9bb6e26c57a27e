/** Tests getAttemptFile by documented status. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { claimedWithFile, createFile, send } from './requests.ts'

describeOperation(
  'getAttemptFile',
  { worker: false },
  {
    200(subject) {
      test('returns a file that the claim names', async () => {
        const account = await subject.service.createAccount()
        const content = randomBytes(50_000)
        const { runId, attempt, fileId, claim } = await claimedWithFile(subject.service, account, content)
        expect(claim.variableData).toEqual({ invoice: fileId })
        expect(claim.files).toEqual([
          {
            ...{ pointer: '/invoice', id: fileId, name: 'invoice.pdf', bytes: 50_000 },
            mediaType: 'application/pdf',
          },
        ])
        const { headers } = await subject.call(account.key, { path: { runId, attempt, fileId } })
        expect(headers['content-length']).toBe('50000')
        const url = `${subject.service.executionUrl}/v1/execution/runs/${runId}/attempts/${attempt}/files/${fileId}`
        const fetched = await fetch(url, { headers: { Authorization: `Bearer ${account.key}` } })
        expect(Buffer.from(await fetched.arrayBuffer()).equals(content)).toBe(true)
      })
    },
    404(subject) {
      test('returns no other file of the account', async () => {
        const account = await subject.service.createAccount()
        const { runId, attempt } = await claimedWithFile(subject.service, account)
        const fileId = await createFile(subject.service, account, Buffer.from('Another'))
        expectProblem(subject.operation, await subject.call(account.key, { path: { runId, attempt, fileId } }), {
          ...{ kind: 'not-found', title: 'Not found', status: 404, detail: 'No such file in this account.' },
        })
      })
    },
    409(subject) {
      test('refuses an attempt that has ended', async () => {
        const account = await subject.service.createAccount()
        const { runId, attempt, fileId } = await claimedWithFile(subject.service, account)
        await send(subject.service, 'handBackAttempt', account.key, { path: { runId, attempt }, body: {} }).expect(204)
        expectProblem(subject.operation, await subject.call(account.key, { path: { runId, attempt, fileId } }), {
          ...{ kind: 'lease-lost', title: 'Lease lost', status: 409 },
          detail: 'The lease of this attempt is over. Drop the attempt, and report nothing more.',
        })
      })
    },
  },
)
