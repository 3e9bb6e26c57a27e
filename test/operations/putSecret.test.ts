/** Tests putSecret by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { expectInvalid } from './guards.ts'
import { putSecret, send } from './requests.ts'

const path = { name: 'SHOP_TOKEN' }

describeOperation(
  'putSecret',
  { worker: false },
  {
    200(subject) {
      test('stores versions, encrypted, and says who stored the latest', async () => {
        const account = await subject.service.createAccount()
        const first = await subject.call(account.key, { path, body: { value: 'canary-first' } })
        const second = await subject.call(account.key, { path, body: { value: 'canary-4f1c0d0f' } })
        const updatedBy = { kind: 'caller', id: expect.any(String), name: expect.any(String) }
        const updatedAt = expect.any(String)
        const shown = { name: 'SHOP_TOKEN', updatedAt, updatedBy, workflowIds: [] }
        expect([first.body.version, second.body]).toEqual([1, { ...shown, version: 2 }])
        const { body } = await send(subject.service, 'listSecrets', account.key)
        expect(body.data).toEqual([second.body])
        const sql = 'SELECT value FROM account_values WHERE account_id = ?'
        const rows = await subject.service.rows<{ value: Uint8Array }>(sql, account.id)
        expect(rows).toHaveLength(1)
        expect(Buffer.from(rows[0]?.value ?? []).includes('canary-4f1c0d0f')).toBe(false)
        expect(JSON.stringify(subject.service.log)).not.toContain('canary-4f1c0d0f')
      })

      test('records each version in the audit log, without the value', async () => {
        const account = await subject.service.createAccount()
        await subject.call(account.key, { path, body: { value: 'canary-4f1c0d0f' } })
        const sql =
          "SELECT action, subject_name, details FROM audit_log WHERE account_id = ? AND action LIKE 'secret.%'"
        expect(await subject.service.rows(sql, account.id)).toEqual([
          { action: 'secret.stored', subject_name: 'SHOP_TOKEN', details: '{"version":1}' },
        ])
      })
    },
    400(subject) {
      test.each([
        ['a short value', { value: 'abc' }, '/value', 'must NOT have fewer than 4 characters'],
        ['a long value', { value: 'a'.repeat(16_385) }, '/value', 'must NOT have more than 16384 characters'],
        ['a number', { value: 12_345 }, '/value', 'must be string'],
        ['no value', {}, '/value', 'is required'],
        ['another member', { value: 'abcd', name: 'A' }, '/name', 'is not a documented member'],
      ])('refuses %s, without repeating it', async (_, body, pointer, detail) => {
        await expectInvalid(subject, (request) => ({ ...request, body: JSON.stringify(body) }), [
          { pointer, detail: expect.stringContaining(detail) },
        ])
      })
    },
    409(subject) {
      test('concurrent requests store 100 secrets at most, and new versions at the limit', async () => {
        const account = await subject.service.createAccount()
        const row = { account_id: account.id, version: 1, updated_at: 1, value: Buffer.from('') }
        for (let count = 0; count < 98; count++)
          await subject.service.change(
            `INSERT INTO account_values (account_id, kind, name, version, updated_at, updated_by, value)
              VALUES (?, 'secret', ?, ?, ?, '{}', ?)`,
            ...[row.account_id, `NAME_${count}`, row.version, row.updated_at, row.value],
          )
        const puts = Array.from({ length: 6 }, (_, index) =>
          send(subject.service, 'putSecret', account.key, {
            path: { name: `FURTHER_${index}` },
            body: { value: 'canary-4f1c0d0f' },
          }),
        )
        const statuses = (await Promise.all(puts)).map(({ status }) => status)
        expect(statuses.filter((status) => status === 200)).toHaveLength(2)
        expectProblem(
          subject.operation,
          await subject.call(account.key, { path, body: { value: 'canary-4f1c0d0f' } }),
          {
            kind: 'too-many-secrets',
            title: 'Too many secrets',
            status: 409,
          },
        )
        await putSecret(subject.service, account, 'NAME_1')
      })
    },
  },
)
