/** Tests deleteSetting by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { putSetting, send } from './requests.ts'

describeOperation(
  'deleteSetting',
  { worker: false },
  {
    204(subject) {
      test('erases the setting, and leaves others', async () => {
        const [account, other] = [await subject.service.createAccount(), await subject.service.createAccount()]
        const path = { name: await putSetting(subject.service, account) }
        await putSetting(subject.service, account, 'OTHER')
        await putSetting(subject.service, other)
        await subject.call(account.key, { path })
        const names = async (key: string) =>
          (await send(subject.service, 'listSettings', key)).body.data.map(({ name }: { name: string }) => name)
        expect([await names(account.key), await names(other.key)]).toEqual([['OTHER'], ['SHOP_URL']])
        const sql = "SELECT subject_name FROM audit_log WHERE account_id = ? AND action = 'setting.deleted'"
        expect(await subject.service.rows(sql, account.id)).toEqual([{ subject_name: 'SHOP_URL' }])
      })
    },
  },
)
