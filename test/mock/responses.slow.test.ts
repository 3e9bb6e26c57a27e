/** The mock can produce every documented response: by its API keys, or by the header `Prefer`. */
import { describe, expect, test } from 'vitest'
import { mockKeys } from '../../src/tools/mock/mock-keys.ts'
import { expectDocumented, expectProblem, operationOf, operations } from '../operations/document.ts'
import { mockPath, useMock } from './use-mock.ts'

const { call } = useMock()
const prefer = (...preferences: string[]) => ({ headers: { Prefer: preferences.join(', ') } })

/** Members of the example that agree with the request instead. */
function agreeing(operation: (typeof operations)[number], status: number, example: object) {
  if (status >= 300) return {}
  const of = mockPath as Record<string, string>
  const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  const [last = ''] = /\w+Id\}$/.exec(operation.path) ?? []
  const isOfResource = ['cancelRun', 'rotateWebhookSecret', 'activateDeployment'].includes(operation.id)
  const idName = isOfResource ? (names[0] ?? '') : last.slice(0, -1)
  const agreed = {
    ...Object.fromEntries(names.filter((name) => name !== 'version').map((name) => [name, of[name]])),
    ...(idName !== '' && idName !== 'workflowId' && { id: of[idName] }),
    ...(operation.id === 'rerunRun' && { rerunOf: mockPath.runId }),
    ...(operation.id === 'restoreBrowserContextVersion' && { restoredFrom: Number(mockPath.version) }),
    ...(['createWaitLink', 'createRunToken'].includes(operation.id) && { expiresAt: expect.any(String) }),
  }
  return Object.fromEntries(Object.entries(agreed).filter(([name]) => name in example))
}

describe.each(operations)('$id', (operation) => {
  const successes = [...operation.responses.keys()].filter((status) => status < 300)

  test.each(mockKeys)('responds with $status to the key $value', async ({ value, status }) => {
    const response = await call(operation, {}, value)
    if (status === 200) expect(successes).toContain(response.status)
    else expect(response.status).toBe(status)
    expectDocumented(operation, response)
  })

  test('responds with each documented status on request', async () => {
    for (const status of operation.responses.keys()) {
      const response = await call(operation, prefer('wait=10', `code=${status}`))
      expect(response.status).toBe(status)
      expectDocumented(operation, response)
    }
  })

  test('sends the same challenge with a requested 401 and without a key', async () => {
    const preferred = await call(operation, prefer('code=401'))
    const { headers } = await call(operation, {}, 'none')
    expect(preferred.headers['www-authenticate']).toBe(headers['www-authenticate'])
  })

  test('responds with each documented example on request', async () => {
    for (const [status, { examples }] of operation.responses) {
      // An unnamed example is the only one of its status.
      for (const [mediaType, name, value] of examples.filter(([, each]) => each !== 'example')) {
        const { headers } = prefer(`code=${status}`, `example="${name}"`)
        const response = await call(operation, { headers: { ...headers, Accept: status < 300 ? mediaType : '*/*' } })
        expect(response).toMatchObject({ status, headers: { 'content-type': mediaType } })
        if (['text/event-stream', 'text/csv'].includes(mediaType)) {
          expect(response.text).toBe(value)
          continue
        }
        const { requestId, ...rest } = value as Record<string, unknown>
        const requestIdMember = requestId === undefined ? {} : { requestId: response.headers['x-request-id'] }
        const expected = { ...rest, ...requestIdMember, ...agreeing(operation, status, rest) }
        expect(JSON.parse(response.text)).toEqual(expected)
        // The name is sufficient; a response that several statuses have is that of the usual one.
        const named = (await call(operation, prefer(`example=${name}`))).status
        const having = [...operation.responses].filter(([, it]) => it.examples.some(([, each]) => each === name))
        expect(having.map(([each]) => each)).toContain(named)
      }
    }
  })

  test('responds with made-up values that match the document on request', async () => {
    const response = await call(operation, prefer('dynamic=true'))
    expect(successes).toContain(response.status)
    expectDocumented(operation, response)
    const isMadeUp = response.headers['content-type'] === 'application/json' && !operation.responses.get(200)?.isFile
    if (!isMadeUp) return
    const example = JSON.parse((await call(operation)).text)
    // A single count may be that of the example by chance.
    const madeUp = async () => JSON.parse((await call(operation, prefer('dynamic=true'))).text)
    await expect.poll(madeUp).not.toEqual(example)
  })

  test.each([
    ['code=418', [...operation.responses.keys()].join(', ')],
    ['example=none-such', ''],
    ['dynamic=maybe', 'true, false'],
  ])('rejects Prefer: %s and lists the known values', async (preference, known) => {
    const response = await call(operation, prefer(preference))
    const detail: unknown = expect.stringContaining(
      `asks for ${preference}, which the document does not have; it has ${known}`,
    )
    expectProblem(operation, response, {
      kind: 'invalid-request',
      title: 'Invalid request',
      status: 400,
      errors: [{ header: 'Prefer', detail }],
    })
  })
})

