/** What goes wrong with a call is a value with the fields of a problem, whoever noticed it; so that it need not be caught. */
import { expect, type TestContext, test } from 'vitest'
import {
  type ClientOptions,
  createExecutionClient,
  ProblemError,
  problemTypes,
  unwrap,
} from '../../src/client/index.ts'
import { allOf } from './all-of.ts'
import { type Act, answer, drop, hang, problem, scripted } from './scripted-server.ts'

async function clientOf(test: TestContext, act: Act, options: Partial<ClientOptions> = {}) {
  const server = await scripted(test, act)
  const given = { baseUrl: server.url, apiKey: 'canary-of-a-key', retries: 0, ...options }
  return { server, client: createExecutionClient(given) }
}

const params = { path: { runId: '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07' } }
const artifact = { path: { ...params.path, artifactName: 'empty.txt' } }

test("the service's own problem is the error", async (test) => {
  const { client } = await clientOf(test, problem('rate-limited', { 'Retry-After': '7' }))
  const { data, error, response } = await client.getRun({ params })
  expect(data).toBeUndefined()
  expect(response.status).toBe(429)
  expect(error).toEqual({
    type: '/docs/errors#rate-limited',
    title: 'Too many requests',
    status: 429,
    detail: 'As the test wants it.',
    requestId: '3b8f3a52-6f0e-4d57-9e43-5b1f6a0f2c11',
    retryAfterSeconds: 7,
  })
})

test.for([
  [401, 'Unauthorized', 'The API key is missing, unknown, deleted or expired.'],
  [403, 'Forbidden', 'The API key is valid, but its scopes do not permit this operation.'],
] as const)('a %i in plain text has the same shape', async ([status, title, detail], test) => {
  const requestId = '3b8f3a52-6f0e-4d57-9e43-5b1f6a0f2c11'
  const { client } = await clientOf(test, answer(status, title, { 'X-Request-Id': requestId }))
  expect((await client.getRun({ params })).error).toEqual({ status, type: 'about:blank', title, detail, requestId })
})

const { networkFailure, timeout, unexpectedAnswer } = problemTypes

test.for<[what: string, act: Act, status: number, error: object]>([
  ['a page of a gateway', answer(502, '<h1>No upstream</h1>'), 502, { type: 'about:blank', title: 'Bad Gateway' }],
  ['JSON that is no problem', answer(500, { message: 'Oh' }), 500, { type: 'about:blank' }],
  ['an error without a body', answer(504), 504, { type: 'about:blank', title: 'Gateway Timeout' }],
  ['a success that is no JSON', answer(200, '<h1>Sign in'), 200, { type: unexpectedAnswer }],
  ['a success without a body', answer(200), 200, { type: unexpectedAnswer }],
  ['a success without a body, of unknown length', (response) => response.end(), 200, { type: unexpectedAnswer }],
  ['a success that is null', answer(200, 'null'), 200, { type: unexpectedAnswer }],
  ['a connection that breaks', drop, 0, { type: networkFailure }],
  ['an answer that does not come', hang, 0, { type: timeout }],
])('%s has the same shape, and says nothing of the key', async ([, act, status, expected], test) => {
  const { client, server } = await clientOf(test, act, act === hang ? { timeoutSeconds: 1 } : {})
  const { data, error, response } = await client.getRun({ params })
  expect(data).toBeUndefined()
  const detail = expect.stringMatching(/\.$|<h1>/)
  expect(error).toMatchObject({ title: expect.any(String), detail, status, ...expected })
  expect(response.status).toBe(status)
  expect(JSON.stringify(error)).not.toContain('canary')
  expect(server.requests).toHaveLength(1)
})

test('a redirect is neither followed nor tried again, and the error says where it leads', async (test) => {
  const { client, server } = await clientOf(test, answer(307, '', { Location: 'https://example.com/' }), { retries: 3 })
  const { error, response } = await client.getRun({ params })
  expect(error).toMatchObject({ type: unexpectedAnswer, status: 307 })
  expect(error?.detail).toContain('redirected to https://example.com/')
  expect(response.status).toBe(307)
  expect(server.requests).toHaveLength(1)
})

test('a redirect is told from a broken connection in a browser, too, which shows nothing of it', async (test) => {
  // As the Fetch Standard has it, section 2.2.6: an answer of this type, without status, headers and body.
  const opaque = () => Object.defineProperty(Response.error(), 'type', { value: 'opaqueredirect' })
  const { client } = await clientOf(test, hang, { fetch: async () => opaque(), retries: 3 })
  const { error } = await client.getRun({ params })
  expect(error).toMatchObject({ type: unexpectedAnswer, status: 0, detail: expect.stringContaining('redirected') })
})

