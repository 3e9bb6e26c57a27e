/** The blocks of 400, 406, 413 and 415 that are the same for every operation: what is wrong with a request. */
import { expect, test } from 'vitest'
import type { Subject } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { addressOf, type SentRequest, sendRequest } from './requests.ts'

type Headers = SentRequest['headers']

const invalid = { kind: 'invalid-request', title: 'Invalid request', status: 400 }

/** Sends the altered request; fails unless the response is 400 with exactly these errors. */
export async function expectInvalid(
  subject: Subject,
  change: (request: SentRequest) => SentRequest,
  errors: unknown[],
): Promise<void> {
  const { request } = await subject.refusedCaller()
  const response = await subject.send(change(request))
  expectProblem(subject.operation, response, { ...invalid, errors })
}

/** 400: requests that no operation accepts. */
export function testInvalidRequest(subject: Subject): void {
  const { operation } = subject

  test('refuses an undocumented query parameter', async () => {
    const join = (path: string) => (path.includes('?') ? '&' : '?')
    const withUnknown = (request: SentRequest) => ({
      ...request,
      path: `${request.path}${join(request.path)}colour=red`,
    })
    const errors = [{ parameter: 'colour', detail: 'is not a parameter of this operation' }]
    await expectInvalid(subject, withUnknown, errors)
  })

  if (!operation.body) {
    test('refuses a body', async () => {
      const headers = { 'Content-Type': 'application/json' }
      const withBody = (request: SentRequest) => ({
        ...request,
        headers: { ...request.headers, ...headers },
        body: '{}',
      })
      await expectInvalid(subject, withBody, [{ pointer: '', detail: 'This operation takes no body.' }])
    })
  }

  const id = operation.parameters.find((parameter) => parameter.in === 'path')?.name
  if (id) testMalformedIds(subject, id)
}

const wrongNamesOfValues = ['1', 'shop_token', '$-', 'A'.repeat(65), '..%2FA', '_A']
const wrongIdsOf: Record<string, string[]> = {
  workflowId: ['a%20b', 'a%2Fb', 'ä', 'a'.repeat(129)],
  name: wrongNamesOfValues,
}

function testMalformedIds(subject: Subject, id: string): void {
  const { operation } = subject
  // `$` is replaced by a valid id.
  const wrongIds = wrongIdsOf[id] ?? ['1', 'urn:uuid:$', '$0', '{$}']

  test.each(wrongIds)('refuses the id %s', async (wrong) => {
    const { request } = await subject.refusedCaller()
    const segment = operation.path.split('/').indexOf(`{${id}}`)
    const [path = '', query] = request.path.split('?')
    const segments = path.split('/')
    segments[segment] = wrong.replace('$', segments[segment] as string)
    const response = await subject.send({ ...request, path: segments.join('/') + (query ? `?${query}` : '') })
    expectProblem(operation, response, { ...invalid, errors: expect.any(Array) })
    for (const error of response.body.errors) expect(error).toEqual({ parameter: id, detail: expect.any(String) })
  })
}

/** Invalid names, and the error. */
const wrongNames: [what: string, name: unknown, detail: string][] = [
  ['an empty name', '', 'must NOT have fewer than 1 characters'],
  ['a name of 101 characters', 'a'.repeat(101), 'must NOT have more than 100 characters'],
  ['a space at the start', ' a', 'must match pattern'],
  ['a space at the end', 'a ', 'must match pattern'],
  ['a line break', 'a\nb', 'must match pattern'],
  ['a number', 7, 'must be string'],
  ['null', null, 'must be string'],
]

/** 400: an invalid name of a browser context. */
export function testInvalidNames(subject: Subject): void {
  test.each(wrongNames)('refuses %s', async (_, name, detail) => {
    const errors = [{ pointer: '/name', detail: expect.stringContaining(detail) }]
    const wrong = expect.arrayContaining(errors) as unknown as unknown[]
    await expectInvalid(subject, (request) => ({ ...request, body: JSON.stringify({ name }) }), wrong)
  })
}

