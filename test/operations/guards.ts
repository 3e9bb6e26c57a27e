/**
 * What the stages of a request do before any operation does anything, as checks that fit every operation. `matrix.test.ts`
 * runs each on each operation of the documents, so that an operation that is added is checked without a line of its own.
 */
import { expect } from 'vitest'
import { requestsPerMinute, storageQuotaMegabytes, type TestAccount } from '../support/service.ts'
import type { Subject } from './describe-operation.ts'
import { type DocumentedOperation, expectProblem, operationOf, scopes } from './document.ts'
import { addressOf, createContext, credential, type SentRequest, send, sendRequest } from './requests.ts'

export interface Guard {
  status: number
  /** The guarantee; the title of the test. */
  title: string
  /** `false`: the file of the operation tests the status, because its rule is one of its own. */
  fits?(operation: DocumentedOperation): boolean
  check(subject: Subject): Promise<void>
}

/** Runs the check for each variant; an error names the variant. */
async function forEach<Variant>(
  variants: readonly Variant[],
  check: (variant: Variant) => Promise<void>,
  name: (variant: Variant) => unknown = (variant) => variant,
): Promise<void> {
  for (const variant of variants)
    try {
      await check(variant)
    } catch (error) {
      if (error instanceof Error) error.message = `${JSON.stringify(name(variant))}: ${error.message}`
      throw error
    }
}

type Headers = SentRequest['headers']

const withHeaders = (request: SentRequest, headers: Headers): SentRequest => ({
  ...request,
  headers: { ...request.headers, ...headers },
})

/** Sends the request of a new caller, altered, and requires success. */
async function expectAccepted(subject: Subject, alter: (request: SentRequest) => SentRequest): Promise<void> {
  const { request } = await subject.caller()
  const { status, text } = await sendRequest(addressOf(subject.service, subject.operation), alter(request))
  expect(status, text).toBeLessThan(300)
}

// 400

const invalid = { kind: 'invalid-request', title: 'Invalid request', status: 400 }

/** Sends the altered request; fails unless the response is 400 with exactly these errors. */
export async function expectInvalid(
  subject: Subject,
  change: (request: SentRequest) => SentRequest,
  errors: unknown,
): Promise<void> {
  const { request } = await subject.refusedCaller()
  expectProblem(subject.operation, await subject.send(change(request)), { ...invalid, errors })
}

const unknownParameter: Guard = {
  status: 400,
  title: 'refuses a query parameter that the document lacks',
  check: (subject) =>
    expectInvalid(
      subject,
      (request) => ({ ...request, path: `${request.path}${request.path.includes('?') ? '&' : '?'}colour=red` }),
      [{ parameter: 'colour', detail: 'is not a parameter of this operation' }],
    ),
}

const unexpectedBody: Guard = {
  status: 400,
  title: 'refuses a body where the document has none',
  fits: ({ body }) => !body,
  check: (subject) =>
    expectInvalid(
      subject,
      (request) => ({ ...withHeaders(request, { 'Content-Type': 'application/json' }), body: '{}' }),
      [{ pointer: '', detail: 'This operation takes no body.' }],
    ),
}

const wrongIdsOf: Record<string, string[]> = {
  workflowId: ['a%20b', 'a%2Fb', 'ä', 'a'.repeat(129)],
  name: ['1', 'shop_token', '$-', 'A'.repeat(65), '..%2FA', '_A'],
}

/** The first parameter of the path. */
const idOf = ({ parameters }: DocumentedOperation) => parameters.find((parameter) => parameter.in === 'path')?.name

