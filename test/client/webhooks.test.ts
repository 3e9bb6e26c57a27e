/** `verifyWebhook` accepts what the library of the Standard Webhooks specification signs, and nothing else. */
import express from 'express'
import { Webhook } from 'standardwebhooks'
import request from 'supertest'
import { expect, test } from 'vitest'
import { verifyWebhook, WebhookVerificationError } from '../../src/client/index.ts'

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const other = `whsec_${Buffer.alloc(32, 8).toString('base64')}`
const body = '{"type":"run.succeeded","timestamp":"2026-11-20T09:30:00.021Z","data":{"tags":["ü 💡"]}}'

function sign(keys: readonly string[], at = new Date()): Record<string, string> {
  return {
    'webhook-id': 'id',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': keys.map((key) => new Webhook(key).sign('id', at, body)).join(' '),
  }
}

test('accepts a signature with the secret, also one of several, in either kind of headers', async () => {
  expect(await verifyWebhook(body, sign([secret]), secret)).toEqual(JSON.parse(body))
  expect(await verifyWebhook(body, new Headers(sign([other, secret])), secret)).toEqual(JSON.parse(body))
})

test.each<[what: string, body: string, headers: Record<string, string>]>([
  ['another secret', body, sign([other])],
  ['a changed body', body.replace('succeeded', 'failed'), sign([secret])],
  ['another id', body, { ...sign([secret]), 'webhook-id': 'other' }],
  ['a signature of another version', body, { ...sign([secret]), 'webhook-signature': 'v2,AAAA' }],
  ['no headers', body, {}],
  ['an old request', body, sign([secret], new Date(Date.now() - 301_000))],
  ['a request from the future', body, sign([secret], new Date(Date.now() + 302_000))],
])('refuses %s', async (_, received, headers) => {
  await expect(verifyWebhook(received, headers, secret)).rejects.toThrow(WebhookVerificationError)
})

test('verifies the text and headers that express passes, as in the example of the README', async () => {
  const app = express()
  app.post('/hooks', express.text({ type: 'application/json' }), async (received, response) => {
    const event = await verifyWebhook(received.body, received.headers, secret).catch(() => undefined)
    response.sendStatus(event?.type === 'run.succeeded' ? 204 : 400)
  })
  const post = (key: string) =>
    request(app)
      .post('/hooks')
      .type('json')
      .set(sign([key]))
      .send(body)
  expect((await post(secret)).status).toBe(204)
  expect((await post(other)).status).toBe(400)
})
