/** Tests listDeployments by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { testOtherCursor } from './list-tests.ts'
import { storeDeployment } from './requests.ts'

describeOperation(
  'listDeployments',
  { worker: false },
  {
    200(subject) {
      test('lists the own deployments newest first, on pages of any size, also those of the same millisecond', async () => {
        const [account, other] = [await subject.service.createAccount(), await subject.service.createAccount()]
        const none = { data: [], nextCursor: null, installationDeployment: expect.objectContaining({ current: true }) }
        expect((await subject.call(account.key)).body).toEqual(none)
        await storeDeployment(subject.service, other)
        const at = Date.parse('2026-11-20T09:30:00.000Z')
        const older = await storeDeployment(subject.service, account, '1.0.0', at - 1)
        const same: string[] = []
        for (const version of ['1.1.0', '1.2.0'])
          same.push(await storeDeployment(subject.service, account, version, at))
        const whole = await subject.call(account.key)
        const ids = whole.body.data.map(({ id }: { id: string }) => id)
        expect(ids).toEqual([...[...same].sort().reverse(), older])
        expect(whole.body.data.filter(({ current }: { current: boolean }) => current)).toEqual([
          {
            id: same[1],
            current: true,
            workflows: [{ id: 'stored', version: '1.2.0', title: 'Anything' }],
            sizeBytes: 5,
            createdAt: '2026-11-20T09:30:00.000Z',
            activatedAt: '2026-11-20T09:30:00.000Z',
          },
        ])
        const pages: unknown[] = []
        for (let cursor = ''; cursor !== null; ) {
          const page = await subject.call(account.key, { query: `limit=1${cursor && `&cursor=${cursor}`}` })
          pages.push(...page.body.data)
          cursor = page.body.nextCursor
        }
        expect(pages).toEqual(whole.body.data)
      })
    },
    400(subject) {
      testOtherCursor(subject, (service, account) => storeDeployment(service, account))
    },
  },
)
