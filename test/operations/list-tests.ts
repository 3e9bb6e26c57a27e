/** What every list of an account's resources does. */
import { expect, test } from 'vitest'
import type { TestAccount, TestService } from '../support/service.ts'
import type { Subject, SubjectResponse } from './describe-operation.ts'
import { send } from './requests.ts'

/** Requires that pages of two have the data of the whole list, which has at most four members. */
export async function expectPages(subject: Subject, account: TestAccount, whole: SubjectResponse): Promise<void> {
  const first = await subject.call(account.key, { query: 'limit=2' })
  const second = await subject.call(account.key, { query: `limit=2&cursor=${first.body.nextCursor}` })
  expect([...first.body.data, ...second.body.data]).toEqual(whole.body.data)
  expect(second.body.nextCursor).toBeNull()
}

/** 400: a cursor belongs to the list of one account. @param create adds a resource to the list. */
export function testOtherCursor(
  subject: Subject,
  create: (service: TestService, account: TestAccount, name: string) => Promise<unknown>,
): void {
  test('refuses a cursor of another account', async () => {
    const [account, other] = [await subject.service.createAccount(), await subject.service.createAccount()]
    for (const name of ['A', 'B']) await create(subject.service, account, name)
    const { body } = await send(subject.service, subject.operation.id, account.key, { query: 'limit=1' })
    expect(body.data).toHaveLength(1)
    const response = await subject.call(other.key, { query: `limit=1&cursor=${body.nextCursor}` })
    expect(response.body.errors).toEqual([{ parameter: 'cursor', detail: 'is not a cursor of this list' }])
  })
}