const malformedId: Guard = {
  status: 400,
  title: 'refuses an id of another form, and names the parameter',
  fits: (operation) => idOf(operation) !== undefined,
  async check(subject) {
    const { operation } = subject
    const id = idOf(operation) as string
    const segment = operation.path.split('/').indexOf(`{${id}}`)
    // `$` is replaced by a valid id.
    await forEach(wrongIdsOf[id] ?? ['1', 'urn:uuid:$', '$0', '{$}'], async (wrong) => {
      const { request } = await subject.refusedCaller()
      const [path = '', query] = request.path.split('?')
      const segments = path.split('/')
      segments[segment] = wrong.replace('$', segments[segment] as string)
      const response = await subject.send({ ...request, path: segments.join('/') + (query ? `?${query}` : '') })
      expectProblem(operation, response, { ...invalid, errors: expect.any(Array) })
      for (const error of response.body.errors) expect(error).toEqual({ parameter: id, detail: expect.any(String) })
    })
  },
}

// 401

type Good = { header: string; value: string; key: string }

/** Replacements of a valid credential; `good` is the header with the caller's own key. */
const badCredentials: [what: string, headers: (good: Good) => Headers][] = [
  ['no key', () => ({})],
  ['an empty header', ({ header }) => ({ [header]: '' })],
  ['a key that is not a UUID', ({ header, value }) => ({ [header]: `${value}0` })],
  ['a key with braces around it', ({ header, value, key }) => ({ [header]: value.replace(key, `{${key}}`) })],
  ['a key as urn:uuid', ({ header, value, key }) => ({ [header]: value.replace(key, `urn:uuid:${key}`) })],
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

const challenges = {
  execution: 'Bearer realm="execution-service"',
  browserContext: 'ApiKey realm="execution-service", header="x-service-api-key"',
}

/** Requires the one response that every invalid credential gets. */
async function expectUnauthorized(subject: Subject, request: SentRequest): Promise<void> {
  const response = await subject.send(request)
  expect(response.text).toBe('Unauthorized')
  expect(response.headers).toEqual({
    'x-request-id': expect.any(String),
    'x-content-type-options': 'nosniff',
    'x-document-hash': expect.any(String),
    'cache-control': 'no-store',
    'content-type': 'text/plain',
    'content-length': '12',
    'www-authenticate': challenges[subject.operation.surface],
    date: expect.any(String),
    connection: expect.any(String),
  })
}

const withoutCredential = ({ headers, ...rest }: SentRequest): SentRequest => {
  const { Authorization: _, 'x-service-api-key': __, ...others } = headers
  return { ...rest, headers: others }
}

const badCredential: Guard = {
  status: 401,
  title: 'refuses every bad credential, and says nothing of what is wrong with it',
  async check(subject) {
    const { operation } = subject
    await forEach(
      badCredentials,
      async ([, headersOf]) => {
        const { account, request } = await subject.refusedCaller()
        const [[header, value] = ['', '']] = Object.entries(credential(operation, account.key))
        const headers = headersOf({ header, value, key: account.key })
        await expectUnauthorized(subject, withHeaders(withoutCredential(request), headers))
      },
      ([what]) => what,
    )
    const { account, request } = await subject.refusedCaller()
    const other = operation.surface === 'execution' ? 'browserContext' : 'execution'
    const swapped = credential({ surface: other }, account.key)
    await expectUnauthorized(subject, withHeaders(withoutCredential(request), swapped))
  },
}

const endedKey: Guard = {
  status: 401,
  title: 'refuses a deleted and an expired key like one that never existed',
  async check(subject) {
    const { account, request } = await subject.refusedCaller()
    const deleted = await account.createKey()
    await account.deleteKey(deleted.id)
    const expired = await account.createKey({ expiresAt: Date.now() - 1 })
    for (const { value } of [deleted, expired])
      await expectUnauthorized(subject, withHeaders(request, credential(subject.operation, value)))
  },
}

const credentialFirst: Guard = {
  status: 401,
  title: 'checks the credential before everything else in the request',
  async check(subject) {
    const { request } = await subject.refusedCaller()
    const wrong = { Accept: 'image/png', 'Content-Type': 'text/plain' }
    await expectUnauthorized(subject, {
      ...withHeaders(withoutCredential(request), wrong),
      path: `${request.path}?unknown=1`,
      ...(subject.operation.method !== 'GET' && { body: '{' }),
    })
  },
}

// 403

const missingScope: Guard = {
  status: 403,
  title: 'refuses a key with all scopes except those of the operation',
  async check(subject) {
    const { operation } = subject
    const { account, request } = await subject.refusedCaller()
    const others = scopes.filter((scope) => !operation.scopes.includes(scope))
    const { id, value } = await account.createKey({ scopes: others })
    const response = await subject.send(withHeaders(request, credential(operation, value)))
    await account.deleteKey(id)
    expect(response.text).toBe('Forbidden')
    expect(response.headers['www-authenticate']).toBeUndefined()
  },
}

const sufficientScope: Guard = {
  status: 403,
  title: 'accepts a key with only the scopes of the operation, and refuses one with none',
  async check(subject) {
    const { operation, service } = subject
    const { account, request } = await subject.caller()
    // Not by another key: a worker is there for the key that has registered it only.
    const setScopes = (to: string[]) =>
      service.change('UPDATE api_keys SET scopes = ? WHERE account_id = ?', JSON.stringify(to), account.id)
    await setScopes([])
    await subject.send(request)
    await setScopes(operation.scopes)
    const { status, text } = await sendRequest(addressOf(service, operation), request)
    expect(status, text).toBeLessThan(300)
  },
}

// 404

const unknownResource: Guard = {
  status: 404,
  title: 'does not find a resource that does not exist, and names its kind as the document does',
  // two-accounts.slow.test.ts requires the same response for resources of other accounts.
  fits: (operation) => ![undefined, 'workflowId'].includes(idOf(operation)),
  async check(subject) {
    const [[, , example] = []] = subject.operation.responses.get(404)?.examples ?? []
    const { detail } = example as { detail: string }
    const { request } = await subject.refusedCaller()
    const path = request.path
      .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/, crypto.randomUUID())
      .replace(/[0-9a-f]{64}/, '0'.repeat(64))
      .replace(/SHOP_[A-Z]+/, 'MISSING')
    expectProblem(subject.operation, await subject.send({ ...request, path }), {
      kind: 'not-found',
      title: 'Not found',
      status: 404,
      detail,
    })
  },
}

