/** No operation shows or changes a resource of another account, or of another environment of the same account. */
import type { IncomingHttpHeaders } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestAccount, type TestService } from '../support/service.ts'
import { expectDocumented, expectProblem, operations } from './document.ts'
import { createOwner } from './filled-account.ts'
import { addressOf, credential, type SentRequest, sendRequest, validRequest } from './requests.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ worker: false })
})
afterAll(() => service.stop())

/** All rows of the account, except when its keys were last used. */
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
    files: await all('SELECT * FROM files WHERE account_id = ? ORDER BY id'),
    browserContexts: await all('SELECT * FROM browser_contexts WHERE account_id = ? ORDER BY id'),
    signIns: await all('SELECT * FROM context_sign_ins WHERE account_id = ?'),
    bulkActions: await all('SELECT id, kind, filter FROM bulk_actions WHERE account_id = ? ORDER BY id'),
    deployments: await all('SELECT id, created_at, workflows FROM deployments WHERE account_id = ? ORDER BY id'),
    activations: await all('SELECT * FROM deployment_activations WHERE account_id = ? ORDER BY id'),
    schedules: await all('SELECT * FROM schedules WHERE account_id = ? ORDER BY id'),
    // Maintenance adds messages of rules.
    webhookDeliveries: await all(
      "SELECT id, endpoint_id, event, deadline FROM webhook_deliveries WHERE account_id = ? AND event <> 'notification' ORDER BY id",
    ),
    workers: await all('SELECT * FROM workers WHERE account_id = ? ORDER BY id'),
    steps: await all(
      'SELECT s.* FROM run_steps s JOIN runs r ON r.id = s.run_id WHERE r.account_id = ? ORDER BY s.run_id, s.name',
    ),
    accountValues: await all('SELECT * FROM account_values WHERE account_id = ? ORDER BY kind, name'),
    notificationRules: await all('SELECT * FROM notification_rules WHERE account_id = ? ORDER BY id'),
    webhookEndpoints: await all('SELECT * FROM webhook_endpoints WHERE account_id = ? ORDER BY id'),
    versions: await all(
      'SELECT v.* FROM browser_context_versions v JOIN browser_contexts c ON c.id = v.browser_context_id WHERE c.account_id = ? ORDER BY v.id',
    ),
    keys: await all(
      'SELECT id, name, hash, scopes, expires_at, deleted_at FROM api_keys WHERE account_id = ? ORDER BY id',
    ),
  }
}

/** Whether a path parameter names a resource of an account; workflows belong to the installation. */
const owned = (name: string) => name !== 'workflowId'
/** In these, the id of the valid request is a new one in each account, or a name. */
const isShared = (id: string) => id === 'registerWorker' || id === 'putSecret' || id === 'putSetting'

describe.each(operations)('$id', (operation) => {
  const isOnResource =
    (operation.parameters.some((parameter) => parameter.in === 'path' && owned(parameter.name)) &&
      !isShared(operation.id)) ||
    operation.id === 'createRunToken'

  /** With the key of another account, and with one of another environment of the same account. */
  async function callAsOthers() {
    const owner = await createOwner(service)
    const others = [await service.createAccount(), await service.createEnvironment(owner)]
    const request = await validRequest(service, operation.id, owner)
    const before = await rowsOf(owner)
    const responses: { status: number; headers: IncomingHttpHeaders; text: string }[] = []
    for (const { key } of others) {
      const headers = { ...request.headers, ...credential(operation, key) }
      const { status, headers: sent, text } = await sendRequest(addressOf(service, operation), { ...request, headers })
      responses.push({ status, headers: sent, text: text ?? '' })
    }
    return { owner, request, before, responses }
  }

  /** So it is refused only because of its account. */
  async function expectSuccess(request: SentRequest) {
    expect((await sendRequest(addressOf(service, operation), request)).status).toBeLessThan(300)
  }

  if (isOnResource) {
    test('finds and changes a resource for its own account only', async () => {
      const { owner, request, before, responses } = await callAsOthers()
      const detail = expect.stringMatching(
        /^No such (run|artifact|file|browser context|deployment|schedule|bulk action|webhook endpoint|webhook delivery|notification rule|worker|secret|setting) in this account\.$/,
      )
      for (const response of responses)
        expectProblem(operation, response, { kind: 'not-found', title: 'Not found', status: 404, detail })
      expect(await rowsOf(owner)).toEqual(before)
      await expectSuccess(request)
    })
  } else {
    test('shows and changes resources of its own account only', async () => {
      const { owner, request, before, responses } = await callAsOthers()
      const ids = [before.runs, before.browserContexts, before.keys].flatMap((rows) =>
        rows?.map(({ id }) => String(id)),
      )
      for (const response of responses) {
        expect(response.status).toBeLessThan(300)
        expectDocumented(operation, response)
        expect([owner.id, ...ids].filter((id) => response.text.includes(String(id)))).toEqual([])
      }
      expect(await rowsOf(owner)).toEqual(before)
      await expectSuccess(request)
    })
  }
})

describe.each(
  operations.filter(({ parameters }) => parameters.filter((parameter) => parameter.in === 'path').length > 1),
)('$id', (operation) => {
  test('finds and changes nothing by the ids of two resources that do not belong together', async () => {
    const owner = await createOwner(service)
    const other = await service.createAccount()
    const valid = (account: TestAccount) => validRequest(service, operation.id, account)
    const requests = [await valid(owner), await valid(owner), await valid(other)]
    const before = await rowsOf(owner)
    const paths = requests.map(({ path }) => path)
    for (const path of paths.flatMap((each) => paths.flatMap((another) => replaceEach(each, another)))) {
      for (const [index, { key }] of [owner, other].entries()) {
        const isOwn = paths.some((each, at) => each === path && at < 2 === (index === 0))
        if (isOwn) continue
        const headers = { ...requests[0]?.headers, ...credential(operation, key) }
        const response = await sendRequest(addressOf(service, operation), {
          ...(requests[0] as SentRequest),
          path,
          headers,
        })
        // A view that has ended has no row any more: the response is the same for every id but that of an open view of the run.
        if (operation.id === 'updateLiveView' && response.status === 200) expect(response.body.state).toBe('ended')
        else expect([path, response.status]).toEqual([path, 404])
      }
    }
    expect(await rowsOf(owner)).toEqual(before)
  })
})

/** The paths in which one segment is replaced by that of the other path. */
function replaceEach(path: string, other: string): string[] {
  const segments = path.split('/')
  return other.split('/').map((segment, index) => segments.with(index, segment).join('/'))
}

test('Idempotency-Keys and names are separate for each account', async () => {
  const accounts = [await createOwner(service), await createOwner(service)]
  const rows = await Promise.all(accounts.map(rowsOf))
  const counts = rows.map((each) => Object.values(each).map(({ length }) => length))
  // A queued run has no stored events.
  expect(counts).toEqual([
    [1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 2, 1, 1, 1, 1],
    [1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 2, 1, 1, 1, 1],
  ])
})
