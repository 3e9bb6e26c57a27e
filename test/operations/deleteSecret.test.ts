/** Tests deleteSecret by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { putSecret, send } from './requests.ts'

describeOperation(
  'deleteSecret',
  { worker: false },
  {
    204(subject) {
      test('erases the secret, and leaves others', async () => {
        const [account, other] = [await subject.service.createAccount(), await subject.service.createAccount()]
        const path = { name: await putSecret(subject.service, account) }
        await putSecret(subject.service, account, 'OTHER')
        await putSecret(subject.service, other)
        await subject.call(account.key, { path })
        const names = async (key: string) =>
          (await send(subject.service, 'listSecrets', key)).body.data.map(({ name }: { name: string }) => name)
        expect([await names(account.key), await names(other.key)]).toEqual([['OTHER'], ['SHOP_TOKEN']])
        const sql = "SELECT subject_name FROM audit_log WHERE account_id = ? AND action = 'secret.deleted'"
        expect(await subject.service.rows(sql, account.id)).toEqual([{ subject_name: 'SHOP_TOKEN' }])
      })
    },
  },
)