test('a run that is answered with nothing cannot be waited for, nor a list of them read', async (test) => {
  const { client } = await clientOf(test, answer(200, 'null'))
  expect((await client.runs.wait(params.path.runId)).error?.type).toBe(unexpectedAnswer)
  await expect(allOf(client.runs.list())).rejects.toMatchObject({ type: unexpectedAnswer })
})

test('an address where nothing listens is a network failure that says why', async (test) => {
  const { server } = await clientOf(test, hang)
  const port = Number(new URL(server.url).port)
  const client = createExecutionClient({ baseUrl: `http://127.0.0.1:${port === 1 ? 2 : 1}`, apiKey: 'a', retries: 0 })
  const { error } = await client.getRun({ params })
  expect(error).toMatchObject({ status: 0, type: problemTypes.networkFailure, cause: expect.any(TypeError) })
  expect(error?.detail).toMatch(/^GET http:.+ got no answer: .+\.$/)
})

test('a request that cannot be made is told without a try', async (test) => {
  const { client, server } = await clientOf(test, answer(200, {}), { retries: 3 })
  const { error } = await client.getRun({ params, headers: { 'No header': 'x' } })
  expect(error).toMatchObject({ status: 0, type: problemTypes.invalidRequest })
  expect(server.requests).toEqual([])
})

test.for(['', ' ', ' k', 'k\n', 'two words', 'ключ', undefined])(
  'an API key that is none is refused at once: %j',
  (apiKey) => {
    const options = { baseUrl: 'http://127.0.0.1:1', apiKey: apiKey as string }
    expect(() => createExecutionClient(options)).toThrow(/^apiKey is empty or has characters that no API key has/)
  },
)

test('an address that is missing is refused at once', () => {
  expect(() => createExecutionClient({ baseUrl: '', apiKey: 'a' })).toThrow('baseUrl is empty')
})

test('unwrap gives the data, or throws an Error with all that the problem says', async (test) => {
  const { client } = await clientOf(test, problem('not-found'))
  const found = await clientOf(test, answer(200, { id: 'a run' }))
  expect(unwrap(await found.client.getRun({ params }))).toEqual({ id: 'a run' })
  const answered = await client.getRun({ params })
  expect(() => unwrap(answered)).toThrow(ProblemError)
  expect(() => unwrap(answered)).toThrow('404: As the test wants it. (request 3b8f3a52-6f0e-4d57-9e43-5b1f6a0f2c11)')
  try {
    unwrap(answered)
  } catch (thrown) {
    expect(thrown).toMatchObject({ ...answered.error, name: 'ProblemError' })
  }
})

test('a file is a Blob, also an empty one', async (test) => {
  const { client } = await clientOf(test, answer(200, '', { 'Content-Type': 'text/plain' }))
  const { data } = await client.getRunArtifact({ params: artifact })
  expect(data).toBeInstanceOf(Blob)
  expect(data?.size).toBe(0)
  expect((await client.getRunArtifact({ params: artifact, parseAs: 'text' })).data).toBe('')
})

test('an answer by another document is told once, and changes nothing', async (test) => {
  const drifts: unknown[] = []
  const act = answer(200, { id: 'a run' }, { 'X-Document-Hash': '0123456789abcdef' })
  const { client } = await clientOf(test, act, { onDrift: (drift) => drifts.push(drift) })
  for (let calls = 0; calls < 3; calls++) expect((await client.getRun({ params })).data).toEqual({ id: 'a run' })
  const clientHash = expect.stringMatching(/^[0-9a-f]{16}$/)
  expect(drifts).toEqual([{ document: 'execution.v1', clientHash, serviceHash: '0123456789abcdef' }])
})

test('what onDrift throws is not the end of the program that called', async (test) => {
  const uncaught: unknown[] = []
  const note = (thrown: unknown) => uncaught.push(thrown)
  process.on('uncaughtException', note)
  process.on('unhandledRejection', note)
  test.onTestFinished(() => void process.off('uncaughtException', note).off('unhandledRejection', note))
  const act = answer(200, { id: 'a run' }, { 'X-Document-Hash': '0123456789abcdef' })
  for (const onDrift of [() => fail(), async () => fail()]) {
    const { client } = await clientOf(test, act, { onDrift })
    expect((await client.getRun({ params })).error).toBeUndefined()
  }
  await new Promise((resolve) => setImmediate(resolve))
  expect(uncaught).toEqual([])
})

function fail(): void {
  throw new Error('The callback fails')
}

test("headers and a fetch of the caller's own are used, for every request and for one", async (test) => {
  const { client, server } = await clientOf(test, answer(200, {}), {
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
