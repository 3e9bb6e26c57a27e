/** The tab "Webhooks": create, edit, pause, test, redeliver, rotate the secret, delete, with a receiver on this machine. */
import { v7 as uuid } from 'uuid'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type DashboardService, type SignedInUser, signIn, startDashboardService } from '../support/dashboard.ts'
import { fieldError, inputValue, pageText } from '../support/html.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

let dashboard: DashboardService

beforeAll(async () => {
  dashboard = await startDashboardService({ WEBHOOK_PRIVATE_ADDRESSES: '127.0.0.1' })
})

afterAll(() => dashboard.stop())

async function page({ visitor }: SignedInUser, path: string): Promise<string> {
  const response = await visitor.get(path)
  expect(response.status).toBe(200)
  return pageText(response)
}

const secretPattern = /whsec_[A-Za-z0-9+/]{43}=/

/** Creates an endpoint of the receiver by the form. */
async function createEndpoint({ visitor }: SignedInUser, receiver: WebhookReceiver) {
  const form = { id: uuid(), url: receiver.url('/hooks'), event: ['run.failed', 'run.cancelled'] }
  const created = await visitor.post('/webhooks/new', form)
  expect(created.status).toBe(200)
  const [secret = ''] = secretPattern.exec(pageText(created)) ?? []
  receiver.accept('/hooks', { secret })
  return { form, secret, path: `/webhooks/${form.id}` }
}

test('an endpoint is created, and its secret is shown once', async (test) => {
  const ada = await signIn(dashboard)
  expect(await page(ada, '/webhooks')).toContain('No webhook endpoints')
  const receiver = await startWebhookReceiver(test)
  const { form, secret, path } = await createEndpoint(ada, receiver)
  expect(secret).not.toBe('')
  for (const shown of ['/webhooks', path, `${path}/edit`]) expect(await page(ada, shown)).not.toMatch(/whsec_/)
  expect(await page(ada, '/webhooks')).toMatch(/\/hooks failed, cancelled Enabled none 0 0/)
  const again = await ada.visitor.post('/webhooks/new', form)
  expect(again.headers.location).toBe('/webhooks?done=repeated')
  expect(await page(ada, '/webhooks?done=repeated')).toContain('1 of 20 in use')
})

test('a test event is sent and shown with its request and response, and can be sent again', async (test) => {
  const ada = await signIn(dashboard)
  const receiver = await startWebhookReceiver(test)
  const { path } = await createEndpoint(ada, receiver)
  const { headers } = await ada.visitor.post(`${path}/test`)
  const delivery = String(headers.location)
  expect(delivery).toMatch(new RegExp(`^${path}/deliveries/[0-9a-f-]{36}\\?sent$`))
  await expect.poll(() => page(ada, delivery)).toMatch(/Delivered webhook\.test/)
  const text = await page(ada, delivery)
  expect(text).toContain(`POST ${receiver.url('/hooks')}`)
  expect(text).toContain('"type": "webhook.test"')
  expect(text).toContain('Status 204')
  await ada.visitor.post(`${delivery.replace('?sent', '')}/redeliver`)
  await expect.poll(() => page(ada, delivery)).toMatch(/Delivered webhook\.test.* Attempts 2/)
  const received = receiver.received('/hooks')
  expect(received.map(({ event }) => event.type)).toEqual(['webhook.test', 'webhook.test'])
  expect(new Set(received.map(({ id }) => id)).size).toBe(1)
  expect(await page(ada, `${path}?status=delivered`)).toMatch(/Delivered webhook\.test test .* 2 204/)
  expect(await page(ada, `${path}?status=failed`)).toContain('None.')
})

test('all events since a time are delivered again', async (test) => {
  const ada = await signIn(dashboard)
  const receiver = await startWebhookReceiver(test)
  const { path } = await createEndpoint(ada, receiver)
  for (let count = 0; count < 2; count += 1) await ada.visitor.post(`${path}/test`)
  expect(await page(ada, `${path}/redeliver?since=${Date.UTC(2026, 0, 31, 9, 30)}`)).toContain('Redeliver events')
  const refused = await ada.visitor.post(`${path}/redeliver`, { since: 'yesterday', zone: 'UTC', status: '' })
  expect([refused.status, fieldError(refused, 'since')]).toEqual([400, 'Enter a date and a time.'])
  const form = { since: '2026-01-31T09:30', zone: 'UTC', status: '' }
  const { headers } = await ada.visitor.post(`${path}/redeliver`, form)
  expect(headers.location).toBe(`${path}?done=redelivered&count=2`)
  expect(await page(ada, String(headers.location))).toContain('2 events are being sent again.')
  await expect.poll(() => receiver.received('/hooks').length).toBe(4)
  expect(await page(ada, `${path}?done=redelivered&count=1000&next=1`)).toContain('There are more')
})

