/** Serves the document about books, and calls it with an HTTP client or byte by byte. */
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Express } from 'express'
import pino from 'pino'
import { onTestFinished } from 'vitest'
import type { UntypedHandler } from '../../src/contract/exchange.ts'
import { type Listener, type ListenOptions, listen } from '../../src/contract/listener.ts'
import { mountDocument } from '../../src/contract/mount.ts'
import type { Authenticate, Intercept } from '../../src/contract/stages.ts'
import type { TenantLimits } from '../../src/contract/tenant-limits.ts'
import { library } from './library.ts'

export const goodKey = '3b8f3a52-6f0e-4d57-9e43-5b1f6a0f2c11'
export const readerKey = '9d0c2f0e-97a3-4a61-8a51-0d6d2f4f9a01'

/** The header with the valid key. */
export const key: [string, string] = ['Authorization', `Bearer ${goodKey}`]
export const jsonType: [string, string] = ['Content-Type', 'application/json']

/** Handlers with valid responses. */
export function handlers(): Record<string, UntypedHandler> {
  return {
    listBooks: async () => ({ status: 200, body: [{ title: 'A' }] }),
    openBook: async () => ({ status: 204 }),
    getBest: async () => ({ status: 200, body: { title: 'Best' } }),
    getBook: async () => ({ status: 200, body: { title: 'A' } }),
    putBook: async () => ({ status: 201, headers: { Location: '/books/a' }, body: { title: 'A' } }),
    deleteBook: async () => ({ status: 204 }),
    readBook: async () => ({ status: 200, events: (async function* () {})() }),
  }
}

/** `goodKey` has all scopes, `readerKey` the scope to read; any other key is invalid. */
export const authenticate: Authenticate<{ name: string }> = async (value) => {
  if (value === goodKey) return { principal: { name: 'good' }, scopes: null }
  return value === readerKey ? { principal: { name: 'reader' }, scopes: ['books:read'] } : undefined
}

export class Down extends Error {}

interface Options {
  document?: object
  handlers?: Record<string, UntypedHandler>
  authenticate?: Authenticate<{ name: string }>
  refusesMismatches?: boolean
  countMismatch?: () => void
  observe?(operationId: string, method: string, status: number, seconds: number): void
  limits?: ListenOptions['limits']
  tenantLimits?: TenantLimits
  origins?: readonly string[]
  warm?: readonly never[]
  intercept?: Intercept
}

export interface Served {
  app: Express
  listener: Listener
  port: number
  logged: Record<string, unknown>[]
  /** Sends with the valid key unless headers are given; headers may repeat. */
  call(method: string, path: string, request?: Sent): Promise<Called>
  /** Sends the bytes unchanged, and resolves with everything received before the connection closes. */
  send(bytes: string | Buffer): Promise<string>
}

export interface Sent {
  headers?: [string, string][]
  body?: string | Buffer
}

export interface Called {
  status: number
  headers: Record<string, string | undefined>
  text: string
  json: ReturnType<typeof JSON.parse>
}

export async function mount(options: Options = {}) {
  const logged: Record<string, unknown>[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => logged.push(JSON.parse(line)) })
  const app = await mountDocument({
    name: 'the library',
    realm: 'library',
    document: options.document ?? library(),
    handlers: { ...handlers(), ...options.handlers } as object,
    authenticate: options.authenticate ?? authenticate,
    isUnavailable: (error) => error instanceof Down,
    refusesMismatches: options.refusesMismatches ?? true,
    countMismatch: options.countMismatch,
    describe: ({ name }) => ({ reader: name }),
    log,
    origins: options.origins,
    warm: options.warm ?? [],
    intercept: options.intercept,
    ...(options.observe && { observe: options.observe }),
    ...(options.tenantLimits && { tenants: { limits: options.tenantLimits, nameOf: ({ name }) => name } }),
  })
  return { app, logged }
}

export async function serve(options: Options = {}): Promise<Served> {
  const { app, logged } = await mount(options)
  const { limits = {} } = options
  const listener = await listen(app, { host: '127.0.0.1', port: 0, name: 'LIBRARY_PORT', limits })
  onTestFinished(() => listener.stop(0))
  const port = Number(new URL(listener.url).port)
  return {
    app,
    listener,
    port,
    logged,
    call: (method, path, more) => call(port, method, path, more),
    send: (bytes) => send(port, bytes),
  }
}

async function call(port: number, method: string, path: string, { headers = [key], body }: Sent = {}): Promise<Called> {
  const host: [string, string] = ['Host', 'library']
  const sent = httpRequest({ port, method, path, agent: false, headers: [host, ...headers].flat() })
  const arrived = new Promise<IncomingMessage>((resolve, reject) => sent.on('response', resolve).on('error', reject))
  sent.end(body)
  const response = await arrived
  const received = await text(response)
  const isJson = response.headers['content-type']?.endsWith('json') ?? false
  return {
    status: response.statusCode ?? 0,
    headers: response.headers as Called['headers'],
    text: received,
    json: isJson && received ? JSON.parse(received) : undefined,
  }
}

function send(port: number, bytes: string | Buffer): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(bytes)
  return text(socket)
}
