/** Tests updateBrowserContext by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { expectInvalid } from './guards.ts'
import { testInvalidNames } from './request-tests.ts'
import { createContext, send } from './requests.ts'

describeOperation(
  'updateBrowserContext',
  { worker: false },
  {
    200(subject) {
      test('renames a context and changes nothing else', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account, 'Before') }
        const before = await send(subject.service, 'getBrowserContext', account.key, { path })
        const { body } = await subject.call(account.key, { path, body: { name: 'After' } })
        expect(body).toEqual({ ...before.body, name: 'After', updatedAt: body.updatedAt })
        expect(Date.parse(body.updatedAt)).toBeGreaterThanOrEqual(Date.parse(body.createdAt))
        const after = await send(subject.service, 'getBrowserContext', account.key, { path })
        expect(after.body).toEqual(body)
      })

      test('a context may keep its name, and its previous name becomes free', async () => {
        const account = await subject.service.createAccount()
        const path = { browserContextId: await createContext(subject.service, account, 'Shop') }
        await subject.call(account.key, { path, body: { name: 'Shop' } })
        await subject.call(account.key, { path, body: { name: 'Other' } })
        await createContext(subject.service, account, 'Shop')
      })
    },
    400(subject) {
      testInvalidNames(subject)

      test('requires a body with a name', async () => {
        const { body: _, ...nothing } = (await subject.caller()).request
        await expectInvalid(subject, () => nothing, [{ pointer: '', detail: 'is required' }])
        const errors = [{ pointer: '/name', detail: 'is required' }]
        await expectInvalid(subject, (request) => ({ ...request, body: '{}' }), errors)
      })
    },
    409(subject) {
      test('refuses the name of another context of the account', async () => {
        const account = await subject.service.createAccount()
        await createContext(subject.service, account, 'Taken')
        const path = { browserContextId: await createContext(subject.service, account, 'Mine') }
        const response = await subject.call(account.key, { path, body: { name: 'Taken' } })
        expectProblem(subject.operation, response, {
          kind: 'name-taken',
          title: 'Name taken',
          status: 409,
          errors: [{ pointer: '/name', detail: 'is taken' }],
        })
        const after = await send(subject.service, 'getBrowserContext', account.key, { path })
        expect(after.body.name).toBe('Mine')
      })
    },
  },
)
