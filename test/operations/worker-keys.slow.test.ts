/**
 * A worker's key reads and changes nothing outside of its claims: every operation of both documents, with the ids of everything
 * in its account and in another one, and with the bodies of the documents' examples.
 */
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { restrictableScopes } from '../../src/domain/api-keys/workflow-restriction.ts'
import { findCanaries } from '../support/canaries.ts'
import { startTestService, type TestAccount, type TestService } from '../support/service.ts'
import { type CanaryAccount, createCanaryAccount, queueRemote, remoteWorkflow } from './canary-account.ts'
import { type DocumentedOperation, expectDocumented, operations } from './document.ts'
import { newWorker } from './example-runs.ts'
import { addressOf, queueRun, registerWorker, requestOf, type SentRequest, send, validRequest } from './requests.ts'

let service: TestService
beforeAll(async () => {
  // No lease ends while the requests are sent.
  service = await startTestService({ worker: false, settings: { LEASE_SECONDS: '300' } })
})
afterAll(() => service?.stop())

/** The names and texts that requests try in place of ids. */
const names = {
  version: ['1'],
  attempt: ['1', '2'],
  name: ['approval'],
  stepName: ['charge'],
  artifactName: ['hello.txt'],
  viewId: [crypto.randomUUID()],
}
const workflowIds = ['mine', 'theirs', 'greet', 'reverse-text']
const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/

/** Requests of an operation with each combination of ids, and each id in each example of the body. */
function requestsOf(operation: DocumentedOperation, key: string, ids: Record<string, string[]>): SentRequest[] {
  const pools: Record<string, string[]> = { ...names, workflowId: workflowIds, ...ids }
  const paths = operation.parameters
    .filter((parameter) => parameter.in === 'path')
    .reduce<Record<string, string>[]>(
      (all, { name }) => all.flatMap((path) => (pools[name] ?? []).map((value) => ({ ...path, [name]: value }))),
      [{}],
    )
  const filtered = operation.parameters.some(({ in: place, name }) => place === 'query' && name === 'workflowId')
  const queries = filtered ? ['', ...workflowIds.map((id) => `workflowId=${id}`)] : ['']
  return paths.flatMap((path) =>
    queries.flatMap((query) =>
      bodiesOf(operation, ids.runId ?? []).map((body) => requestOf(operation, key, { path, query, body })),
    ),
  )
}

/** What the examples do not try: to register a workflow of others, to claim all that is ready, and to call other workflows. */
const ownBodies = {
  registerWorker: () => ({ ...newWorker, workflows: [remoteWorkflow('theirs')] }),
  claimRuns: (runIds: readonly string[]) => ({
    countMax: 100,
    executing: runIds.flatMap((runId) => [1, 2].map((attempt) => ({ runId, attempt }))),
    waitSeconds: 0,
  }),
  suspendAttempt: () => ({
    waits: [{ kind: 'run', name: 'called', workflowId: 'greet', variableData: { name: 'A' } }],
    names: ['called'],
  }),
}

function bodiesOf({ id, body: examples }: DocumentedOperation, runIds: readonly string[]): unknown[] {
  if (!examples) return [undefined]
  const own = id in ownBodies ? [ownBodies[id as keyof typeof ownBodies](runIds)] : []
  const texts = Object.values(examples).map((example) => JSON.stringify(example))
  const bodies = texts.flatMap((text) =>
    uuid.test(text) || text.includes('"workflowId"')
      ? runIds.map((runId, index) => {
          const workflowId = `"workflowId":"${workflowIds[index % workflowIds.length]}"`
          return text.replaceAll(new RegExp(uuid, 'g'), runId).replaceAll(/"workflowId":"[^"]*"/g, workflowId)
        })
      : [text],
  )
  const immediate = (text: string) => text.replaceAll(/"waitSeconds":\d+/g, '"waitSeconds":0')
  return [...[...new Set(bodies)].map((text) => JSON.parse(immediate(text))), ...own]
}

