/** Bruno can read the collection, which has every operation and works against the service and the mock. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bruToEnvJsonV2, bruToJsonV2, collectionBruToJson, type Pair, type Request } from '@usebruno/lang'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Mock, startMock } from '../../src/commands/mock.ts'
import { validKey } from '../../src/commands/mock-keys.ts'
import { operations } from '../operations/document.ts'
import { claimedWithFile, leasedRun, signInBody } from '../operations/requests.ts'
import { startTestService, type TestService, until } from '../support/service.ts'

const collection = 'generated/bruno'
const paths = readdirSync(collection, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.bru'))
const read = (path: string) => readFileSync(join(collection, path), 'utf8')

/** The requests by operationId. */
const requests = new Map(
  paths
    .filter((path) => !path.startsWith('environments/') && !path.endsWith('folder.bru'))
    .map((path) => [path.replace(/^.*\/|\.bru$/g, ''), bruToJsonV2(read(path))] as const),
)

let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

afterAll(() => service?.stop())

type Variables = Map<string, string>

function fillIn(text: string, variables: Variables): string {
  return text.replace(/\{\{(\w+)\}\}/g, (_, name) => {
    const value = variables.get(name)
    if (value === undefined) throw new Error(`The environment has no variable ${name}.`)
    return value
  })
}

const successes = [200, 201, 202, 204]

const enabled = <Each extends Pair>(pairs: Each[] = []) => pairs.filter((pair) => pair.enabled)

/** Sends the request like Bruno, and sets variables from the response. */
async function send({ http, params = [], headers = [], auth, body, vars }: Request, variables: Variables) {
  const ofType = (wanted: string) => enabled(params.filter(({ type }) => type === wanted))
  const path = ofType('path').reduce((text, { name, value }) => text.replace(`:${name}`, value), http.url)
  const url = new URL(fillIn(path, variables))
  for (const { name, value } of ofType('query')) url.searchParams.append(name, fillIn(value, variables))
  const sent = new Headers()
  for (const { name, value } of enabled(headers)) sent.set(name, fillIn(value, variables))
  if (auth.bearer) sent.set('Authorization', `Bearer ${fillIn(auth.bearer.token, variables)}`)
  if (auth.apikey) sent.set(auth.apikey.key, fillIn(auth.apikey.value, variables))
  if (http.body === 'json') sent.set('Content-Type', 'application/json')
  const response = await fetch(url, {
    method: http.method.toUpperCase(),
    headers: sent,
    body: body?.json ? fillIn(body.json, variables) : null,
  })
  const text = await response.text()
  for (const { name, value } of (response.ok && vars?.res) || []) {
    expect(value).toBe('res.body.id')
    variables.set(name, JSON.parse(text).id)
  }
  return { status: response.status, text }
}

/** Reads the variables of an environment and replaces its addresses. */
function readEnvironment(
  name: string,
  { executionUrl, browserContextUrl }: Pick<Mock, 'executionUrl' | 'browserContextUrl'>,
) {
  const { variables } = bruToEnvJsonV2(read(`environments/${name}.bru`))
  const values: Variables = new Map(variables.map((each) => [each.name, each.value]))
  return values.set('executionUrl', executionUrl).set('browserContextUrl', browserContextUrl)
}

/** With the key of a new account. */
async function createServerEnvironment(): Promise<Variables> {
  const { key } = await service.createAccount()
  return readEnvironment('Server', service).set('apiKey', key).set('workerId', crypto.randomUUID())
}

const findRequest = (operationId: string): Request => {
  const request = requests.get(operationId)
  if (!request) throw new Error(`The collection has no ${operationId}.`)
  return request
}

/** Queues a run that creates an artifact, and waits for it. */
async function createArtifact(variables: Variables): Promise<void> {
  const queued = findRequest('queueRemoteRun')
  variables.set('workflowId', 'print').set('artifactName', 'hello.txt')
  expect((await send({ ...queued, body: { json: '{"variableData": {}}' } }, variables)).status).toBe(202)
  await untilSucceeded(variables)
}