test('an endpoint is changed, paused and enabled', async (test) => {
  const ada = await signIn(dashboard)
  const { path, form } = await createEndpoint(ada, await startWebhookReceiver(test))
  const edit = await ada.visitor.get(`${path}/edit`)
  expect(inputValue(edit, 'url')).toBe(form.url)
  const change = {
    url: 'https://hooks.example/runs',
    event: 'run.failed',
    workflowIds: 'greet, greet',
    tags: 'a',
  }
  expect((await ada.visitor.post(`${path}/edit`, change)).headers.location).toBe(`${path}?done=changed`)
  expect(await page(ada, path)).toMatch(/Enabled hooks\.example\/runs .* Events run\.failed Workflows greet Tags a/)
  await ada.visitor.post(`${path}/state`, { enabled: 'false' })
  expect(await page(ada, path)).toContain('This endpoint is paused.')
  await ada.visitor.post(`${path}/state`, { enabled: 'true' })
  expect(await page(ada, path)).not.toContain('This endpoint is paused.')
})

test.each([
  [{ url: 'http://93.184.216.34/' }, 'url', 'The URL must start with https: for a public address.'],
  [
    { url: 'https://10.1.2.3/' },
    'url',
    'The URL must have a public address, or one that WEBHOOK_PRIVATE_ADDRESSES allows.',
  ],
  [{ url: 'ftp://hooks.example/' }, 'url', /^Enter an address that begins with https/],
  [{ url: 'https://hooks.example/#part' }, 'url', /without a fragment/],
  [{ workflowIds: 'greet, a/b' }, 'workflowIds', '“a/b” is not a workflow ID.'],
  [{ tags: 'ok, ü' }, 'tags', '“ü” is not a tag.'],
  [{ tags: 'a b c d e f g h i j k' }, 'tags', 'Enter at most 10.'],
])('the form refuses %j and keeps what was entered', async (change, field, error) => {
  const ada = await signIn(dashboard)
  const form = { url: 'https://hooks.example/', event: 'run.failed', workflowIds: '', tags: '', ...change }
  const response = await ada.visitor.post('/webhooks/new', form)
  expect(response.status).toBe(400)
  expect(fieldError(response, field)).toMatch(error)
  expect(inputValue(response, field)).toBe(form[field as keyof typeof form])
})

test('the form refuses no events and unknown ones', async () => {
  const ada = await signIn(dashboard)
  for (const event of [[], ['run.failed', 'run.exploded']]) {
    const response = await ada.visitor.post('/webhooks/new', { url: 'https://hooks.example/', event })
    expect([response.status, pageText(response)]).toEqual([400, expect.stringContaining('Choose at least one')])
  }
})

test('the secret is replaced once by a form that is submitted twice, and requests keep both signatures', async (test) => {
  const ada = await signIn(dashboard)
  const receiver = await startWebhookReceiver(test)
  const { path, secret } = await createEndpoint(ada, receiver)
  const overlapEnd = inputValue(await ada.visitor.get(`${path}/rotate`), 'overlapEnd') ?? ''
  const rotated = await ada.visitor.post(`${path}/rotate`, { overlapEnd })
  const [replaced = ''] = secretPattern.exec(pageText(rotated)) ?? []
  expect(replaced).not.toBe(secret)
  expect((await ada.visitor.post(`${path}/rotate`, { overlapEnd })).headers.location).toBe(`${path}?done=rotated`)
  expect(await page(ada, path)).toContain('Signed with two secrets until')
  for (const accepted of [secret, replaced]) {
    receiver.accept('/hooks', { secret: accepted })
    await ada.visitor.post(`${path}/test`)
    await expect.poll(() => receiver.received('/hooks')).toHaveLength(1)
  }
})

test('every action is recorded in the audit log, without the path of the address', async (test) => {
  const ada = await signIn(dashboard)
  const { path } = await createEndpoint(ada, await startWebhookReceiver(test))
  const { headers } = await ada.visitor.post(`${path}/test`)
  await ada.visitor.post(`${String(headers.location).replace('?sent', '')}/redeliver`)
  await ada.visitor.post(`${path}/edit`, { url: 'https://hooks.example/key', event: 'run.failed' })
  await ada.visitor.post(`${path}/rotate`)
  expect(await page(ada, `${path}/delete`)).toContain('This cannot be undone.')
  expect((await ada.visitor.post(`${path}/delete`)).headers.location).toBe('/webhooks?done=deleted')
  expect((await ada.visitor.get(path)).status).toBe(404)
  const { text } = await ada.visitor.get('/settings/audit-log.jsonl')
  const entries = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const ofWebhooks = entries.filter(({ action }) => action.startsWith('webhookEndpoint.'))
  expect(ofWebhooks.map(({ action, by }) => [action, by.name])).toEqual(
    ['deleted', 'secretRotated', 'changed', 'redelivered', 'tested', 'created'].map((action) => [
      `webhookEndpoint.${action}`,
      'Ada',
    ]),
  )
  expect(JSON.stringify(ofWebhooks)).not.toContain('/key')
})

test('the form says when the account has as many endpoints as it may have', async () => {
  const ada = await signIn(dashboard)
  for (let count = 0; count < 20; count += 1) {
    await ada.visitor.post('/webhooks/new', { url: 'https://hooks.example/', event: 'run.failed' })
  }
  const limit = 'This account has 20 webhook endpoints. Delete one to create another.'
  expect(await page(ada, '/webhooks/new')).toContain(limit)
  const refused = await ada.visitor.post('/webhooks/new', { url: 'https://hooks.example/', event: 'run.failed' })
  expect([refused.status, pageText(refused)]).toEqual([409, expect.stringContaining(limit)])
  expect(await page(ada, '/webhooks')).not.toContain('Create webhook endpoint')
})
