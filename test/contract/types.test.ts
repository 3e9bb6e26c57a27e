/** What the compiler accepts; `npm run check` holds these as much as `npm test` does. */
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

test('the handlers that are generated for a document can be mounted, with their own principal only', () => {
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

/** As openapi-typescript writes an answer of files, which has a schema for some media types and none for others. */
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

test('an answer of files takes bytes and a documented media type, and nothing else', () => {
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
    // @ts-expect-error: JSON is given as bytes, too.
    async () => ({ status: 200, headers, body: '' }),
    // @ts-expect-error: this answer has no bytes.
    async () => ({ status: 202, bytes, mediaType: 'application/json' }),
  ]
  expectTypeOf(scans).toBeArray()
})
