/** What the compiler accepts; `npm run check` verifies it too. */
import { expectTypeOf, test } from 'vitest'
import type { BrowserContextAlphaHandlers } from '../../generated/browser-context.alpha/server.ts'
import type { ExecutionV1Handlers } from '../../generated/execution.v1/server.ts'
import type { Handler } from '../../src/contract/handler.ts'
import { mountDocument } from '../../src/contract/mount.ts'

interface Principal {
  accountId: string
}

interface Options<P> {
  principal: P
}

test('the generated handlers of a document can be mounted only with their own principal', () => {
  const surface = <P>({ principal }: Options<P>) => ({
    name: '',
    realm: '',
    document: {},
    authenticate: async () => ({ principal, scopes: null }),
    isUnavailable: () => false,
    log: undefined as never,
  })
  const mounted = (handlers: ExecutionV1Handlers<Principal>, others: BrowserContextAlphaHandlers<Principal>) => [
    mountDocument({ ...surface({ principal: { accountId: '' } }), handlers }),
    mountDocument({ ...surface({ principal: { accountId: '' } }), handlers: others }),
    // @ts-expect-error: the handlers need an accountId.
    mountDocument({ ...surface({ principal: { name: '' } }), handlers }),
    // @ts-expect-error: a handler is a function.
    mountDocument({ ...surface({ principal: { accountId: '' } }), handlers: { getRun: 1 } }),
  ]
  expectTypeOf(mounted).toBeFunction()
})

/** A response of files as openapi-typescript writes it, with a schema for only some media types. */
interface Scan {
  parameters: object
  responses: {
    200: {
      headers: { 'X-Content-Type-Options': 'nosniff'; [name: string]: unknown }
      content: { 'application/pdf': string; 'image/png': unknown; 'text/plain': string; 'application/json': string }
    }
    202: { headers: { [name: string]: unknown }; content: { 'application/json': { title: string } } }
    404: { headers: { [name: string]: unknown }; content: { 'application/problem+json': unknown } }
  }
}

test('a response of files takes only bytes and a documented media type', () => {
  const bytes = new Uint8Array()
  const headers = { 'X-Content-Type-Options': 'nosniff' } as const
  type Scanning = Handler<Scan, never, Principal>
  const scans: Scanning[] = [
    async () => ({ status: 200, headers, bytes, mediaType: 'application/pdf' }),
    async () => ({ status: 200, headers, bytes: Buffer.from(''), mediaType: 'image/png' }),
    async () => ({ status: 200, headers, bytes, mediaType: 'text/plain' }),
    async () => ({ status: 200, headers, bytes, mediaType: 'application/json' }),
    async () => ({ status: 202, body: { title: '' } }),
    async () => ({ status: 404, problem: { kind: 'not-found', detail: '' } }),
    // @ts-expect-error: the media type is not documented.
    async () => ({ status: 200, headers, bytes, mediaType: 'image/gif' }),
    // @ts-expect-error: the media type is missing.
    async () => ({ status: 200, headers, bytes }),
    // @ts-expect-error: a header is missing.
    async () => ({ status: 200, bytes, mediaType: 'image/png' }),
    // @ts-expect-error: text is not bytes.
    async () => ({ status: 200, headers, bytes: '', mediaType: 'text/plain' }),
    // @ts-expect-error: JSON files are bytes, too.
    async () => ({ status: 200, headers, body: '' }),
    // @ts-expect-error: this response has no bytes.
    async () => ({ status: 202, bytes, mediaType: 'application/json' }),
  ]
  expectTypeOf(scans).toBeArray()
})