/** Queues a run that waits for an answer. */
async function createWaitingRun(variables: Variables): Promise<void> {
  const queued = findRequest('queueRemoteRun')
  variables.set('workflowId', 'approve').set('name', 'approval')
  expect((await send({ ...queued, body: { json: '{"variableData": {}}' } }, variables)).status).toBe(202)
}

/** Queues a run for a worker. */
async function createRunOfWorker(variables: Variables): Promise<void> {
  const [registered, queued] = [findRequest('registerWorker'), findRequest('queueRemoteRun')]
  expect((await send(registered, variables)).status).toBe(200)
  variables.set('workflowId', 'send-invoice').set('attempt', '1')
  const json = '{"variableData": {"orderId": "A-1001"}}'
  expect((await send({ ...queued, body: { json } }, variables)).status).toBe(202)
}

/** A run that a worker executes. */
async function createAttempt(): Promise<Variables> {
  const variables = await createServerEnvironment()
  await createRunOfWorker(variables)
  variables.set('stepName', 'charge').set('artifactName', 'invoice.txt')
  expect((await send(findRequest('claimRuns'), variables)).status).toBe(200)
  return variables
}

/** The same with a file. */
async function createAttemptWithFile(): Promise<Variables> {
  const account = await service.createAccount()
  const { runId, attempt, fileId } = await claimedWithFile(service, account)
  const variables = readEnvironment('Server', service).set('apiKey', account.key)
  return variables.set('runId', runId).set('attempt', String(attempt)).set('fileId', fileId)
}

/** The same with a browser context. */
async function createAttemptWithContext(): Promise<Variables> {
  const variables = await createServerEnvironment()
  const [registered, queued] = [findRequest('registerWorker'), findRequest('queueRemoteRun')]
  expect((await send(findRequest('createBrowserContext'), variables)).status).toBe(201)
  const worker = { ...registered.body, json: registered.body?.json?.replace('"id"', '"browser": true, "id"') ?? '' }
  expect((await send({ ...registered, body: worker }, variables)).status).toBe(200)
  variables.set('workflowId', 'send-invoice').set('attempt', '1')
  const params = queued.params?.map((each) => ({ ...each, enabled: each.enabled || each.name === 'browserContextId' }))
  const body = { json: '{"variableData": {"orderId": "A-1001"}}' }
  const request = params === undefined ? { ...queued, body } : { ...queued, params, body }
  expect((await send(request, variables)).status).toBe(202)
  expect((await send(findRequest('claimRuns'), variables)).status).toBe(200)
  return variables
}

/** The workflow of the example is not deployed. */
const setSignIn = (): Request => ({ ...findRequest('setSignIn'), body: { json: JSON.stringify(signInBody) } })

/** A browser context with a sign-in. */
async function createSignIn(): Promise<Variables> {
  const variables = await createServerEnvironment()
  expect((await send(findRequest('createBrowserContext'), variables)).status).toBe(201)
  expect((await send(setSignIn(), variables)).status).toBe(200)
  return variables
}

function untilSucceeded(variables: Variables): Promise<unknown> {
  return until('the run has succeeded', async () => {
    return JSON.parse((await send(findRequest('getRun'), variables)).text).status === 'succeeded'
  })
}

const isDeletion = (id: string) => id.startsWith('delete')
/** Deletions last, as in each folder. A version is restored once one has been stored. */
const rank = (id: string) => (isDeletion(id) ? 2 : id === 'restoreBrowserContextVersion' ? 1 : 0)
const sendingOrder = operations.map(({ id }) => id).sort((a, b) => rank(a) - rank(b))

test('the collection has exactly one request for each operation', () => {
  expect([...requests.keys()].sort()).toEqual(operations.map(({ id }) => id).sort())
})

