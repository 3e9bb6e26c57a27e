/** Failed calls return a problem as a value, whether the service or the client detected the failure. */
import { expect, type TestContext, test } from 'vitest'
import {
  type ClientOptions,
  createExecutionClient,
  ProblemError,
  problemTypes,
  unwrap,
} from '../../src/client/index.ts'
import { type Act, collect, drop, hang, problem, respond, startScriptedServer } from './scripted-server.ts'

async function startClient(test: TestContext, act: Act, options: Partial<ClientOptions> = {}) {
  const server = await startScriptedServer(test, act)
  const clientOptions = { baseUrl: server.url, apiKey: 'canary-of-a-key', retries: 0, ...options }
  return { server, client: createExecutionClient(clientOptions) }
}

const params = { path: { runId: '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07' } }
const artifact = { path: { ...params.path, artifactName: 'empty.txt' } }

test("a problem sent by the service is the call's error", async (test) => {
  const { client } = await startClient(test, problem('rate-limited', { 'Retry-After': '7' }))
  const { data, error, response } = await client.getRun({ params })
  expect(data).toBeUndefined()
  expect(response.status).toBe(429)
  expect(error).toEqual({
    type: '/docs/errors#rate-limited',
    title: 'Too many requests',
    status: 429,
    detail: 'Scripted.',
    requestId: '3b8f3a52-6f0e-4d57-9e43-5b1f6a0f2c11',
    retryAfterSeconds: 7,
  })
})

test.for([
  [401, 'Unauthorized', 'The API key is missing, unknown, deleted or expired.'],
  [403, 'Forbidden', 'The API key is valid, but its scopes do not permit this operation.'],
] as const)('a %i with a plain text body becomes a problem', async ([status, title, detail], test) => {
  const requestId = '3b8f3a52-6f0e-4d57-9e43-5b1f6a0f2c11'
  const { client } = await startClient(test, respond(status, title, { 'X-Request-Id': requestId }))
  expect((await client.getRun({ params })).error).toEqual({ status, type: 'about:blank', title, detail, requestId })
})

const { networkFailure, timeout, unexpectedResponse } = problemTypes

test.for<[what: string, act: Act, status: number, error: object]>([
  [
    'an HTML page of a gateway',
    respond(502, '<h1>No upstream</h1>'),
    502,
    { type: 'about:blank', title: 'Bad Gateway' },
  ],
  ['JSON that is not a problem', respond(500, { message: 'Oh' }), 500, { type: 'about:blank' }],
  ['an error without a body', respond(504), 504, { type: 'about:blank', title: 'Gateway Timeout' }],
  ['a success that is not JSON', respond(200, '<h1>Sign in'), 200, { type: unexpectedResponse }],
  ['a success without a body', respond(200), 200, { type: unexpectedResponse }],
  ['a success without a body, of unknown length', (response) => response.end(), 200, { type: unexpectedResponse }],
  ['a success that is null', respond(200, 'null'), 200, { type: unexpectedResponse }],
  ['a connection that breaks', drop, 0, { type: networkFailure }],
  ['a response that never arrives', hang, 0, { type: timeout }],
])('%s becomes a problem that does not contain the API key', async ([, act, status, expected], test) => {
  const { client, server } = await startClient(test, act, act === hang ? { timeoutSeconds: 1 } : {})
  const { data, error, response } = await client.getRun({ params })
  expect(data).toBeUndefined()
  const detail = expect.stringMatching(/\.$|<h1>/)
  expect(error).toMatchObject({ title: expect.any(String), detail, status, ...expected })
  expect(response.status).toBe(status)
  expect(JSON.stringify(error)).not.toContain('canary')
  expect(server.requests).toHaveLength(1)
})

test('a redirect is neither followed nor retried, and the error contains its target', async (test) => {
  const { client, server } = await startClient(test, respond(307, '', { Location: 'https://example.com/' }), {
    retries: 3,
  })
  const { error, response } = await client.getRun({ params })
  expect(error).toMatchObject({ type: unexpectedResponse, status: 307 })
  expect(error?.detail).toContain('redirected to https://example.com/')
  expect(response.status).toBe(307)
  expect(server.requests).toHaveLength(1)
})

test('a redirect is distinguished from a network failure in browsers, which hide its status', async (test) => {
  // Fetch Standard, section 2.2.6: a filtered response of this type has no status, headers or body.
  const opaque = () => Object.defineProperty(Response.error(), 'type', { value: 'opaqueredirect' })
  const { client } = await startClient(test, hang, { fetch: async () => opaque(), retries: 3 })
  const { error } = await client.getRun({ params })
  expect(error).toMatchObject({ type: unexpectedResponse, status: 0, detail: expect.stringContaining('redirected') })
})

