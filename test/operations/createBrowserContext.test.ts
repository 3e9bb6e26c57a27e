/** Tests createBrowserContext by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { expectInvalid } from './guards.ts'
import { testInvalidNames } from './request-tests.ts'
import { send } from './requests.ts'

describeOperation(
  'createBrowserContext',
  { worker: false },
  {
    201(subject) {
      test('creates a context with the given name and returns its location', async () => {
        const { key } = await subject.service.createAccount()
        const { body, headers } = await subject.call(key, { body: { name: 'Shop, signed in' } })
        expect(body).toMatchObject({ name: 'Shop, signed in', updatedAt: body.createdAt })
        expect(headers.location).toBe(`/alpha/browser-contexts/${body.id}`)
        const read = await send(subject.service, 'getBrowserContext', key, { path: { browserContextId: body.id } })
        expect(read.body).toEqual(body)
      })

      test.each([
        ['without a body and without a Content-Type', {}],
        [
          'with a Content-Type and no body, as in the specification',
          { headers: { 'Content-Type': 'application/json' } },
        ],
        ['with a body without a name', { body: {} }],
      ])('derives the name from the id %s', async (_, filled) => {
        const { key } = await subject.service.createAccount()
        const { body } = await subject.call(key, filled)
        expect(body.name).toBe(`context-${body.id.slice(-12)}`)
      })

      test.each(['x'.repeat(100), '日本語', 'a  b', '💡', '.', "'; DROP TABLE browser_contexts; --"])(
        'keeps the name %s unchanged',
        async (name) => {
          const { key } = await subject.service.createAccount()
          const { body } = await subject.call(key, { body: { name } })
          expect(body.name).toBe(name)
        },
      )
    },
    400(subject) {
      testInvalidNames(subject)

      test('refuses an undocumented member', async () => {
        const errors = [{ pointer: '/colour', detail: 'is not a documented member' }]
        await expectInvalid(subject, (request) => ({ ...request, body: '{"name":"a","colour":"red"}' }), errors)
      })
    },
    409(subject) {
      const conflict = {
        kind: 'name-taken',
        title: 'Name taken',
        status: 409,
        detail: 'The account already has a browser context with this name. Nothing was stored.',
        errors: [{ pointer: '/name', detail: 'is taken' }],
      }

      test('refuses a name that the account already uses', async () => {
        const { key } = await subject.service.createAccount()
        await send(subject.service, 'createBrowserContext', key, { body: { name: 'Shop' } }).expect(201)
        expectProblem(subject.operation, await subject.call(key, { body: { name: 'Shop' } }), conflict)
        const listed = await send(subject.service, 'listBrowserContexts', key)
        expect(listed.body.data).toHaveLength(1)
      })

      test('concurrent requests with the same name create one context', async () => {
        const { key } = await subject.service.createAccount()
        const create = () => send(subject.service, 'createBrowserContext', key, { body: { name: 'Shop' } })
        const statuses = (await Promise.all(Array.from({ length: 20 }, create))).map(({ status }) => status)
        expect(statuses.filter((status) => status === 201)).toHaveLength(1)
        expect(statuses.filter((status) => status === 409)).toHaveLength(19)
      })
    },
  },
)
