/** Invalid bodies get the documented response, and nothing is stored. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from '../support/service.ts'
import { expectProblem, operationOf } from './document.ts'
import { anyDetail, at, buildQueueRequest, good, invalid, json, refusalHelpers } from './expect-refused.ts'
import {
  absentBodies,
  nested,
  notJson,
  notUtf8,
  refusedJson,
  unsupportedBodies,
  variables,
  withMember,
} from './malformed-requests.ts'
import { sendRaw } from './raw-http.ts'
import { credential } from './requests.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ worker: false })
})
afterAll(() => service.stop())

const queueRemoteRun = operationOf('queueRemoteRun')
const { sendUnstored, expectRefused, expectQueued } = refusalHelpers(() => service)

describe('a body', () => {
  test.each(absentBodies)('%s is refused: it is required', async (_, request) => {
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

  test.each(refusedJson)('with %s is refused: it breaks the JSON rules', async (_, body, pointer, detail) => {
    await expectRefused({ body }, [at(pointer as string, detail)])
  })

  test.each([
    ['another member', withMember('"note":1'), '/note', 'is not a documented member'],
    ['a member with a slash in its name', withMember('"a/b~c":1'), '/a~1b~0c', 'is not a documented member'],
    ['no variableData', '{}', '/variableData', 'is required'],
    ['variableData that is null', '{"variableData":null}', '/variableData', 'must be object'],
    ['variableData that is a list', '{"variableData":[]}', '/variableData', 'must be object'],
    ['variableData as JSON in a string', '{"variableData":"{}"}', '/variableData', 'must be object'],
  ])('with %s is refused by the schema of the document', async (_, body, pointer, detail) => {
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
  ])('with an invalid variable (%s) is refused by the schema of the workflow', async (_, text, pointer, detail) => {
    await expectRefused({ body: variables(text) }, [at(`/variableData${pointer}`, detail)])
  })

  test.each([
    ['{}', 124_999],
    ['[]', 124_999],
    ['0', 249_999],
    ['","', 249_999],
  ])('with more than 250,000 values is refused: %s', async (value, accepted) => {
    const items = (count: number) => `[${Array(count).fill(value).join(',')}]`
    await expectRefused({ body: items(accepted) }, [at('', 'must be object')])
    await expectRefused({ body: items(accepted + 1) }, [at('', 'must not have more than 250000 values')])
  })

  test.each([65, 5_000])('that is nested %i levels deep is refused', async (depth) => {
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

  test('keeps every character of I-JSON', async () => {
    const name = '\u0001\u007f\u2028\u{1F4A1}\uFFFF\\"'
    const response = await expectQueued({ body: JSON.stringify({ variableData: { name } }) })
    expect(JSON.parse(response.text).variableData.name).toBe(name)
  })

  test('keeps every integer, so that one Idempotency-Key never stands for two', async () => {
    const account = await service.createAccount()
    const headers = [...json, 'Idempotency-Key', 'order']
    const queue = (orderId: string) => {
      const body = variables(`"token":"very secret","fails":true,"nested":{"orderId":${orderId}}`)
      const request = buildQueueRequest(account, { path: 'betray', headers, body })
      return sendRaw(service.executionUrl, request)
    }
    const queued = await queue('9007199254740992')
    expect(queued.text).toContain('"orderId":9007199254740992')
    expect((await queue('9007199254740993')).status).toBe(400)
    expect((await queue('9007199254740994')).status).toBe(409)
  })

  test('with many errors is refused with the first 20', async () => {
    const many = Array.from({ length: 1000 }, (_, index) => `"v${index}":${index}`).join(',')
    const request = buildQueueRequest(await service.createAccount(), { body: variables(many) })
    const response = await sendUnstored(service.executionUrl, request)
    expectProblem(queueRemoteRun, response, { ...invalid, errors: expect.any(Array) })
    expect(JSON.parse(response.text).errors).toHaveLength(20)
  })

  test.each([
    variables('"token":"canary"'),
    variables('"name":"canary","token":"canary"').slice(1),
    '"canary"',
    'canary',
  ])('%s is not quoted in the refusal', async (body) => {
    const response = await sendUnstored(
      service.executionUrl,
      buildQueueRequest(await service.createAccount(), { body }),
    )
    expect(response.status).toBe(400)
    expect(response.text).not.toContain('canary')
  })
})

describe('a body of another media type', () => {
  test.each(unsupportedBodies)('%s is refused with 415', async (_, headers) => {
    const request = buildQueueRequest(await service.createAccount(), { headers, body: good })
    const title = 'Unsupported media type'
    const problem = { kind: 'unsupported-media-type', title, status: 415 }
    expectProblem(queueRemoteRun, await sendUnstored(service.executionUrl, request), problem)
  })

  test.each<[method: string, path: string, surface: 'execution' | 'browserContext']>([
    ['GET', '/v1/execution/runs', 'execution'],
    ['GET', '/v1/execution/workflows/greet', 'execution'],
    ['POST', '/v1/execution/runs/0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07/cancel', 'execution'],
    ['GET', '/alpha/browser-contexts', 'browserContext'],
    ['DELETE', '/alpha/browser-contexts/0198f2c5-7a10-7c3e-9d51-2f6b8a4e1c07', 'browserContext'],
  ])('is refused by %s %s, which takes none', async (method, path, surface) => {
    const account = await service.createAccount()
    const headers = [...Object.entries(credential({ surface }, account.key)).flat(), ...json]
    const url = surface === 'execution' ? service.executionUrl : service.browserContextUrl
    for (const chunked of [false, true]) {
      const response = await sendUnstored(url, { method, path, headers, body: '{}', chunked })
      expectProblem(undefined, response, { ...invalid, errors: [at('', 'This operation takes no body.')] })
    }
  })
})