test('waiting for a run and listing runs fail when the response is null', async (test) => {
  const { client } = await startClient(test, respond(200, 'null'))
  expect((await client.runs.wait(params.path.runId)).error?.type).toBe(unexpectedResponse)
  await expect(collect(client.runs.list())).rejects.toMatchObject({ type: unexpectedResponse })
})

test('a refused connection is a network failure with its reason', async (test) => {
  const { server } = await startClient(test, hang)
  const port = Number(new URL(server.url).port)
  const client = createExecutionClient({ baseUrl: `http://127.0.0.1:${port === 1 ? 2 : 1}`, apiKey: 'a', retries: 0 })
  const { error } = await client.getRun({ params })
  expect(error).toMatchObject({ status: 0, type: problemTypes.networkFailure, cause: expect.any(TypeError) })
  expect(error?.detail).toMatch(/^GET http:.+ got no response: .+\.$/)
})

test('an invalid request fails without being sent', async (test) => {
  const { client, server } = await startClient(test, respond(200, {}), { retries: 3 })
  const { error } = await client.getRun({ params, headers: { 'No header': 'x' } })
  expect(error).toMatchObject({ status: 0, type: problemTypes.invalidRequest })
  expect(server.requests).toEqual([])
})

test.for(['', ' ', ' k', 'k\n', 'two words', 'ключ', undefined])(
  'a value that cannot be an API key throws when the client is created: %j',
  (apiKey) => {
    const options = { baseUrl: 'http://127.0.0.1:1', apiKey: apiKey as string }
    expect(() => createExecutionClient(options)).toThrow(/^apiKey is empty or has characters that no API key has/)
  },
)

test('an empty address throws when the client is created', () => {
  expect(() => createExecutionClient({ baseUrl: '', apiKey: 'a' })).toThrow('baseUrl is empty')
})

test('unwrap returns the data, or throws an Error with the fields of the problem', async (test) => {
  const { client } = await startClient(test, problem('not-found'))
  const other = await startClient(test, respond(200, { id: 'a run' }))
  expect(unwrap(await other.client.getRun({ params }))).toEqual({ id: 'a run' })
  const result = await client.getRun({ params })
  expect(() => unwrap(result)).toThrow(ProblemError)
  expect(() => unwrap(result)).toThrow('404: Scripted. (request 3b8f3a52-6f0e-4d57-9e43-5b1f6a0f2c11)')
  try {
    unwrap(result)
  } catch (thrown) {
    expect(thrown).toMatchObject({ ...result.error, name: 'ProblemError' })
  }
})

test('a file is a Blob, even if it is empty', async (test) => {
  const { client } = await startClient(test, respond(200, '', { 'Content-Type': 'text/plain' }))
  const { data } = await client.getRunArtifact({ params: artifact })
  expect(data).toBeInstanceOf(Blob)
  expect(data?.size).toBe(0)
  expect((await client.getRunArtifact({ params: artifact, parseAs: 'text' })).data).toBe('')
})

test('onDrift is called once when the service uses another document, and calls succeed', async (test) => {
  const drifts: unknown[] = []
  const act = respond(200, { id: 'a run' }, { 'X-Document-Hash': '0123456789abcdef' })
  const { client } = await startClient(test, act, { onDrift: (drift) => drifts.push(drift) })
  for (let calls = 0; calls < 3; calls++) expect((await client.getRun({ params })).data).toEqual({ id: 'a run' })
  const clientHash = expect.stringMatching(/^[0-9a-f]{16}$/)
  expect(drifts).toEqual([{ document: 'execution.v1', clientHash, serviceHash: '0123456789abcdef' }])
})

test('errors thrown by onDrift are ignored', async (test) => {
  const uncaught: unknown[] = []
  const note = (thrown: unknown) => uncaught.push(thrown)
  process.on('uncaughtException', note)
  process.on('unhandledRejection', note)
  test.onTestFinished(() => void process.off('uncaughtException', note).off('unhandledRejection', note))
  const act = respond(200, { id: 'a run' }, { 'X-Document-Hash': '0123456789abcdef' })
  for (const onDrift of [() => fail(), async () => fail()]) {
    const { client } = await startClient(test, act, { onDrift })
    expect((await client.getRun({ params })).error).toBeUndefined()
  }
  await new Promise((resolve) => setImmediate(resolve))
  expect(uncaught).toEqual([])
})

function fail(): void {
  throw new Error('The callback fails')
}

test('headers and fetch can be set for a client and for a call', async (test) => {
  const { client, server } = await startClient(test, respond(200, {}), {
    headers: { 'X-Team': 'blue' },
    fetch: (request) => fetch(request, { headers: { ...Object.fromEntries(request.headers), 'X-Via': 'all' } }),
  })
  await client.getRun({ params })
  await client.getRun({ params, headers: { 'X-Team': 'red' }, fetch })
  expect(server.requests.map(({ headers }) => [headers['x-team'], headers['x-via']])).toEqual([
    ['blue', 'all'],
    ['red', undefined],
  ])
})
