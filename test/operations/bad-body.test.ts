/** Bodies that a caller must not send, or sends as another kind: each gets the documented answer, and nothing is stored. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from '../support/service.ts'
import { expectProblem, operationOf } from './document.ts'
import { beside, missingBodies, nested, notJson, notTaken, notUtf8, unsupportedKinds, variables } from './malformed.ts'
import { credential } from './requests.ts'
import { anyDetail, at, good, invalid, json, queueRequest, wrongRequests } from './wrong-requests.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ worker: false })
})
afterAll(() => service.stop())

const queueRemoteRun = operationOf('queueRemoteRun')
const { unstored, expectRefused, expectQueued } = wrongRequests(() => service)

describe('a body', () => {
  test.each(missingBodies)('%s is refused: one is required', async (_, request) => {
    await expectRefused(request, [at('', 'is required')])
  })

  test.each(notJson)('of %s is refused: it is not JSON', async (_, body) => {
    await expectRefused({ body }, [at('', expect.stringContaining('is not JSON'))])
  })

  test.each(notUtf8)('with %s is refused: it is not UTF-8', async (_, body) => {
    await expectRefused({ body }, [at('', 'must be UTF-8')])
  })

  test.each(['null', '[]', '"a"', '1', 'true'])('%s is refused: it is not an object', async (body) => {
    await expectRefused({ body }, [at('', 'must be object')])
  })

  test.each(notTaken)('with %s is refused: it is not the JSON that is taken', async (_, body, pointer, detail) => {
    await expectRefused({ body }, [at(pointer as string, detail)])
  })

  test.each([
    ['another member', beside('"note":1'), '/note', 'is not a documented member'],
    ['a member with a slash in its name', beside('"a/b~c":1'), '/a~1b~0c', 'is not a documented member'],
    ['no variableData', '{}', '/variableData', 'is required'],
    ['variableData that is null', '{"variableData":null}', '/variableData', 'must be object'],
    ['variableData that is a list', '{"variableData":[]}', '/variableData', 'must be object'],
    ['variableData as JSON in a string', '{"variableData":"{}"}', '/variableData', 'must be object'],
  ])('with %s is refused: it does not fit the document', async (_, body, pointer, detail) => {
    await expectRefused({ body }, [at(pointer, detail)])
  })

  const ada = '"name":"Ada"'
  test.each<[what: string, text: string, pointer: string, detail: unknown]>([
    ['a missing one', '', '/name', 'is required'],
    ['an unknown one', `${ada},"a/b":1`, '/a~1b', 'is not in the schema'],
    ['one of the wrong type', '"name":1', '/name', 'must be string'],
    ['null', '"name":null', '/name', 'must be string'],
    ['one that is too long', `"name":"${'a'.repeat(41)}"`, '/name', 'must NOT have more than 40 characters'],
    ['one below its bound', `${ada},"times":0`, '/times', 'must be >= 1'],
    ['one above its bound', `${ada},"times":4`, '/times', 'must be <= 3'],
    ['one at a bound that is excluded', `${ada},"warmth":0`, '/warmth', 'must be > 0'],
    ['a fraction for an integer', `${ada},"times":1.5`, '/times', 'must be integer'],
    ['a number in a string', `${ada},"times":"1"`, '/times', 'must be integer'],
    ['one that is not in the list', `${ada},"style":"rude"`, '/style', expect.stringContaining('"formal", "friendly"')],
    ['too many items', `${ada},"tags":["a","b","c","d"]`, '/tags', 'must NOT have more than 3 items'],
    ['an item of the wrong type', `${ada},"tags":["a",["b"]]`, '/tags/1', 'must be string'],
    ['an unknown member deep inside', `${ada},"address":{"zip":1}`, '/address/zip', anyDetail],
    ['a secret that is too short', `${ada},"token":"short"`, '/token', 'must NOT have fewer than 8 characters'],
  ])(
    'with a wrong variable (%s) is refused: it does not fit the schema of its workflow',
    async (_, text, pointer, detail) => {
      await expectRefused({ body: variables(text) }, [at(`/variableData${pointer}`, detail)])
    },
  )

  test.each([65, 5_000, 500_000])('that is nested %i levels deep is refused', async (depth) => {
    const pointer = `/variableData/nested/x${'/0'.repeat(61)}`
    await expectRefused({ path: 'betray', body: nested(depth) }, [
      at(pointer, 'must not be nested more than 64 levels deep'),
    ])
  })

  test('that is nested 64 levels deep is accepted', async () => {
    await expectQueued({ path: 'betray', body: nested(64) })
  })

  test('with a byte order mark before the JSON is accepted', async () => {
    await expectQueued({ body: `\uFEFF${good}` })
  })

  test('with any character that I-JSON has is kept as it is', async () => {
    const name = '\u0001\u007f\u2028\u{1F4A1}\uFFFF\\"'
    const answer = await expectQueued({ body: JSON.stringify({ variableData: { name } }) })
    expect(JSON.parse(answer.text).variableData.name).toBe(name)
  })

  test('with many wrong members is refused for the first 20 of them', async () => {
    const many = Array.from({ length: 1000 }, (_, index) => `"v${index}":${index}`).join(',')
    const request = queueRequest(await service.createAccount(), { body: variables(many) })
    const answer = await unstored(service.executionUrl, request)
    expectProblem(queueRemoteRun, answer, { ...invalid, errors: expect.any(Array) })
    expect(JSON.parse(answer.text).errors).toHaveLength(20)
  })

  test.each([
    variables('"token":"canary"'),
    variables('"name":"canary","token":"canary"').slice(1),
    '"canary"',
    'canary',
  ])('%s is not quoted by the answer that refuses it', async (body) => {
    const answer = await unstored(service.executionUrl, queueRequest(await service.createAccount(), { body }))
    expect(answer.status).toBe(400)
    expect(answer.text).not.toContain('canary')
  })
})

describe('a body of another kind', () => {
  test.each(unsupportedKinds)('%s is refused with 415', async (_, headers) => {
    const request = queueRequest(await service.createAccount(), { headers, body: good })
    const title = 'Unsupported media type'
    const problem = { kind: 'unsupported-media-type', title, status: 415 }
    expectProblem(queueRemoteRun, await unstored(service.executionUrl, request), problem)
  })

  test.each<[method: string, path: string, surface: 'execution' | 'browserContext']>([
    ['GET', '/v1/execution/runs', 'execution'],
    ['GET', '/v1/execution/workflows/greet', 'execution'],
    ['POST', '/v1/execution/runs/0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07/cancel', 'execution'],
    ['GET', '/alpha/browser-contexts', 'browserContext'],
    ['DELETE', '/alpha/browser-contexts/0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07', 'browserContext'],
  ])('that %s %s does not take is refused', async (method, path, surface) => {
    const account = await service.createAccount()
    const headers = [...Object.entries(credential({ surface }, account.key)).flat(), ...json]
    const url = surface === 'execution' ? service.executionUrl : service.browserContextUrl
    for (const chunked of [false, true]) {
      const answer = await unstored(url, { method, path, headers, body: '{}', chunked })
      expectProblem(undefined, answer, { ...invalid, errors: [at('', 'This operation takes no body.')] })
    }
  })
})
