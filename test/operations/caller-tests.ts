/** The blocks of 401, 403 and 404 that are the same for every operation: who calls it. */
import { expect, test } from 'vitest'
import type { Subject } from './describe-operation.ts'
import { expectProblem, scopes } from './document.ts'
import { addressOf, credential, type SentRequest, sendRequest } from './requests.ts'

type Headers = Record<string, string | string[]>

/** Replacements of a valid credential; `good` is the header with the caller's own key. */
const badCredentials: [what: string, headers: (good: { header: string; value: string; key: string }) => Headers][] = [
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

/** 401: the response is the same for every invalid credential. */
export function testUnauthorized(subject: Subject): void {
  const { operation } = subject
  const challenge = {
    execution: 'Bearer realm="execution-service"',
    browserContext: 'ApiKey realm="execution-service", header="x-service-api-key"',
  }[operation.surface]

  const refused = async (request: SentRequest) => {
    const response = await subject.send(request)
    expect(response.text).toBe('Unauthorized')
    expect(response.headers).toEqual({
      'x-request-id': expect.any(String),
      'x-content-type-options': 'nosniff',
      'x-document-hash': expect.any(String),
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

  test.each(badCredentials)('refuses %s without saying what is wrong', async (_, headersOf) => {
    const { account, request } = await subject.refusedCaller()
    const [[header, value] = ['', '']] = Object.entries(credential(operation, account.key))
    const rest = withoutCredential(request)
    await refused({ ...rest, headers: { ...rest.headers, ...headersOf({ header, value, key: account.key }) } })
  })

  test('refuses a valid key in the header of the other API', async () => {
    const { account, request } = await subject.refusedCaller()
    const other = operation.surface === 'execution' ? 'browserContext' : 'execution'
    const rest = withoutCredential(request)
    await refused({ ...rest, headers: { ...rest.headers, ...credential({ surface: other }, account.key) } })
  })

  test('refuses a deleted key like one that never existed', async () => {
    const { account, request } = await subject.refusedCaller()
    const { id, value } = await account.createKey()
    await account.deleteKey(id)
    await refused({ ...request, headers: { ...request.headers, ...credential(operation, value) } })
  })

  test('refuses an expired key like one that never existed', async () => {
    const { account, request } = await subject.refusedCaller()
    const { value } = await account.createKey({ expiresAt: Date.now() - 1 })
    await refused({ ...request, headers: { ...request.headers, ...credential(operation, value) } })
  })

  test('checks the credential before everything else in the request', async () => {
    const { request } = await subject.refusedCaller()
    const rest = withoutCredential(request)
    const wrong = { Accept: 'image/png', 'Content-Type': 'text/plain' }
    const body = operation.method === 'GET' ? {} : { body: '{' }
    await refused({ ...rest, path: `${request.path}?unknown=1`, headers: { ...rest.headers, ...wrong }, ...body })
  })
}

/** 403: a key needs the scopes of the operation, and no others. */
export function testForbidden(subject: Subject): void {
  const { operation } = subject

  test('refuses a key with all scopes except those of the operation', async () => {
    const { account, request } = await subject.refusedCaller()
    const others = scopes.filter((scope) => !operation.scopes.includes(scope))
    const { value } = await account.createKey({ scopes: others })
    const response = await subject.send({
      ...request,
      headers: { ...request.headers, ...credential(operation, value) },
    })
    expect(response.text).toBe('Forbidden')
    expect(response.headers['www-authenticate']).toBeUndefined()
  })

  test('accepts a key with only the scopes of the operation', async () => {
    const { account, request } = await subject.caller()
    // Not by another key: a worker is there for the key that has registered it only.
    await subject.service.change(
      'UPDATE api_keys SET scopes = ? WHERE account_id = ?',
      JSON.stringify(operation.scopes),
      account.id,
    )
    const { status } = await sendRequest(addressOf(subject.service, operation), request)
    expect(status).toBeLessThan(300)
  })
}

/** 404: a resource that does not exist. two-accounts.slow.test.ts requires the same response for resources of other accounts. */
export function testNotFound(subject: Subject): void {
  const { id, tag } = subject.operation
  const nouns: Record<string, string> = {
    Runs: 'run',
    Deployments: 'deployment',
    Schedules: 'schedule',
    Waits: 'run',
    Webhooks: 'webhook endpoint',
    Notifications: 'notification rule',
    Workers: 'run',
  }
  const nested: Record<string, string> = {
    getRunArtifact: 'artifact',
    getFile: 'file',
    deleteFile: 'file',
    redeliverWebhook: 'webhook delivery',
    getBulkAction: 'bulk action',
    getDeploymentBundle: 'deployment',
    deleteWorker: 'worker',
    deleteSecret: 'secret',
    deleteSetting: 'setting',
    claimRuns: 'worker',
    renewLeases: 'worker',
  }
  const noun = nested[id] ?? nouns[tag] ?? 'browser context'
  const notFound = { kind: 'not-found', title: 'Not found', status: 404, detail: `No such ${noun} in this account.` }

  test(`does not find a ${noun} that does not exist`, async () => {
    const { request } = await subject.refusedCaller()
    const path = request.path
      .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/, crypto.randomUUID())
      .replace(/[0-9a-f]{64}/, '0'.repeat(64))
      .replace(/SHOP_[A-Z]+/, 'MISSING')
    expectProblem(subject.operation, await subject.send({ ...request, path }), notFound)
  })
}
