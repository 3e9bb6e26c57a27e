/** Tests putSetting by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { expectInvalid } from './guards.ts'
import { putSetting, send } from './requests.ts'

const path = { name: 'SHOP_URL' }

describeOperation(
  'putSetting',
  { worker: false },
  {
    200(subject) {
      test('stores versions, encrypted, and says who stored the latest', async () => {
        const account = await subject.service.createAccount()
        const first = await subject.call(account.key, { path, body: { value: 'canary-first' } })
        const second = await subject.call(account.key, { path, body: { value: 'https://shop.example.com' } })
        const updatedBy = { kind: 'caller', id: expect.any(String), name: expect.any(String) }
        const updatedAt = expect.any(String)
        const shown = { name: 'SHOP_URL', updatedAt, updatedBy, workflowIds: [] }
        expect([first.body.version, second.body]).toEqual([
          1,
          { ...shown, version: 2, value: 'https://shop.example.com' },
        ])
        const { body } = await send(subject.service, 'listSettings', account.key)
        expect(body.data).toEqual([second.body])
        const sql = 'SELECT value FROM account_values WHERE account_id = ?'
        const rows = await subject.service.rows<{ value: Uint8Array }>(sql, account.id)
        expect(rows).toHaveLength(1)
        expect(Buffer.from(rows[0]?.value ?? []).includes('https://shop.example.com')).toBe(false)
        expect(JSON.stringify(subject.service.log)).not.toContain('https://shop.example.com')
      })

      test('records each version in the audit log, without the value', async () => {
        const account = await subject.service.createAccount()
        await subject.call(account.key, { path, body: { value: 'https://shop.example.com' } })
        const sql =
          "SELECT action, subject_name, details FROM audit_log WHERE account_id = ? AND action LIKE 'setting.%'"
        expect(await subject.service.rows(sql, account.id)).toEqual([
          { action: 'setting.stored', subject_name: 'SHOP_URL', details: '{"version":1}' },
        ])
      })
    },
    400(subject) {
      test.each([
        ['a long value', { value: 'a'.repeat(16_384) }, '/value', 'has more than 16384 characters as JSON'],
        ['no value', {}, '/value', 'is required'],
        ['another member', { value: 1, name: 'A' }, '/name', 'is not a documented member'],
      ])('refuses %s', async (_, body, pointer, detail) => {
        await expectInvalid(subject, (request) => ({ ...request, body: JSON.stringify(body) }), [
          { pointer, detail: expect.stringContaining(detail) },
        ])
      })
    },
    409(subject) {
      test('concurrent requests store 100 settings at most, and new versions at the limit', async () => {
        const account = await subject.service.createAccount()
        const row = { account_id: account.id, version: 1, updated_at: 1, value: Buffer.from('') }
        for (let count = 0; count < 98; count++)
          await subject.service.change(
            `INSERT INTO account_values (account_id, kind, name, version, updated_at, updated_by, value)
              VALUES (?, 'setting', ?, ?, ?, '{}', ?)`,
            ...[row.account_id, `NAME_${count}`, row.version, row.updated_at, row.value],
          )
        const puts = Array.from({ length: 6 }, (_, index) =>
          send(subject.service, 'putSetting', account.key, {
            path: { name: `FURTHER_${index}` },
            body: { value: 'https://shop.example.com' },
          }),
        )
        const statuses = (await Promise.all(puts)).map(({ status }) => status)
        expect(statuses.filter((status) => status === 200)).toHaveLength(2)
        expectProblem(
          subject.operation,
          await subject.call(account.key, { path, body: { value: 'https://shop.example.com' } }),
          {
            kind: 'too-many-settings',
            title: 'Too many settings',
            status: 409,
          },
        )
        await putSetting(subject.service, account, 'NAME_1')
      })
    },
  },
)
