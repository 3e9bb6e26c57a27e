/** Sends one request to each of two servers, and reduces a response to what callers depend on. */
import { Agent } from 'node:http'
import { expect } from 'vitest'
import { mockKeys, validKey } from '../../src/tools/mock/mock-keys.ts'
import {
  type DocumentedOperation,
  expectDocumented,
  type ReceivedResponse,
  type Surface,
  scopes,
} from '../operations/document.ts'
import { type RawRequest, sendRaw, sendText } from '../operations/raw-http.ts'
import { credential, validRequest } from '../operations/requests.ts'
import type { TestAccount, TestService } from '../support/service.ts'

/** A server for which a test creates what its requests need. */
export type Reference = Pick<TestService, 'executionUrl' | 'browserContextUrl' | 'createAccount' | 'change'>

export type KeyName = 'good' | 'scoped' | 'scopeless' | 'expired' | 'unknown'
export type Keys = Record<KeyName, string>

/** The parts of a valid request. */
export interface Base {
  surface: Surface
  method: string
  template: string
  /** Values of path parameters, percent-encoded. */
  path: Record<string, string>
  query: string[]
  headers: string[]
  contentType: string[]
  body?: string | Buffer
  chunked?: boolean
  credential: KeyName | ((keys: Keys) => string[])
  keys: Keys
}

export function toRawRequest({
  surface,
  method,
  template,
  path,
  query,
  headers,
  contentType,
  body,
  chunked,
  ...rest
}: Base): RawRequest {
  const { credential: source, keys } = rest
  const sent = typeof source === 'string' ? Object.entries(credential({ surface }, keys[source])).flat() : source(keys)
  const filled = template.replaceAll(/\{([^}]+)\}/g, (_, name: string) => path[name] ?? '')
  return {
    method,
    path: query.length > 0 ? `${filled}?${query.join('&')}` : filled,
    headers: [...sent, ...headers, ...contentType],
    ...(body !== undefined && { body }),
    ...(chunked && { chunked }),
  }
}

const findMockKey = (status: number) => mockKeys.find((each) => each.status === status)?.value ?? ''

export const mockKeySet: Keys = {
  good: validKey.value,
  scoped: validKey.value,
  scopeless: findMockKey(403),
  expired: findMockKey(401),
  unknown: '3b8f3a52-6f0e-4d57-9e43-5b1f6a0f2c11',
}

export interface Caller {
  account: TestAccount
  keys: Keys
}

/** Creates an account with a key of each kind for the operation. */
export async function createCaller(service: Reference, operation: DocumentedOperation): Promise<Caller> {
  const account = await service.createAccount()
  const createKey = async (options: { scopes?: string[]; expiresAt?: number }) =>
    (await account.createKey(options)).value
  const keys = {
    good: account.key,
    scoped: await createKey({ scopes: operation.scopes }),
    scopeless: await createKey({ scopes: scopes.filter((scope) => !operation.scopes.includes(scope)) }),
    expired: await createKey({ expiresAt: Date.now() - 1 }),
    unknown: crypto.randomUUID(),
  }
  return { account, keys }
}

/** Creates a valid request and the resources that it needs. */
export async function createBase(service: Reference, operation: DocumentedOperation, caller: Caller): Promise<Base> {
  const { id, surface, method, path: template } = operation
  // An earlier request may have used the name.
  await service.change('UPDATE browser_contexts SET name = id')
  const { path: sent, headers, body: sentBody } = await validRequest(service, id, caller.account)
  // The workflow of the documents' examples instead of the one that other tests use.
  const [path = '', query] = sent.replace('/greet', '/count-words').split('?')
  if (id === 'createRunToken') await renameRun(service, sentBody, operation)
  const [example] = Object.values(operation.body ?? {}).map((each) => JSON.stringify(each))
  // The workflow of the example is not deployed.
  const body = id === 'setSignIn' ? String(sentBody) : example
  const names = [...template.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name as string)
  const values = new RegExp(`^${template.replaceAll(/\{[^}]+\}/g, '([^/]+)')}$`).exec(path)?.slice(1) ?? []
  return {
    surface,
    method,
    template,
    path: Object.fromEntries(names.map((name, index) => [name, values[index] as string])),
    query: query === undefined ? [] : query.split('&'),
    headers: [],
    contentType: 'Content-Type' in headers ? ['Content-Type', 'application/json'] : [],
    ...(body !== undefined && { body }),
    credential: 'good',
    keys: caller.keys,
  }
}