test.each([1, 5, 100])('a made-up page with limit %i has as many items, with short lists in each', async (limit) => {
  const response = await call(operationOf('listRuns'), { ...prefer('dynamic=true'), query: `limit=${limit}` })
  const { data } = JSON.parse(response.text)
  expect(data).toHaveLength(limit)
  for (const { artifacts } of data) expect(artifacts.length).toBeLessThanOrEqual(3)
})

test('a made-up page has 20 items by default', async () => {
  const response = await call(operationOf('listRuns'), prefer('dynamic=true'))
  expect(JSON.parse(response.text).data).toHaveLength(20)
})

test('queueRemoteRun responds with a finished run and Preference-Applied if the caller waits', async () => {
  const queue = operationOf('queueRemoteRun')
  const waited = await call(queue, prefer('wait=10'))
  expect(waited).toMatchObject({ status: 200, headers: { 'preference-applied': 'wait=10' } })
  expect(JSON.parse(waited.text).finishedAt).not.toBeNull()
  const queued = await call(queue)
  expect(queued.status).toBe(202)
  expect(queued.headers['preference-applied']).toBeUndefined()
  const delayed = await call(queue, { ...prefer('wait=10'), query: 'delaySeconds=3600' })
  expect(delayed.status).toBe(202)
  expect(queued.headers.location).toBe(`/v1/execution/runs/${JSON.parse(queued.text).id}`)
})

test('RateLimit and Retry-After of a 429 agree', async () => {
  const { headers } = await call(operationOf('listRuns'), prefer('code=429'))
  expect(headers.ratelimit).toContain(`;t=${headers['retry-after']}`)
})

test('both problems of a 429 of queueRemoteRun can be requested', async () => {
  const typeOf = async (preference: string) =>
    JSON.parse((await call(operationOf('queueRemoteRun'), prefer(preference))).text).type
  expect(await typeOf('code=429')).toBe('/docs/errors#rate-limited')
  expect(await typeOf('example=tooManyQueuedRuns')).toBe('/docs/errors#too-many-queued-runs')
})

test('Location contains the id of the created resource', async () => {
  const created = await call(operationOf('createBrowserContext'))
  expect(created.headers.location).toBe(`/alpha/browser-contexts/${JSON.parse(created.text).id}`)
})

describe('an event stream', () => {
  const follow = operationOf('streamRunEvents')
  const resumed = (id: string) => call(follow, { headers: { 'Last-Event-ID': id } })

  test('contains the events of the example', async () => {
    const response = await call(follow)
    expect(response.headers['content-type']).toBe('text/event-stream')
    expect(response.text).toMatch(/^id: 1\nevent: status\ndata: \{"type":"status"/)
  })

  test('resumes after Last-Event-ID and ends with 204', async () => {
    expect((await resumed('0')).status).toBe(200)
    expect((await resumed('999')).status).toBe(204)
  })
})

describe('an artifact', () => {
  const download = operationOf('getRunArtifact')
  const named = (artifactName: string, headers = {}) =>
    call(download, { path: { runId: '0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07', artifactName }, headers })

  test.each([
    ['invoice.pdf', 'application/pdf', '%PDF-1'],
    ['shot.PNG', 'image/png', '\uFFFDPNG'],
    ['shot.webp', 'image/webp', 'RIFF'],
    ['orders.zip', 'application/zip', 'PK'],
    ['orders.csv', 'text/csv', 'word,count'],
    ['orders.json', 'application/json', '{'],
    ['notes.txt', 'text/plain', 'A sample file'],
  ])('%s is a valid file of the media type of its extension', async (name, mediaType, start) => {
    const response = await named(name)
    expectDocumented(download, response)
    expect(response.headers).toMatchObject({
      'content-type': mediaType,
      'content-disposition': `attachment; filename="${name}"`,
    })
    expect(response.text.startsWith(start)).toBe(true)
  })

  test('without an extension has an accepted media type', async () => {
    expect((await named('shot', { Accept: 'image/jpeg' })).headers['content-type']).toBe('image/jpeg')
  })
})

test('an example of a request and the response of the same name belong together', async () => {
  const [queue, create] = [operationOf('queueRemoteRun'), operationOf('createBrowserContext')]
  for (const preference of ['example=countWords', 'example=countWords, wait=10']) {
    const run = JSON.parse((await call(queue, prefer(preference))).text)
    expect(run).toMatchObject(queue.body?.countWords as object)
  }
  const { text } = await call(create, prefer('example=unnamed'))
  const context = JSON.parse(text)
  expect(context.name).toBe(`context-${context.id.slice(-12)}`)
})
