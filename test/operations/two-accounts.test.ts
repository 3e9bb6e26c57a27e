/** One account never sees or changes what is another's, whichever operation it calls: each one of the documents is tried. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestAccount, type TestService } from '../support/service.ts'
import { expectDocumented, expectProblem, operations } from './document.ts'
import {
  addressOf,
  createContext,
  credential,
  putArtifact,
  queueRun,
  send,
  sendRequest,
  stateOf,
  validRequest,
} from './requests.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ worker: false })
})
afterAll(() => service.stop())

/** Everything that the store has of the account, but for when its keys were last used. */
async function rowsOf({ id }: TestAccount): Promise<Record<string, Record<string, unknown>[]>> {
  const all = (sql: string) => service.rows<Record<string, unknown>>(sql, id)
  return {
    runs: await all('SELECT * FROM runs WHERE account_id = ? ORDER BY id'),
    events: await all(
      'SELECT e.* FROM run_events e JOIN runs r ON r.id = e.run_id WHERE r.account_id = ? ORDER BY e.id',
    ),
    idempotencyKeys: await all('SELECT * FROM idempotency_keys WHERE account_id = ? ORDER BY key'),
    artifacts: await all(
      'SELECT a.* FROM artifacts a JOIN runs r ON r.id = a.run_id WHERE r.account_id = ? ORDER BY r.id',
    ),
    browserContexts: await all('SELECT * FROM browser_contexts WHERE account_id = ? ORDER BY id'),
    versions: await all(
      'SELECT v.* FROM browser_context_versions v JOIN browser_contexts c ON c.id = v.browser_context_id WHERE c.account_id = ? ORDER BY v.id',
    ),
    keys: await all(
      'SELECT id, name, hash, scopes, expires_at, deleted_at FROM api_keys WHERE account_id = ? ORDER BY id',
    ),
  }
}

/** An account that has something of everything. */
async function ownerOfSomething(): Promise<TestAccount> {
  const owner = await service.createAccount()
  await putArtifact(service, await queueRun(service, owner, { headers: { 'Idempotency-Key': 'once' } }))
  const path = { browserContextId: await createContext(service, owner, 'My own') }
  await send(service, 'putStorageState', owner.key, { path, body: stateOf('canary.example') }).expect(204)
  return owner
}

/** What stands in the path and belongs to an account; workflows belong to the installation. */
const owned = (name: string) => name !== 'workflowId'

describe.each(operations)('$id', (operation) => {
  const isOnResource = operation.parameters.some((parameter) => parameter.in === 'path' && owned(parameter.name))

  async function calledByAnother() {
    const owner = await ownerOfSomething()
    const other = await service.createAccount()
    const request = await validRequest(service, operation.id, owner)
    const before = await rowsOf(owner)
    const headers = { ...request.headers, ...credential(operation, other.key) }
    const { status, headers: sent, text } = await sendRequest(addressOf(service, operation), { ...request, headers })
    return { owner, before, answer: { status, headers: sent, text: text ?? '' } }
  }

  if (isOnResource) {
    test('does not know the resource of another account, and leaves it as it is', async () => {
      const { owner, before, answer } = await calledByAnother()
      expectProblem(operation, answer, { kind: 'not-found', title: 'Not found', status: 404 })
      expect(await rowsOf(owner)).toEqual(before)
    })
  } else {
    test('shows and changes nothing of another account', async () => {
      const { owner, before, answer } = await calledByAnother()
      expect(answer.status).toBeLessThan(300)
      expectDocumented(operation, answer)
      const ids = [before.runs, before.browserContexts, before.keys].flatMap((rows) =>
        rows?.map(({ id }) => String(id)),
      )
      expect([owner.id, ...ids].filter((id) => answer.text.includes(String(id)))).toEqual([])
      expect(await rowsOf(owner)).toEqual(before)
    })
  }

  test('does for its own account what it does not do for another', async () => {
    const owner = await ownerOfSomething()
    const request = await validRequest(service, operation.id, owner)
    const answer = await sendRequest(addressOf(service, operation), request)
    expect(answer.status).toBeLessThan(300)
  })
})

test('the same Idempotency-Key and the same names belong to each account alone', async () => {
  const accounts = [await ownerOfSomething(), await ownerOfSomething()]
  const rows = await Promise.all(accounts.map(rowsOf))
  const counts = rows.map((each) => Object.values(each).map(({ length }) => length))
  expect(counts).toEqual([
    [1, 1, 1, 1, 1, 1, 1],
    [1, 1, 1, 1, 1, 1, 1],
  ])
})