test('every request has all parameters of its operation, with only the required ones enabled', () => {
  for (const { id, parameters } of operations) {
    const { params = [], headers = [] } = findRequest(id)
    const listed = [...params, ...headers.map((header) => ({ ...header, type: 'header' }))]
    const expected = parameters.map(({ name, in: type, required }) =>
      expect.objectContaining({ name, type, enabled: type === 'path' || required === true }),
    )
    expect(listed, id).toHaveLength(expected.length)
    expect(listed, id).toEqual(expect.arrayContaining(expected))
  }
})

test('Bruno can read the folders and environments, and both environments have the same variables', () => {
  const folders = paths.filter((path) => path.endsWith('folder.bru')).map((path) => collectionBruToJson(read(path)))
  expect(folders.map(({ meta }) => meta.name)).toEqual(
    expect.arrayContaining([
      'Execution API',
      'Runs',
      'Workflows',
      'Browser Context API',
      'Browser contexts',
      'Storage state',
    ]),
  )
  const names = ['Server', 'Mock'].map((name) =>
    bruToEnvJsonV2(read(`environments/${name}.bru`)).variables.map((it) => it.name),
  )
  expect(names[0]).toEqual(names[1])
})

test('every request succeeds against the service, using the resources that earlier requests created', async () => {
  const variables = await createServerEnvironment()
  const artifact = await createServerEnvironment()
  await createArtifact(artifact)
  const waiting = await createServerEnvironment()
  await createWaitingRun(waiting)
  const linked = await createServerEnvironment()
  await createWaitingRun(linked)
  const account = await service.createAccount()
  const bundled = readEnvironment('Server', service).set('apiKey', account.key)
  bundled.set('runId', await leasedRun(service, account))
  bundled.set('deploymentId', JSON.parse((await send(findRequest('getRun'), bundled)).text).deploymentId)
  const claimable = await createServerEnvironment()
  await createRunOfWorker(claimable)
  const signedIn = await createSignIn()
  const onAttempts = operations.filter(({ path }) => path.includes('{attempt}'))
  const others = new Map([
    ...(await Promise.all(onAttempts.map(async ({ id }) => [id as string, await createAttempt()] as const))),
    ['getAttemptBrowserContext', await createAttemptWithContext()],
    ['getAttemptFile', await createAttemptWithFile()],
    ['claimRuns', claimable],
    ['getDeploymentBundle', bundled],
    ['getRunArtifact', artifact],
    ['createWaitLink', linked],
    ['completeWait', waiting],
    ['getSignIn', signedIn],
    ['signInNow', signedIn],
    ['deleteSignIn', signedIn],
  ])
  for (const id of sendingOrder) {
    // Only finished runs can be deleted. This one was queued last, by a schedule.
    if (id === 'deleteRun') await untilSucceeded(variables)
    const before = service.log.length
    const request = id === 'setSignIn' ? setSignIn() : findRequest(id)
    const { status, text } = await send(request, others.get(id) ?? variables)
    expect(successes, `${id}: ${text}`).toContain(status)
    await until('the service has logged the request', () => {
      return service.log.slice(before).some(({ msg, operationId }) => msg === 'request' && operationId === id)
    })
  }
})

test('every request succeeds against the mock with the variables of its environment', async () => {
  const mock = await startMock({ MOCK_EXECUTION_PORT: '0', MOCK_BROWSER_CONTEXT_PORT: '0' })
  onTestFinished(() => mock.stop())
  const variables = readEnvironment('Mock', mock)
  // A file may be empty, but Prism wants a body.
  for (const id of sendingOrder.filter((each) => each !== 'createFile')) {
    const { status, text } = await send(findRequest(id), variables)
    expect(successes, `${id}: ${text}`).toContain(status)
  }
})

test("the collection contains no key except the mock's", () => {
  const keys = ['Server', 'Mock'].map((name) => {
    return bruToEnvJsonV2(read(`environments/${name}.bru`)).variables.find((it) => it.name === 'apiKey')
  })
  expect(keys).toMatchObject([
    { value: '', secret: true },
    { value: validKey, secret: false },
  ])
})
