/** What the compiler accepts; `npm run check` holds these as much as `npm test` does. */
import { expectTypeOf, test } from 'vitest'
import type { BrowserContextAlphaHandlers } from '../../generated/browser-context.alpha/server.ts'
import type { ExecutionV1Handlers } from '../../generated/execution.v1/server.ts'
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
