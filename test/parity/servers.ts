/** The servers that are held against each other, and how one request is put to each of them. */
import { Agent } from 'node:http'
import { expect } from 'vitest'
import { mockKeys, validKey } from '../../src/tools/mock/mock-keys.ts'
import {
  type Answer,
  type DocumentedOperation,
  expectDocumented,
  type Surface,
  scopes,
} from '../operations/document.ts'
import { type RawRequest, sendRaw, sendText } from '../operations/http.ts'
import { credential, validRequest } from '../operations/requests.ts'
import type { TestAccount, TestService } from '../support/service.ts'

export type KeyName = 'good' | 'scoped' | 'scopeless' | 'expired' | 'unknown'
export type Keys = Record<KeyName, string>

/** A good request, in parts that can be changed. */
export interface Base {
  surface: Surface
  method: string
  template: string
  /** Values of the path's parameters, percent-encoded. */
  path: Record<string, string>
  query: string[]
  headers: string[]
  contentType: string[]
  body?: string | Buffer
  chunked?: boolean
  credential: KeyName | ((keys: Keys) => string[])
  keys: Keys
}

export function rawOf({
  surface,
  method,
  template,
  path,
  query,
  headers,
  contentType,
  body,
  chunked,
  ...who
}: Base): RawRequest {
  const { credential: which, keys } = who
  const sent = typeof which === 'string' ? Object.entries(credential({ surface }, keys[which])).flat() : which(keys)
  const filled = template.replaceAll(/\{([^}]+)\}/g, (_, name: string) => path[name] ?? '')
  return {
    method,
    path: query.length > 0 ? `${filled}?${query.join('&')}` : filled,
    headers: [...sent, ...headers, ...contentType],
    ...(body !== undefined && { body }),
    ...(chunked && { chunked }),
  }
}

const mockKey = (status: number) => mockKeys.find((each) => each.status === status)?.value ?? ''

export const keysOfMock: Keys = {
  good: validKey.value,
  scoped: validKey.value,
  scopeless: mockKey(403),
  expired: mockKey(401),
  unknown: '3b8f3a52-6f0e-4d57-9e43-5b1f6a0f2c11',
}

export interface Caller {
  account: TestAccount
  keys: Keys
}

/** A caller with a key of each kind for the operation. */
export async function newCaller(service: TestService, operation: DocumentedOperation): Promise<Caller> {
  const account = await service.createAccount()
  const keyWith = async (options: { scopes?: string[]; expiresAt?: number }) => (await account.createKey(options)).value
  const keys = {
    good: account.key,
    scoped: await keyWith({ scopes: operation.scopes }),
    scopeless: await keyWith({ scopes: scopes.filter((scope) => !operation.scopes.includes(scope)) }),
    expired: await keyWith({ expiresAt: Date.now() - 1 }),
    unknown: crypto.randomUUID(),
  }
  return { account, keys }
}

/** A good request of the caller, whose resources exist in the service. */
export async function newBase(service: TestService, operation: DocumentedOperation, caller: Caller): Promise<Base> {
  const { id, surface, method, path: template } = operation
  // The name that the request gives may have been given before.
  await service.change('UPDATE browser_contexts SET name = id')
  const { path: sent, headers } = await validRequest(service, id, caller.account)
  // The workflow of the documents' examples, in the place of the one that other tests use.
  const [path = '', query] = sent.replace('/greet', '/count-words').split('?')
  const [body] = Object.values(operation.body ?? {}).map((example) => JSON.stringify(example))
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

/** Connections that are used again: making one for each request took a third of the time. */
const agent = new Agent({ keepAlive: true })

export function put(url: string, request: RawRequest | string): Promise<Answer> {
  return typeof request === 'string' ? sendText(url, request) : sendRaw(url, request, agent)
}

/** What of an answer a caller's code depends on. */
export interface Outcome {
  status: number
  mediaType: string
  /** Names and values, sorted; without those of the transport, and without ids. */
  headers: string[]
  /** Of a problem: its type, and what it says of this time. */
  type?: string
  detail?: string
  /** Of a problem: the members at fault, and what is wrong with them, sorted. */
  errors?: string[]
  /** Why the answer is not as the document has it; the same for two answers that both are. */
  misfit?: string
}

/** What the transport adds. */
const ofTransport = ['connection', 'keep-alive', 'date', 'content-length', 'transfer-encoding', 'vary', 'x-powered-by']

export function outcomeOf(operation: DocumentedOperation | undefined, answer: Answer): Outcome {
  const { status, headers, text } = answer
  const names = Object.keys(headers).filter((name) => !ofTransport.includes(name))
  const outcome = {
    status,
    mediaType: String(headers['content-type'] ?? ''),
    headers: names.map((name) => `${name}: ${headerValue(name, headers[name])}`).sort(),
    ...misfitOf(operation, answer),
  }
  if (!outcome.mediaType.startsWith('application/problem+json') || text === '') return outcome
  const { type, detail, errors } = JSON.parse(text)
  const told = errors?.map((error: object) => JSON.stringify(error)).sort()
  return { ...outcome, type, detail, ...(told && { errors: told }) }
}

/** Without what is another one in each answer. */
function headerValue(name: string, value: unknown): string {
  return name === 'x-request-id' ? '…' : String(value).replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '…')
}

function misfitOf(operation: DocumentedOperation | undefined, answer: Answer): { misfit?: string } {
  try {
    if (operation) expectDocumented(operation, answer)
    const { type, requestId } =
      answer.headers['content-type'] === 'application/problem+json' && answer.text ? JSON.parse(answer.text) : {}
    if (type) expect(requestId).toBe(answer.headers['x-request-id'])
    return {}
  } catch (error) {
    return { misfit: (error as Error).message.slice(0, 200) }
  }
}
