/** The blocks of the statuses that are alike for every operation: each is written once, here, and used by every file. */
import { expect, test } from 'vitest'
import { expectProblem, scopes } from './document.ts'
import type { Subject } from './operation.ts'
import { addressOf, credential, type SentRequest, sendRequest } from './requests.ts'

const bodyBytesMax = 1024 * 1024

type Headers = Record<string, string | string[]>

/** What stands in the place of a good credential. `good` is the header with the caller's own key. */
const badCredentials: [what: string, headers: (good: { header: string; value: string; key: string }) => Headers][] = [
  ['no key', () => ({})],
  ['an empty header', ({ header }) => ({ [header]: '' })],
  ['a key that is no UUID', ({ header, value }) => ({ [header]: `${value}0` })],
  ['a key with braces around it', ({ header, value, key }) => ({ [header]: value.replace(key, `{${key}}`) })],
  ['a key in the form urn:uuid', ({ header, value, key }) => ({ [header]: value.replace(key, `urn:uuid:${key}`) })],
  ['a key that does not exist', ({ header, value, key }) => ({ [header]: value.replace(key, crypto.randomUUID()) })],
  ['the key in Basic authentication', ({ key }) => ({ Authorization: `Basic ${btoa(`${key}:`)}` })],
  ['the same key twice', ({ header, value }) => ({ [header]: [value, value] })],
  [
    'the key and another one',
    ({ header, value, key }) => ({ [header]: [value, value.replace(key, crypto.randomUUID())] }),
  ],
  [
    'another key and the key',
    ({ header, value, key }) => ({ [header]: [value.replace(key, crypto.randomUUID()), value] }),
  ],
]

/** 401: whatever is wrong with the credential, the answer is the same. */
export function refusesBadCredentials(subject: Subject): void {
  const { operation } = subject
  const challenge = {
    execution: 'Bearer realm="execution-service"',
    browserContext: 'ApiKey realm="execution-service", header="x-service-api-key"',
  }[operation.surface]

  const refused = async (request: SentRequest) => {
    const answer = await subject.answered(request)
    expect(answer.text).toBe('Unauthorized')
    expect(answer.headers).toEqual({
      'x-request-id': expect.any(String),
      'cache-control': 'no-store',
      'content-type': 'text/plain',
      'content-length': '12',
      'www-authenticate': challenge,
      date: expect.any(String),
      connection: expect.any(String),
    })
  }
  const withoutCredential = ({ headers, ...rest }: SentRequest): SentRequest => {
    const { Authorization: _, 'x-service-api-key': __, ...others } = headers
    return { ...rest, headers: others }
  }

  test.each(badCredentials)('refuses %s, and does not say what is wrong', async (_, headersOf) => {
    const { account, request } = await subject.caller()
    const [[header, value] = ['', '']] = Object.entries(credential(operation, account.key))
    const rest = withoutCredential(request)
    await refused({ ...rest, headers: { ...rest.headers, ...headersOf({ header, value, key: account.key }) } })
  })

  test('refuses a good key in the header of the other surface', async () => {
    const { account, request } = await subject.caller()
    const other = operation.surface === 'execution' ? 'browserContext' : 'execution'
    const rest = withoutCredential(request)
    await refused({ ...rest, headers: { ...rest.headers, ...credential({ surface: other }, account.key) } })
  })

  test('refuses a deleted key as it refuses one that never existed', async () => {
    const { account, request } = await subject.caller()
    const { id, value } = await account.createKey()
    await account.deleteKey(id)
    await refused({ ...request, headers: { ...request.headers, ...credential(operation, value) } })
  })

  test('refuses an expired key as it refuses one that never existed', async () => {
    const { account, request } = await subject.caller()
    const { value } = await account.createKey({ expiresAt: Date.now() - 1 })
    await refused({ ...request, headers: { ...request.headers, ...credential(operation, value) } })
  })

  test('refuses a bad credential before it looks at anything else of the request', async () => {
    const { request } = await subject.caller()
    const rest = withoutCredential(request)
    const wrong = { Accept: 'image/png', 'Content-Type': 'text/plain' }
    const body = operation.method === 'GET' ? {} : { body: '{' }
    await refused({ ...rest, path: `${request.path}?unknown=1`, headers: { ...rest.headers, ...wrong }, ...body })
  })
}