// 406

const notAcceptable: Guard = {
  status: 406,
  title: 'refuses an Accept that excludes every media type of its successful responses, and takes any other',
  async check(subject) {
    const successes = [...subject.operation.responses].filter(([status]) => status < 300)
    const types = [...new Set(successes.flatMap(([, { schemas }]) => Object.keys(schemas)))]
    const detail = `This operation responds with ${types.join(' or ')}.`
    const problem = { kind: 'not-acceptable', title: 'Not acceptable', status: 406, detail }
    await forEach(['image/gif', 'text/html, application/xml;q=0.9', `${types[0]};q=0`], async (accept) => {
      const { request } = await subject.refusedCaller()
      expectProblem(subject.operation, await subject.send(withHeaders(request, { Accept: accept })), problem)
    })
    const wildcard = types[0]?.replace(/\/.*/, '/*') as string
    await forEach(['*/*', wildcard, `image/png, ${types[0]};q=0.1`], (accept) =>
      expectAccepted(subject, (request) => withHeaders(request, { Accept: accept })),
    )
  },
}

// 413, 415

const takesJson = ({ bodySchema }: DocumentedOperation) => bodySchema !== undefined

const contentTooLarge: Guard = {
  status: 413,
  title: 'refuses a body of one byte more than it may have, and closes the connection',
  fits: takesJson,
  async check(subject) {
    const { bodyBytesMax } = subject.operation
    const padded = (request: SentRequest, bytes: number) => ({ ...request, body: String(request.body).padEnd(bytes) })
    const { request } = await subject.refusedCaller()
    const response = await subject.send(padded(request, bodyBytesMax + 1))
    expectProblem(subject.operation, response, {
      kind: 'content-too-large',
      title: 'Content too large',
      status: 413,
      detail: `The body may have at most ${bodyBytesMax} bytes.`,
    })
    expect(response.headers.connection).toBe('close')
    await expectAccepted(subject, (accepted) => padded(accepted, bodyBytesMax))
  },
}

