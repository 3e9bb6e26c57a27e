/** Tests createWebhookEndpoint by documented status. */
import { expect, test } from 'vitest'
import { describeOperation } from './describe-operation.ts'
import { expectProblem } from './document.ts'
import { expectInvalid } from './guards.ts'
import { createWebhookEndpoint, send } from './requests.ts'

describeOperation(
  'createWebhookEndpoint',
  { worker: false },
  {
    201(subject) {
      test('creates an endpoint with a secret that only this response contains', async () => {
        const { key } = await subject.service.createAccount()
        const body = {
          url: 'https://localhost/hooks',
          events: ['run.failed'],
          workflowIds: ['greet'],
          tags: ['nightly'],
        }
        const created = await subject.call(key, { body })
        const { secret, ...endpoint } = created.body
        expect(endpoint).toMatchObject({ ...body, enabled: true, disabledReason: null })
        expect(created.headers.location).toBe(`/v1/execution/webhook-endpoints/${endpoint.id}`)
        expect(Buffer.from(secret.slice('whsec_'.length), 'base64')).toHaveLength(32)
        const path = { endpointId: endpoint.id }
        expect((await send(subject.service, 'getWebhookEndpoint', key, { path })).body).toEqual(endpoint)
        const [row] = await subject.service.rows<{ secret: Uint8Array }>(
          'SELECT secret FROM webhook_endpoints WHERE id = ?',
          endpoint.id,
        )
        expect(Buffer.from(row?.secret ?? []).includes(secret.slice(10, 30))).toBe(false)
        expect(JSON.stringify(subject.service.log)).not.toContain(secret)
      })
    },
    400(subject) {
      test.each([
        ['http://127.0.0.1/hooks', 'must have a public address, or one that WEBHOOK_PRIVATE_ADDRESSES allows'],
        ['https://[::ffff:10.0.0.1]/hooks', 'must have a public address, or one that WEBHOOK_PRIVATE_ADDRESSES allows'],
        ['https://169.254.169.254/latest', 'must have a public address, or one that WEBHOOK_PRIVATE_ADDRESSES allows'],
        ['https://user:secret@example.com/', 'must not contain credentials'],
        ['http://93.184.215.14/', 'must start with https: for a public address'],
      ])('refuses the URL %s', async (url, detail) => {
        const body = JSON.stringify({ url, events: ['run.failed'] })
        await expectInvalid(subject, (request) => ({ ...request, body }), [{ pointer: '/url', detail }])
      })

      test('refuses a workflow that the account does not have', async () => {
        const body = JSON.stringify({
          url: 'https://example.com/',
          events: ['run.failed'],
          workflowIds: ['greet', 'gret'],
        })
        const detail = 'is no workflow of this account'
        await expectInvalid(subject, (request) => ({ ...request, body }), [{ pointer: '/workflowIds/1', detail }])
      })

      test('refuses http: where the operator allows no addresses', async () => {
        const body = JSON.stringify({ url: 'http://example.com/', events: ['run.failed'] })
        await expectInvalid(subject, (request) => ({ ...request, body }), [
          { pointer: '/url', detail: 'must start with https:, since WEBHOOK_PRIVATE_ADDRESSES allows no address' },
        ])
      })
    },
    409(subject) {
      test('concurrent requests create 20 endpoints at most', async () => {
        const account = await subject.service.createAccount()
        for (let count = 0; count < 18; count++) await createWebhookEndpoint(subject.service, account)
        const body = { url: 'https://localhost/hooks', events: ['run.failed'] }
        const create = () => send(subject.service, 'createWebhookEndpoint', account.key, { body })
        const statuses = (await Promise.all(Array.from({ length: 10 }, create))).map(({ status }) => status)
        expect(statuses.filter((status) => status === 201)).toHaveLength(2)
        expectProblem(subject.operation, await subject.call(account.key, { body }), {
          kind: 'too-many-webhook-endpoints',
          title: 'Too many webhook endpoints',
          status: 409,
        })
      })
    },
  },
)
