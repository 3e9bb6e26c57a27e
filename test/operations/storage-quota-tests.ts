/** The block of 507, the same for every operation that stores: an account that has reached its storage quota. */
import { expect, test } from 'vitest'
import { storageQuotaMegabytes, type TestAccount } from '../support/service.ts'
import type { Subject } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { addressOf, createContext, send, sendRequest } from './requests.ts'

/** Stores as much as the account may, in a browser context. */
export async function fillStorage({ service }: Subject, account: TestAccount): Promise<void> {
  const path = { browserContextId: await createContext(service, account) }
  // Its row counts, too.
  const body = { cookies: [], origins: [], filler: 'x'.repeat(storageQuotaMegabytes * 1024 * 1024 - 100) }
  await send(service, 'putStorageState', account.key, { path, body }).expect(204)
}

export function testStorageQuota(subject: Subject): void {
  test('refuses an account that has reached its storage quota, and no other', async () => {
    const { account, request } = await subject.caller()
    const other = await subject.caller()
    await fillStorage(subject, account)
    expectProblem(subject.operation, await subject.send(request), {
      kind: 'storage-quota-exceeded',
      title: 'Storage quota exceeded',
      status: 507,
      detail: `This account has reached its storage quota of ${storageQuotaMegabytes} MB. Delete runs, files or browser contexts, or wait until their retention ends. Nothing was stored.`,
    })
    const address = addressOf(subject.service, subject.operation)
    const { status } = await sendRequest(address, other.request)
    expect(status, 'of another account').toBeLessThan(300)
  })
}