/** 403: a key needs every scope of the operation, and no other. */
export function refusesOtherScopes(subject: Subject): void {
  const { operation } = subject

  test('refuses a key that has every scope but those that the operation needs', async () => {
    const { account, request } = await subject.caller()
    const others = scopes.filter((scope) => !operation.scopes.includes(scope))
    const { value } = await account.createKey({ scopes: others })
    const answer = await subject.answered({
      ...request,
      headers: { ...request.headers, ...credential(operation, value) },
    })
    expect(answer.text).toBe('Forbidden')
    expect(answer.headers['www-authenticate']).toBeUndefined()
  })

  test('accepts a key that has the scopes that the operation needs, and no other', async () => {
    const { account, request } = await subject.caller()
    const { value } = await account.createKey({ scopes: operation.scopes })
    const headers = { ...request.headers, ...credential(operation, value) }
    const { status } = await sendRequest(addressOf(subject.service, operation), { ...request, headers })
    expect(status).toBeLessThan(300)
  })
}

const invalid = { kind: 'invalid-request', title: 'Invalid request', status: 400 }

/** Sends what the caller's request becomes; it must be refused with 400 and exactly these members at fault. */
export async function expectInvalid(
  subject: Subject,
  change: (request: SentRequest) => SentRequest,
  errors: unknown[],
): Promise<void> {
  const { request } = await subject.caller()
  const answer = await subject.answered(change(request))
  expectProblem(subject.operation, answer, { ...invalid, errors })
}