/** 400: a header that is no list of entity tags. */
export function testInvalidEntityTags(subject: Subject, header: string): void {
  test.each(['no-quotes', '"one" "two"', '"one",', 'w/"one"', '*, "one"', '"ü"'])(
    `refuses ${header}: %s`,
    async (tags) => {
      const value = Buffer.from(tags).toString('latin1')
      const withHeader = (request: SentRequest) => ({ ...request, headers: { ...request.headers, [header]: value } })
      await expectInvalid(subject, withHeader, [{ header, detail: expect.stringContaining('must match pattern') }])
    },
  )
}

/** 406: an `Accept` that excludes every media type of the successful responses. */
export function testNotAcceptable(subject: Subject): void {
  const { operation } = subject
  const successes = [...operation.responses].filter(([status]) => status < 300)
  const types = [...new Set(successes.flatMap(([, { schemas }]) => Object.keys(schemas)))]
  const type = types.join(' or ')

  test.each(['image/gif', 'text/html, application/xml;q=0.9', `${types[0]};q=0`])(
    'refuses Accept: %s',
    async (accept) => {
      const { request } = await subject.refusedCaller()
      const response = await subject.send({ ...request, headers: { ...request.headers, Accept: accept } })
      const detail = `This operation responds with ${type}.`
      expectProblem(operation, response, { kind: 'not-acceptable', title: 'Not acceptable', status: 406, detail })
    },
  )

  const wildcard = types[0]?.replace(/\/.*/, '/*') as string
  test.each(['*/*', wildcard, `image/png, ${types[0]};q=0.1`])('accepts Accept: %s', async (accept) => {
    const { request } = await subject.caller()
    const headers = { ...request.headers, Accept: accept }
    const { status } = await sendRequest(addressOf(subject.service, operation), { ...request, headers })
    expect(status).toBeLessThan(300)
  })
}

/** 413: a body larger than the document allows. */
export function testContentTooLarge(subject: Subject): void {
  const { bodyBytesMax } = subject.operation
  const size = `${bodyBytesMax / 1024 / 1024} MiB`

  test(`refuses a body of one byte more than ${size} and closes the connection`, async () => {
    const { request } = await subject.refusedCaller()
    const body = `${request.body}${' '.repeat(bodyBytesMax - String(request.body).length)} `
    const response = await subject.send({ ...request, body })
    expectProblem(subject.operation, response, {
      kind: 'content-too-large',
      title: 'Content too large',
      status: 413,
      detail: `The body may have at most ${bodyBytesMax} bytes.`,
    })
    expect(response.headers.connection).toBe('close')
  })

  test(`accepts a body of exactly ${size}`, async () => {
    const { request } = await subject.caller()
    const body = String(request.body).padEnd(bodyBytesMax)
    const { status } = await sendRequest(addressOf(subject.service, subject.operation), { ...request, body })
    expect(status).toBeLessThan(300)
  })
}

/** 415: a body of another media type, in another charset, or with a content coding. */
export function testUnsupportedMediaType(subject: Subject): void {
  const unsupported: Headers[] = [
    { 'Content-Type': 'text/plain' },
    { 'Content-Type': 'application/x-www-form-urlencoded' },
    { 'Content-Type': 'application/merge-patch+json' },
    { 'Content-Type': 'application/json; charset=iso-8859-1' },
    { 'Content-Type': 'json' },
    { 'Content-Encoding': 'gzip' },
  ]
  test.each(unsupported)('refuses a body with %o', async (headers) => {
    const { request } = await subject.refusedCaller()
    const response = await subject.send({ ...request, headers: { ...request.headers, ...headers } })
    expectProblem(subject.operation, response, {
      kind: 'unsupported-media-type',
      title: 'Unsupported media type',
      status: 415,
      detail: 'Send the body as application/json, in UTF-8 and without a content coding.',
    })
  })

  const supported: Headers[] = [
    { 'Content-Type': 'application/json; charset=utf-8' },
    { 'Content-Type': 'Application/JSON;charset="UTF-8"' },
    { 'Content-Type': 'application/json; profile=x' },
    { 'Content-Encoding': 'identity' },
  ]
  test.each(supported)('accepts a body with %o', async (headers) => {
    const { request } = await subject.caller()
    const sent = { ...request, headers: { ...request.headers, ...headers } }
    const { status } = await sendRequest(addressOf(subject.service, subject.operation), sent)
    expect(status).toBeLessThan(300)
  })
}