/** The whole response, or what a stream of events has sent after a moment. */
async function read(operation: DocumentedOperation, { method, path, headers, body }: SentRequest) {
  const ending = new AbortController()
  const url = addressOf(service, operation) + path
  const content = body === undefined ? {} : { body: String(body) }
  const init = { method, headers: headers as Record<string, string>, signal: ending.signal, ...content }
  const response = await fetch(url, init)
  const isStream = response.headers.get('content-type') === 'text/event-stream'
  const chunks: Uint8Array[] = []
  const timer = isStream ? setTimeout(() => ending.abort(), streamMilliseconds) : undefined
  let isWhole = true
  try {
    for await (const chunk of response.body ?? []) chunks.push(chunk as Uint8Array)
  } catch (error) {
    if (!ending.signal.aborted) throw error
    isWhole = false
  }
  clearTimeout(timer)
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    bytes: Buffer.concat(chunks),
    isWhole,
  }
}

/** Long enough for the stored events of a run. */
const streamMilliseconds = 300

/** Sends the requests; returns how many, and the names of the canaries that a response contains. */
async function sendAll(
  operation: DocumentedOperation,
  requests: readonly SentRequest[],
  canaries: Record<string, string>,
) {
  const found = new Set<string>()
  for (const request of requests) {
    const { status, headers, bytes, isWhole } = await read(operation, request)
    if (isWhole) expectDocumented(operation, { status, headers, text: bytes.toString() })
    const isPacked = bytes[0] === 0x1f && bytes[1] === 0x8b
    const places = [bytes, isPacked ? gunzipSync(bytes) : '', JSON.stringify(headers)].map(
      (place): [string, Buffer | string] => ['', place],
    )
    for (const [name, canary] of Object.entries(canaries))
      if (findCanaries(places, [canary]).length > 0) found.add(name)
  }
  return found
}

/** Later: a registration replaces the worker's workflows, and a deletion removes what other operations need. */
const rank = ({ id, method }: DocumentedOperation) => (method === 'DELETE' ? 2 : id === 'registerWorker' ? 1 : 0)
const inOrder = operations.toSorted((a, b) => rank(a) - rank(b))

/** The rows of the account that the key must not change: all except runs of the workflow "mine" and its own workers. */
async function rowsOf({ id }: TestAccount, apiKeyId: string): Promise<unknown> {
  const all = (sql: string, ...more: string[]) => service.rows(sql, id, ...more)
  const others = "FROM runs r WHERE r.account_id = ? AND r.workflow_id <> 'mine' AND r.parent_run_id IS NULL"
  const ofRuns = (table: string, order: string) =>
    all(`SELECT t.* FROM ${table} t WHERE run_id IN (SELECT r.id ${others}) ORDER BY ${order}`)
  return {
    runs: await all(`SELECT r.* ${others} ORDER BY id`),
    events: await ofRuns('run_events', 'id'),
    steps: await ofRuns('run_steps', 'run_id, name'),
    waits: await ofRuns('run_waits', 'id'),
    artifacts: await ofRuns('artifacts', 'run_id, name'),
    files: await all('SELECT * FROM files WHERE account_id = ? ORDER BY id'),
    contexts: await all('SELECT * FROM browser_contexts WHERE account_id = ? ORDER BY id'),
    schedules: await all('SELECT * FROM schedules WHERE account_id = ? ORDER BY id'),
    endpoints: await all('SELECT * FROM webhook_endpoints WHERE account_id = ? ORDER BY id'),
    rules: await all('SELECT * FROM notification_rules WHERE account_id = ? ORDER BY id'),
    activations: await all('SELECT * FROM deployment_activations WHERE account_id = ? ORDER BY id'),
    workers: await all('SELECT * FROM workers WHERE account_id = ? AND api_key_id <> ? ORDER BY id', apiKeyId),
    keys: await all('SELECT id, name, scopes, workflow_ids, deleted_at FROM api_keys WHERE account_id = ? ORDER BY id'),
  }
}

/** A worker with the workflow "mine" that executes a run, and runs that it has not claimed. */
async function createOwn({ account }: CanaryAccount, key: string, deployed: boolean) {
  const own = { claimed: crypto.randomUUID(), queued: crypto.randomUUID() }
  const worker = { ...account, key }
  const workerId = await registerWorker(service, worker, { deployed, workflows: [remoteWorkflow('mine')] })
  const runId = await queueRemote(service, account, 'mine', own.claimed)
  await send(service, 'claimRuns', key, { path: { workerId }, body: { countMax: 1 } }).expect(200)
  const queued = await queueRemote(service, account, 'mine', own.queued)
  return { own, ids: { workerId: [workerId], runId: [runId, queued] } }
}