const unsupportedMediaType: Guard = {
  status: 415,
  title: 'refuses a body of another media type, in another charset, or with a content coding',
  fits: takesJson,
  async check(subject) {
    const unsupported: Headers[] = [
      { 'Content-Type': 'text/plain' },
      { 'Content-Type': 'application/x-www-form-urlencoded' },
      { 'Content-Type': 'application/merge-patch+json' },
      { 'Content-Type': 'application/json; charset=iso-8859-1' },
      { 'Content-Type': 'json' },
      { 'Content-Encoding': 'gzip' },
    ]
    await forEach(unsupported, async (headers) => {
      const { request } = await subject.refusedCaller()
      expectProblem(subject.operation, await subject.send(withHeaders(request, headers)), {
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
    await forEach(supported, (headers) => expectAccepted(subject, (request) => withHeaders(request, headers)))
  },
}

// 429

/** Sends requests with the key to both APIs until one is refused. */
async function exhaustRateLimit(subject: Subject, key: string): Promise<void> {
  for (let count = 0; count <= requestsPerMinute; count++) {
    const operation = operationOf(count % 2 === 0 ? 'listWorkflows' : 'listBrowserContexts')
    // 406 is the cheapest response after the rate limit.
    const headers = { ...credential(operation, key), Accept: 'image/png' }
    const { status } = await fetch(addressOf(subject.service, operation) + operation.path, { headers })
    if (status === 429) return
    expect(status).toBe(406)
  }
  throw new Error(`A key made more than ${requestsPerMinute} requests.`)
}

const rateLimited: Guard = {
  status: 429,
  title: 'refuses a key over its rate limit, says when to retry, and does not refuse another key of the account',
  async check(subject) {
    const { account, request } = await subject.caller()
    await exhaustRateLimit(subject, account.key)
    const response = await subject.send(request)
    const seconds = Number(response.headers['retry-after'])
    expect(seconds).toBeGreaterThan(0)
    expect(seconds).toBeLessThanOrEqual(60)
    expectProblem(subject.operation, response, {
      kind: 'rate-limited',
      title: 'Too many requests',
      status: 429,
      detail: `The limit is ${requestsPerMinute} requests in 60 seconds. Try again in ${seconds} second${seconds === 1 ? '' : 's'}.`,
    })
    expect(response.headers).toMatchObject({
      ratelimit: `"api-key";r=0;t=${seconds}`,
      'ratelimit-policy': `"api-key";q=${requestsPerMinute};w=60`,
    })
    const { value } = await account.createKey()
    const other = withHeaders(request, credential(subject.operation, value))
    const { status } = await sendRequest(addressOf(subject.service, subject.operation), other)
    // 404 on a worker of the first key.
    expect(status, 'with another key of the account').toBeLessThan(429)
  },
}

// 500, 503

/** A table that the operation needs; operations on workflows read only that of API keys. */
const tablesOfTags: Record<string, string> = {
  Runs: 'runs',
  Workflows: 'api_keys',
  'Browser contexts': 'browser_contexts',
  'Storage state': 'browser_contexts',
  'Sign-in': 'context_sign_ins',
  Deployments: 'deployment_activations',
  Schedules: 'schedules',
  Waits: 'run_waits',
  Webhooks: 'webhook_endpoints',
  Notifications: 'notification_rules',
  Workers: 'workers',
  Files: 'files',
  'Secrets and settings': 'account_values',
  Usage: 'run_usage',
}

function tableOf({ id, tag }: DocumentedOperation): string {
  if (/bulk/i.test(id)) return 'bulk_actions'
  const table = id === 'getDeploymentBundle' ? 'deployments' : tablesOfTags[tag]
  if (!table) throw new Error(`Add the tag ${tag} to tablesOfTags.`)
  return table
}

const internalError: Guard = {
  status: 500,
  title: 'reveals only the request id of an error, which the log has',
  async check(subject) {
    const { operation, service } = subject
    const table = tableOf(operation)
    const { request } = await subject.caller()
    const rename = (from: string, to: string) => service.change(`ALTER TABLE ${from} RENAME TO ${to}`)
    await rename(table, 'renamed')
    const response = await subject.send(request).finally(() => rename('renamed', table))
    expectProblem(operation, response, {
      kind: 'internal-error',
      title: 'Internal error',
      status: 500,
      detail: 'The service failed. Report the request id.',
    })
    const { requestId } = response.body
    const lines = service.log.filter((line) => line.requestId === requestId && Number(line.level) >= 50)
    const message = expect.stringMatching(new RegExp(`^(no such table: ${table}|relation "${table}" does not exist)$`))
    expect(lines).toMatchObject([{ operationId: operation.id, err: { message } }])
    const again = await sendRequest(addressOf(service, operation), request)
    expect(again.status, again.text).toBeLessThan(300)
  },
}

const unavailable: Guard = {
  status: 503,
  title: 'responds with 503 while the store is unreadable, not with 401, and serves the request afterwards',
  async check(subject) {
    const { operation, service } = subject
    const { request } = await subject.caller()
    const unknownKey = withHeaders(request, credential(operation, crypto.randomUUID()))
    await service.whileUnreadable(async () => {
      const response = await subject.send(request)
      expectProblem(operation, response, {
        kind: 'unavailable',
        title: 'Unavailable',
        status: 503,
        detail: 'The store is unavailable. Try again.',
      })
      expect(response.headers['retry-after']).toBe('1')
      await subject.send(unknownKey)
    })
    const again = await sendRequest(addressOf(service, operation), request)
    expect(again.status, again.text).toBeLessThan(300)
  },
}

// 507

/** Stores as much as the account may, in a browser context. */
export async function fillStorage({ service }: Subject, account: TestAccount): Promise<void> {
  const path = { browserContextId: await createContext(service, account) }
  // Its row counts, too.
  const body = { cookies: [], origins: [], filler: 'x'.repeat(storageQuotaMegabytes * 1024 * 1024 - 100) }
  await send(service, 'putStorageState', account.key, { path, body }).expect(204)
}

const storageQuota: Guard = {
  status: 507,
  title: 'refuses an account that has reached its storage quota, and no other',
  fits: ({ id }) => id !== 'createFile',
  async check(subject) {
    const { account, request } = await subject.caller()
    await fillStorage(subject, account)
    expectProblem(subject.operation, await subject.send(request), {
      kind: 'storage-quota-exceeded',
      title: 'Storage quota exceeded',
      status: 507,
      detail: `This account has reached its storage quota of ${storageQuotaMegabytes} MB. Delete runs, files or browser contexts, or wait until their retention ends. Nothing was stored.`,
    })
    await expectAccepted(subject, (other) => other)
  },
}

const guards: readonly Guard[] = [
  unknownParameter,
  unexpectedBody,
  malformedId,
  badCredential,
  endedKey,
  credentialFirst,
  missingScope,
  sufficientScope,
  unknownResource,
  notAcceptable,
  contentTooLarge,
  unsupportedMediaType,
  rateLimited,
  internalError,
  unavailable,
  storageQuota,
]

/** The guards of the statuses that the document has for the operation. */
export function guardsOf(operation: DocumentedOperation): Guard[] {
  return guards.filter(({ status, fits }) => operation.responses.has(status) && (fits?.(operation) ?? true))
}
