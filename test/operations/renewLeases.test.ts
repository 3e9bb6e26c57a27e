/** Tests renewLeases by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'

describeOperation(
  'renewLeases',
  { worker: false },
  {
    200(subject) {
      test('extends a lease', async () => {
        const { request } = await subject.caller()
        const { body } = await subject.send(request)
        expect(body).toMatchObject({ extended: [{ attempt: 1 }], cancelled: [], lost: [] })
        expect(Date.parse(body.leaseExpiresAt)).toBeGreaterThan(Date.now())
      })
    },
  },
)