/** The document's examples name a run, which exists in the mock. */
async function renameRun({ change }: Reference, body: unknown, operation: DocumentedOperation): Promise<void> {
  const [example] = Object.values(operation.body ?? {}) as { runId: string }[]
  const { runId } = JSON.parse(String(body)) as { runId: string }
  await change('DELETE FROM runs WHERE id = ?', example?.runId ?? '')
  await change('UPDATE runs SET id = ? WHERE id = ?', example?.runId ?? '', runId)
}

/**
 * Opening a connection for each request took a third of the time. Idle connections are closed before a server closes them, which
 * would reset a request that was sent at that moment.
 */
const agent = new Agent({ keepAlive: true, timeout: 2000 })

export function sendRequest(url: string, request: RawRequest | string): Promise<ReceivedResponse> {
  return typeof request === 'string' ? sendText(url, request) : sendRaw(url, request, agent)
}

/** The parts of a response on which a caller's code depends. */
export interface Outcome {
  status: number
  mediaType: string
  /** Names and values, sorted, without transport headers and ids. */
  headers: string[]
  /** Of a problem. */
  type?: string
  detail?: string
  /** Of a problem: the invalid members as JSON, sorted. */
  errors?: string[]
  /** How the response violates the document. */
  violation?: string
}

const transportHeaders = [
  'connection',
  'keep-alive',
  'date',
  'content-length',
  'transfer-encoding',
  'vary',
  'x-powered-by',
]

export function toOutcome(operation: DocumentedOperation | undefined, response: ReceivedResponse): Outcome {
  const { status, headers, text } = response
  const names = Object.keys(headers).filter((name) => !transportHeaders.includes(name))
  const outcome = {
    status,
    mediaType: String(headers['content-type'] ?? ''),
    headers: names.map((name) => `${name}: ${headerValue(name, headers[name])}`).sort(),
    ...validate(operation, response),
  }
  if (!outcome.mediaType.startsWith('application/problem+json') || text === '') return outcome
  const { type, detail: written, errors } = JSON.parse(text)
  // Versions of workflows of remote workers depend on the account.
  const detail = written?.replaceAll(/\([0-9a-f]{12}, and not [0-9a-f]{12}\)/g, '(…)')
  const members = errors?.map((error: object) => JSON.stringify(error)).sort()
  return { ...outcome, type, detail, ...(members && { errors: members }) }
}

/** Settings of references. Leases of attempts do not end while a request waits for half a minute. */
export const referenceSettings = {
  // The examples have a rule that sends emails.
  ...{ SMTP_URL: 'smtp://127.0.0.1:1', SMTP_FROM: 'service@shop.example' },
  LEASE_SECONDS: '300',
}

/** Removes ids, entity tags and what is left of a rate limit, which differ in every response. */
function headerValue(name: string, value: unknown): string {
  if (name === 'ratelimit') return String(value).replaceAll(/\d+/g, '…')
  return ['x-request-id', 'etag'].includes(name)
    ? '…'
    : String(value).replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{64}/g, '…')
}

function validate(operation: DocumentedOperation | undefined, response: ReceivedResponse): { violation?: string } {
  try {
    if (operation) expectDocumented(operation, response)
    const { type, requestId } =
      response.headers['content-type'] === 'application/problem+json' && response.text ? JSON.parse(response.text) : {}
    if (type) expect(requestId).toBe(response.headers['x-request-id'])
    return {}
  } catch (error) {
    return { violation: (error as Error).message.slice(0, 200) }
  }
}