/** 400: what no operation takes; what one takes in particular is in its own file. */
export function refusesWhatIsNotDocumented(subject: Subject): void {
  const { operation } = subject

  test('refuses a query parameter that the document does not have', async () => {
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
  if (id) refusesMalformedIds(subject, id)
}

function refusesMalformedIds(subject: Subject, id: string): void {
  const { operation } = subject
  // `$` stands for a good one.
  const wrongIds = id === 'workflowId' ? ['a%20b', 'a%2Fb', 'ä', 'a'.repeat(129)] : ['1', 'urn:uuid:$', '$0', '{$}']

  test.each(wrongIds)('refuses the id %s', async (wrong) => {
    const { request } = await subject.caller()
    const segment = operation.path.split('/').indexOf(`{${id}}`)
    const [path = '', query] = request.path.split('?')
    const segments = path.split('/')
    segments[segment] = wrong.replace('$', segments[segment] as string)
    const answer = await subject.answered({ ...request, path: segments.join('/') + (query ? `?${query}` : '') })
    expectProblem(operation, answer, { ...invalid, errors: expect.any(Array) })
    for (const error of answer.body.errors) expect(error).toEqual({ parameter: id, detail: expect.any(String) })
  })
}

/** Names that break a rule, and the rule. */
const wrongNames: [what: string, name: unknown, detail: string][] = [
  ['an empty name', '', 'must NOT have fewer than 1 characters'],
  ['a name of 101 characters', 'a'.repeat(101), 'must NOT have more than 100 characters'],
  ['a space at the start', ' a', 'must match pattern'],
  ['a space at the end', 'a ', 'must match pattern'],
  ['a line break', 'a\nb', 'must match pattern'],
  ['a number', 7, 'must be string'],
  ['null', null, 'must be string'],
]

/** 400: a name of a browser context that breaks a rule. */
export function refusesWrongNames(subject: Subject): void {
  test.each(wrongNames)('refuses %s', async (_, name, detail) => {
    const errors = [{ pointer: '/name', detail: expect.stringContaining(detail) }]
    const wrong = expect.arrayContaining(errors) as unknown as unknown[]
    await expectInvalid(subject, (request) => ({ ...request, body: JSON.stringify({ name }) }), wrong)
  })
}

/** 404: the resource of another account is not told apart from one that does not exist. */
export function hidesOtherAccounts(subject: Subject): void {
  const noun = subject.operation.tag === 'Runs' ? 'run' : 'browser context'
  const notFound = { kind: 'not-found', title: 'Not found', status: 404, detail: `No such ${noun} in this account.` }

  test(`does not know the ${noun} of another account`, async () => {
    const { request } = await subject.caller()
    const other = await subject.service.createAccount()
    const headers = { ...request.headers, ...credential(subject.operation, other.key) }
    expectProblem(subject.operation, await subject.answered({ ...request, headers }), notFound)
  })

  test(`does not know a ${noun} that does not exist`, async () => {
    const { request } = await subject.caller()
    const path = request.path.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/, crypto.randomUUID())
    expectProblem(subject.operation, await subject.answered({ ...request, path }), notFound)
  })
}

/** 406: an `Accept` that excludes every media type of the operation's success. */
export function refusesOtherMediaTypes(subject: Subject): void {
  const { operation } = subject
  const successes = [...operation.responses].filter(([status]) => status < 300)
  const types = [...new Set(successes.flatMap(([, { schemas }]) => Object.keys(schemas)))]
  const type = types.join(' or ')

  test.each(['image/png', 'text/html, application/xml;q=0.9', `${types[0]};q=0`])(
    'refuses Accept: %s',
    async (accept) => {
      const { request } = await subject.caller()
      const answer = await subject.answered({ ...request, headers: { ...request.headers, Accept: accept } })
      const detail = `This operation answers with ${type}.`
      expectProblem(operation, answer, { kind: 'not-acceptable', title: 'Not acceptable', status: 406, detail })
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

/** 413: a body of more than 1 MiB. */
export function refusesLargeBodies(subject: Subject): void {
  test('refuses a body of one byte more than 1 MiB, and closes the connection', async () => {
    const { request } = await subject.caller()
    const body = `${request.body}${' '.repeat(bodyBytesMax - String(request.body).length)} `
    const answer = await subject.answered({ ...request, body })
    expectProblem(subject.operation, answer, {
      kind: 'content-too-large',
      title: 'Content too large',
      status: 413,
      detail: `The body may have at most ${bodyBytesMax} bytes.`,
    })
    expect(answer.headers.connection).toBe('close')
  })

  test('accepts a body of exactly 1 MiB', async () => {
    const { request } = await subject.caller()
    const body = String(request.body).padEnd(bodyBytesMax)
    const { status } = await sendRequest(addressOf(subject.service, subject.operation), { ...request, body })
    expect(status).toBeLessThan(300)
  })
}

/** 415: a body of another media type, in another charset, or with a content coding. */
export function refusesOtherBodies(subject: Subject): void {
  const unsupported: Headers[] = [
    { 'Content-Type': 'text/plain' },
    { 'Content-Type': 'application/x-www-form-urlencoded' },
    { 'Content-Type': 'application/merge-patch+json' },
    { 'Content-Type': 'application/json; charset=iso-8859-1' },
    { 'Content-Type': 'json' },
    { 'Content-Encoding': 'gzip' },
  ]
  test.each(unsupported)('refuses a body with %o', async (headers) => {
    const { request } = await subject.caller()
    const answer = await subject.answered({ ...request, headers: { ...request.headers, ...headers } })
    expectProblem(subject.operation, answer, {
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

/** The table that the operation cannot do without; those on workflows read only the key's. */
const tables: Record<string, string> = { Runs: 'runs', Workflows: 'api_keys', 'Browser contexts': 'browser_contexts' }

/** 500: the answer says nothing of the inside, the log says all of it, under the same request id. */
export function saysNothingOfFaults(subject: Subject): void {
  const table = tables[subject.operation.tag] as string

  test('says nothing of a fault but the id under which the log has it', async () => {
    const { request } = await subject.caller()
    const { database, log } = subject.service
    const rename = (from: string, to: string) =>
      database.exec(`PRAGMA legacy_alter_table = ON; ALTER TABLE ${from} RENAME TO ${to}`)
    rename(table, 'mislaid')
    let answer: Awaited<ReturnType<Subject['answered']>>
    try {
      answer = await subject.answered(request)
    } finally {
      rename('mislaid', table)
    }
    expectProblem(subject.operation, answer, {
      kind: 'internal-error',
      title: 'Internal error',
      status: 500,
      detail: 'The service failed. Report the request id.',
    })
    const lines = log.filter(({ requestId, level }) => requestId === answer.body.requestId && Number(level) >= 50)
    expect(lines).toMatchObject([{ operationId: subject.operation.id, err: { message: `no such table: ${table}` } }])
    const again = await sendRequest(addressOf(subject.service, subject.operation), request)
    expect(again.status).toBeLessThan(300)
  })
}

/** 503: the store cannot answer now; afterwards the service goes on by itself. */
export function asksToTryAgain(subject: Subject): void {
  test('asks to try again while the store cannot be read, and serves the same request after that', async () => {
    const { request } = await subject.caller()
    const answer = await subject.service.whileUnreadable(() => subject.answered(request))
    expectProblem(subject.operation, answer, {
      kind: 'unavailable',
      title: 'Unavailable',
      status: 503,
      detail: 'The store is unavailable. Try again.',
    })
    expect(answer.headers['retry-after']).toBe('1')
    const again = await sendRequest(addressOf(subject.service, subject.operation), request)
    expect(again.status).toBeLessThan(300)
  })

  test('does not call a key bad that the store cannot be asked for', async () => {
    const { request } = await subject.caller()
    const headers = { ...request.headers, ...credential(subject.operation, crypto.randomUUID()) }
    await subject.service.whileUnreadable(() => subject.answered({ ...request, headers }))
  })
}