/** Ready runs of other workflows, which a key of all workflows may claim. */
async function queueOthers({ account, canaries }: CanaryAccount) {
  const ready = { 'ready remote run': crypto.randomUUID(), 'ready deployed run': crypto.randomUUID() }
  await queueRemote(service, account, 'theirs', ready['ready remote run'])
  await queueRun(service, account, { query: '', body: { variableData: { name: ready['ready deployed run'] } } })
  Object.assign(canaries, ready)
}

const keys = [
  { name: 'with the scope runs:execute', scopes: ['runs:execute'] },
  { name: 'with the scope runs:execute, restricted to a workflow', scopes: ['runs:execute'], workflowIds: ['mine'] },
  {
    name: 'with all scopes that it may have, restricted to a workflow',
    scopes: [...restrictableScopes],
    workflowIds: ['mine'],
  },
]

describe.each(keys)('a key $name', ({ scopes, workflowIds: restriction }) => {
  test('reads and changes nothing outside of its claims', async () => {
    const [mine, other] = [await createCanaryAccount(service), await createCanaryAccount(service)]
    const key = await mine.account.createKey({ scopes, ...(restriction && { workflowIds: restriction }) })
    await service.change("UPDATE api_keys SET name = 'worker' WHERE id = ?", key.id)
    const { own, ids } = await createOwn(mine, key.value, restriction !== undefined)
    if (restriction) await queueOthers(mine)
    const canaries = { ...prefixed('another account: ', other.canaries), ...mine.canaries }
    const pools = Object.fromEntries(
      Object.keys(mine.ids).map((name) => [
        name,
        [...((ids as Record<string, string[]>)[name] ?? []), ...[mine, other].flatMap((each) => each.ids[name] ?? [])],
      ]),
    )
    const before = [await rowsOf(mine.account, key.id), await rowsOf(other.account, key.id)]
    const seen = new Map<string, string[]>()
    const ofOwn = new Set<string>()
    for (const operation of inOrder) {
      const requests = requestsOf(operation, key.value, pools)
      expect(requests.length, operation.id).toBeGreaterThan(0)
      const found = await sendAll(operation, requests, { ...canaries, ...own })
      for (const name of Object.keys(own)) if (found.delete(name)) ofOwn.add(name)
      if (found.size > 0) seen.set(operation.id, [...found])
    }
    expect(Object.fromEntries(seen)).toEqual({})
    expect([await rowsOf(mine.account, key.id), await rowsOf(other.account, key.id)]).toEqual(before)
    // The same search finds what the key may read.
    expect([...ofOwn].sort()).toEqual(['claimed', 'queued'])
  })

  test('gets no resource by a request that succeeds with a key of full access', async () => {
    const account = await service.createAccount()
    const key = await account.createKey({ scopes, ...(restriction && { workflowIds: restriction }) })
    const statuses = new Map<string, number>()
    for (const operation of operations) {
      const { headers, ...request } = await validRequest(service, operation.id, account)
      const own = requestOf(operation, key.value).headers
      const { status } = await read(operation, { ...request, headers: { ...headers, ...own } })
      statuses.set(operation.id, status)
    }
    const succeeded = [...statuses].filter(([, status]) => status < 300).map(([id]) => id)
    // It registers a new worker.
    expect(succeeded).toEqual(restriction ? [] : ['registerWorker'])
  })
})

test('the search finds every canary of an account with a key of full access', async () => {
  const { account, canaries, ids } = await createCanaryAccount(service)
  const found = new Set<string>()
  for (const operation of operations) {
    if (operation.method !== 'GET') continue
    for (const name of await sendAll(operation, requestsOf(operation, account.key, ids), canaries)) found.add(name)
  }
  const missing = Object.keys(canaries).filter((name) => !found.has(name))
  // Steps are for workers, and names of keys are in the dashboard.
  expect(missing.sort()).toEqual(['key', 'step'])
})

function prefixed(prefix: string, values: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [prefix + name, value]))
}
