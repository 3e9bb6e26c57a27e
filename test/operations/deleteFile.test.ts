/** Tests deleteFile by documented status. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { claimedWithFile, createFile, createSchedule, send } from './requests.ts'

describeOperation(
  'deleteFile',
  { worker: false },
  {
    204(subject) {
      test('deletes the file with its content, and records who did', async () => {
        const { service } = subject
        const account = await service.createAccount()
        const path = { fileId: await createFile(service, account, randomBytes(1_500_000)) }
        await subject.call(account.key, { path })
        await send(service, 'getFile', account.key, { path }).expect(404)
        expect(await service.rows('SELECT id FROM files WHERE id = ?', path.fileId)).toEqual([])
        expect(await service.rows('SELECT position FROM file_parts WHERE file_id = ?', path.fileId)).toEqual([])
        const audited = "SELECT subject_name FROM audit_log WHERE account_id = ? AND action = 'file.deleted'"
        expect(await service.rows(audited, account.id)).toEqual([{ subject_name: 'invoice.pdf' }])
      })

      test('deletes a file of a finished run, which can then not be run again', async () => {
        const { service } = subject
        const account = await service.createAccount()
        const { fileId, runId, attempt } = await claimedWithFile(service, account)
        const body = { outcome: 'succeeded', output: null }
        await send(service, 'completeAttempt', account.key, { path: { runId, attempt }, body }).expect(200)
        await subject.call(account.key, { path: { fileId } })
        const again = await send(service, 'rerunRun', account.key, { path: { runId }, body: {} }).expect(400)
        const errors = [{ pointer: '/variableData/invoice', detail: 'names no file of this account' }]
        expect(again.body.errors).toEqual(errors)
      })
    },
    409(subject) {
      const inUse = {
        ...{ kind: 'file-in-use', title: 'File in use', status: 409 },
        detail: expect.stringContaining('refers to the file'),
      }

      test('keeps the file of a run that has not finished', async () => {
        const account = await subject.service.createAccount()
        const { fileId } = await claimedWithFile(subject.service, account)
        expectProblem(subject.operation, await subject.call(account.key, { path: { fileId } }), inUse)
        await send(subject.service, 'getFile', account.key, { path: { fileId } }).expect(200)
      })

      test('keeps the file of a schedule, until the schedule has another or is deleted', async () => {
        const { service } = subject
        const account = await service.createAccount()
        const { fileId } = await claimedWithFile(service, account)
        await service.change("UPDATE runs SET status = 'succeeded', finished_at = 1 WHERE account_id = ?", account.id)
        const scheduled = await createFile(service, account, Buffer.from('Scheduled'))
        const variableData = { invoice: scheduled }
        const scheduleId = await createSchedule(service, account, { workflowId: 'read-invoice', variableData })
        expectProblem(subject.operation, await subject.call(account.key, { path: { fileId: scheduled } }), inUse)
        const body = { variableData: { invoice: fileId } }
        await send(service, 'updateSchedule', account.key, { path: { scheduleId }, body }).expect(200)
        await send(service, 'deleteFile', account.key, { path: { fileId: scheduled } }).expect(204)
        expectProblem(subject.operation, await subject.call(account.key, { path: { fileId } }), inUse)
        await send(service, 'deleteSchedule', account.key, { path: { scheduleId } }).expect(204)
        await send(service, 'deleteFile', account.key, { path: { fileId } }).expect(204)
      })
    },
  },
)
