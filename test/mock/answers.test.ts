/** Every documented answer can be had from the mock: by a well-known key, or by the header `Prefer`. */
import { describe, expect, test } from 'vitest'
import { mockKeys } from '../../src/tools/mock/keys.ts'
import { expectDocumented, expectProblem, operationOf, operations } from '../operations/document.ts'
import { runningMock } from './running.ts'

const { call } = runningMock()
const prefer = (...preferences: string[]) => ({ headers: { Prefer: preferences.join(', ') } })

describe.each(operations)('$id', (operation) => {
  const successes = [...operation.responses.keys()].filter((status) => status < 300)

  test.each(mockKeys)('is answered with $status for the key $value', async ({ value, status }) => {
    const answer = await call(operation, {}, value)
    if (status === 200) expect(successes).toContain(answer.status)
    else expect(answer.status).toBe(status)
    expectDocumented(operation, answer)
  })

  test('is answered with each documented status that is preferred', async () => {
    for (const status of operation.responses.keys()) {
      const answer = await call(operation, prefer('wait=10', `code=${status}`))
      expect(answer.status).toBe(status)
      expectDocumented(operation, answer)
    }
  })

  test('is challenged alike with 401 that is preferred and with no key', async () => {
    const preferred = await call(operation, prefer('code=401'))
    const { headers } = await call(operation, {}, 'none')
    expect(preferred.headers['www-authenticate']).toBe(headers['www-authenticate'])
  })

  test('is answered with each documented example that is preferred', async () => {
    for (const [status, { examples }] of operation.responses) {
      // One that has no name of its own is the only one of its status.
      for (const [mediaType, name, value] of examples.filter(([, each]) => each !== 'example')) {
        const answer = await call(operation, prefer(`code=${status}`, `example="${name}"`))
        expect(answer).toMatchObject({ status, headers: { 'content-type': mediaType } })
        const { requestId, ...rest } = value as Record<string, unknown>
        const own = requestId === undefined ? {} : { requestId: answer.headers['x-request-id'] }
        expect(JSON.parse(answer.text)).toEqual({ ...rest, ...own })
        // The name alone will do.
        expect((await call(operation, prefer(`example=${name}`))).status).toBe(status)
      }
    }
  })

  test('is answered with values that are made up, and fit the document, when that is preferred', async () => {
    const answer = await call(operation, prefer('dynamic=true'))
    expect(successes).toContain(answer.status)
    expectDocumented(operation, answer)
    const isMadeUp = answer.headers['content-type'] === 'application/json' && operation.id !== 'getRunArtifact'
    if (isMadeUp) expect(JSON.parse(answer.text)).not.toEqual(JSON.parse((await call(operation)).text))
  })

  test.each([
    ['code=418', [...operation.responses.keys()].join(', ')],
    ['example=none-such', ''],
    ['dynamic=maybe', 'true, false'],
  ])('refuses Prefer: %s, and says what there is', async (preference, known) => {
    const answer = await call(operation, prefer(preference))
    const detail: unknown = expect.stringContaining(
      `asks for ${preference}, which the document does not have; it has ${known}`,
    )
    expectProblem(operation, answer, {
      kind: 'invalid-request',
      title: 'Invalid request',
      status: 400,
      errors: [{ header: 'Prefer', detail }],
    })
  })
})

test.each([1, 5, 100])(
  'a page that is made up has %i items when that is the limit, and little in each',
  async (limit) => {
    const answer = await call(operationOf('listRuns'), { ...prefer('dynamic=true'), query: `limit=${limit}` })
    const { data } = JSON.parse(answer.text)
    expect(data).toHaveLength(limit)
    for (const { artifacts } of data) expect(artifacts.length).toBeLessThanOrEqual(3)
  },
)

test('a page that is made up has 20 items unless another limit is given', async () => {
  const answer = await call(operationOf('listRuns'), prefer('dynamic=true'))
  expect(JSON.parse(answer.text).data).toHaveLength(20)
})

test('a run that is waited for has finished, and the answer says that it was', async () => {
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

test('the two headers of 429 that say when to go on say the same', async () => {
  const { headers } = await call(operationOf('listRuns'), prefer('code=429'))
  expect(headers.ratelimit).toContain(`;t=${headers['retry-after']}`)
})

test('both kinds of 429 that queueing a run has can be asked for', async () => {
  const typeOf = async (preference: string) =>
    JSON.parse((await call(operationOf('queueRemoteRun'), prefer(preference))).text).type
  expect(await typeOf('code=429')).toBe('/docs/errors#rate-limited')
  expect(await typeOf('example=tooManyQueuedRuns')).toBe('/docs/errors#too-many-queued-runs')
})

test('what was made is where Location says', async () => {
  const made = await call(operationOf('createBrowserContext'))
  expect(made.headers.location).toBe(`/alpha/browser-contexts/${JSON.parse(made.text).id}`)
})

describe('an event stream', () => {
  const follow = operationOf('streamRunEvents')
  const resumed = (id: string) => call(follow, { headers: { 'Last-Event-ID': id } })

  test('has the events of the example', async () => {
    const answer = await call(follow)
    expect(answer.headers['content-type']).toBe('text/event-stream')
    expect(answer.text).toMatch(/^id: 1\nevent: status\ndata: \{"type":"status"/)
  })

  test('goes on after Last-Event-ID, so that a client which resumes comes to an end', async () => {
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
  ])('%s is a file of the type that its name has', async (name, mediaType, start) => {
    const answer = await named(name)
    expectDocumented(download, answer)
    expect(answer.headers).toMatchObject({
      'content-type': mediaType,
      'content-disposition': `attachment; filename="${name}"`,
    })
    expect(answer.text.startsWith(start)).toBe(true)
  })

  test('whose name has no type is of the type that is accepted', async () => {
    expect((await named('shot', { Accept: 'image/jpeg' })).headers['content-type']).toBe('image/jpeg')
  })
})
