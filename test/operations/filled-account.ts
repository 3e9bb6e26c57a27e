/** An account for tests of what belongs to an account. */
import type { TestAccount, TestService } from '../support/service.ts'
import {
  createContext,
  createFile,
  createNotificationRule,
  createSchedule,
  createWebhookEndpoint,
  putArtifact,
  putSecret,
  putSetting,
  queueRun,
  send,
  signInBody,
  storageStateFor,
  storeDeployment,
} from './requests.ts'

/** An account with a resource of every type. */
export async function createOwner(service: TestService): Promise<TestAccount> {
  const owner = await service.createAccount()
  await putArtifact(service, await queueRun(service, owner, { headers: { 'Idempotency-Key': 'once' } }))
  await createSchedule(service, owner)
  await storeDeployment(service, owner)
  await send(service, 'bulkCancelRuns', owner.key, { body: { tag: ['none'] } }).expect(202)
  await createWebhookEndpoint(service, owner)
  await createNotificationRule(service, owner)
  await putSecret(service, owner)
  await createFile(service, owner)
  await putSetting(service, owner)
  const path = { browserContextId: await createContext(service, owner, 'My own') }
  await send(service, 'setSignIn', owner.key, { path, body: signInBody }).expect(200)
  await send(service, 'putStorageState', owner.key, { path, body: storageStateFor('canary.example') }).expect(204)
  return owner
}
