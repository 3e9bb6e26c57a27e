/** The tab "Workflows": the list, the page of a workflow, and the form that queues a run. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Workflow } from '../../src/domain/workflows/workflow.ts'
import { readQueueForm, toQueueRequest } from '../../src/surfaces/dashboard/workflows/queue-form.ts'
import { renderQueueForm } from '../../src/surfaces/dashboard/workflows/queue-form-template.ts'
import { workflow } from '../support/domain.ts'
import { control, fieldError, find, inputValue, pageText } from '../support/html.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { readRuns, readSecrets, type StoredRun, send, sendJson, signInSender } from './queue-form-helpers.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService({ settings: { QUEUED_RUNS_MAX: String(queuedRunsMax) } })
})

afterAll(() => service.stop())

const queuedRunsMax = 20

const greeting = { name: 'Ada', style: '"formal"' }
const secret = 'hunter2hunter2'

describe('a workflow', () => {
  test('is listed, and its page shows limits, output schema and a curl command', async () => {
    const sender = await signInSender(service)
    const list = await sender.visitor.get('/workflows')
    expect(list.text).toContain('href="/workflows/single"')
    const text = pageText(await sender.visitor.get('/workflows/single'))
    expect(text).toContain('Hold alone')
    expect(text).toContain('Version 1.0.0')
    expect(text).toContain('1m per attempt')
    expect(text).toContain('1 at a time')
    expect(text).toContain('Retries none')
    expect(text).toContain(`curl -X PUT ${service.executionUrl}/v1/execution/queue-remote/single`)
    expect(text).toContain('"file": "<file>"')
    expect(text).toContain('{ "type": "string" }')
    expect((await sender.visitor.get('/workflows/none')).status).toBe(404)
    expect((await sender.visitor.post('/workflows/none', {})).status).toBe(404)
  })

  test('has a field for each variable', async () => {
    const sender = await signInSender(service)
    const form = await sender.visitor.get('/workflows/greet')
    const variable = (name: string) => control(form, `variable-${name}`)
    expect(variable('name')).toMatchObject({ type: 'text', required: true })
    expect(variable('times')).toMatchObject({ type: 'number', min: '1', max: '3', step: '1' })
    expect(variable('warmth')).toMatchObject({ type: 'number', step: 'any' })
    expect(variable('style')).toMatchObject({ type: 'select-one' })
    expect(variable('tags')).toMatchObject({ type: 'textarea' })
    expect(variable('address')).toMatchObject({ type: 'textarea' })
    expect(variable('token')).toMatchObject({ type: 'password', value: '', autocomplete: 'new-password' })
    expect(find(form).getByRole<HTMLOptionElement>('option', { name: 'formal' }).value).toBe('"formal"')
  })
})

describe('the queue form', () => {
  test('is refused at the limit of queued runs, and keeps its values', async () => {
    const sender = await signInSender(service)
    const later = { delaySeconds: '3600' }
    const queued = Array.from({ length: queuedRunsMax }, () =>
      sendJson(sender, 'greet', JSON.stringify({ name: 'Ada' }), later),
    )
    expect(new Set((await Promise.all(queued)).map(({ status }) => status))).toEqual(new Set([303]))
    const refused = await send(sender, 'greet', greeting, later)
    expect(refused.status).toBe(429)
    expect(pageText(refused)).toContain('The run was not queued: this account has reached its limit of 20 queued runs.')
    expect(inputValue(refused, 'variable-name')).toBe('Ada')
    expect(await readRuns(sender)).toHaveLength(queuedRunsMax)
  })

  test('queues a run for its user and redirects to it', async () => {
    const sender = await signInSender(service)
    const fields = {
      ...greeting,
      times: '2',
      warmth: '0.5',
      tags: 'a\r\n\r\nb "c"',
      address: '{"city": "London"}',
      token: secret,
    }
    const response = await send(sender, 'greet', fields)
    const [run] = await readRuns(sender)
    expect([response.status, response.headers.location]).toEqual([303, `/runs/${run?.id}`])
    expect(run?.variables).toEqual({
      name: 'Ada',
      times: 2,
      warmth: 0.5,
      style: 'formal',
      tags: ['a', 'b "c"'],
      address: { city: 'London' },
      token: '********',
    })
    expect(run).toMatchObject({ user_id: sender.id, api_key_id: null, priority: 0, delayed: 0 })
    expect(await readSecrets(sender, run as StoredRun)).toEqual({ '/token': secret })
  })

  test('omits empty fields', async () => {
    const sender = await signInSender(service)
    await send(sender, 'greet', { name: 'Ada', times: '', warmth: '', style: '', tags: '', address: '', token: '' })
    expect((await readRuns(sender)).map(({ variables }) => variables)).toEqual([{ name: 'Ada' }])
  })

  test('reports errors at their fields, keeps all values but secrets, and queues nothing', async () => {
    const sender = await signInSender(service)
    const name = 'Ada "<b>" & more than forty characters of it'
    const fields = { name, times: '4', warmth: 'much', style: '', address: '{"city": 1', token: 'hunter2' }
    const unread = await send(sender, 'greet', fields)
    expect(unread.status).toBe(400)
    expect(fieldError(unread, 'variable-warmth')).toBe('Enter a number.')
    expect(fieldError(unread, 'variable-address')).toMatch(/^This is not JSON/)
    const invalid = await send(sender, 'greet', { ...fields, warmth: '0', address: '{"city": 1, "zip": 2}' })
    expect(invalid.status).toBe(400)
    expect(fieldError(invalid, 'variable-name')).toBe('Must NOT have more than 40 characters.')
    expect(fieldError(invalid, 'variable-times')).toBe('Must be <= 3.')
    expect(fieldError(invalid, 'variable-warmth')).toBe('Must be > 0.')
    expect(fieldError(invalid, 'variable-style')).toBeUndefined()
    expect(fieldError(invalid, 'variable-address')).toBe(
      '/address/zip is not in the schema. /address/city must be string.',
    )
    expect(fieldError(invalid, 'variable-token')).toMatch(
      /^Must NOT have fewer than 8 characters\. Enter secrets again/,
    )
    for (const response of [unread, invalid]) {
      expect(inputValue(response, 'variable-name')).toBe(name)
      expect(inputValue(response, 'variable-times')).toBe('4')
      expect(response.text).not.toContain('hunter2')
      expect(control(response, 'variable-token')).toMatchObject({ type: 'password', required: true })
      expect(pageText(response)).toContain('The run was not queued.')
    }
    expect(await readRuns(sender)).toEqual([])
  })

  test('queues one run when submitted twice, even at the same time', async () => {
    const sender = await signInSender(service)
    const form = { key: inputValue(await sender.visitor.get('/workflows/greet'), 'key') ?? '', 'variable-name': 'Ada' }
    const responses = await Promise.all([1, 2, 3].map(() => sender.visitor.post('/workflows/greet', form)))
    const [run, ...others] = await readRuns(sender)
    expect(others).toEqual([])
    expect(responses.map(({ headers }) => headers.location)).toEqual([1, 2, 3].map(() => `/runs/${run?.id}`))
  })

  test('asks for confirmation when changed and submitted again', async () => {
    const sender = await signInSender(service)
    const key = inputValue(await sender.visitor.get('/workflows/greet'), 'key') ?? ''
    await sender.visitor.post('/workflows/greet', { key, 'variable-name': 'Ada' })
    const changed = await sender.visitor.post('/workflows/greet', {
      key,
      'variable-name': 'Grace',
      'variable-token': secret,
    })
    expect(changed.status).toBe(409)
    expect(pageText(changed)).toContain('This form already queued a run')
    expect(inputValue(changed, 'variable-name')).toBe('Grace')
    expect(changed.text).not.toContain(secret)
    expect(await readRuns(sender)).toHaveLength(1)
    const newKey = inputValue(changed, 'key') ?? ''
    expect(newKey).not.toBe(key)
    expect((await sender.visitor.post('/workflows/greet', { key: newKey, 'variable-name': 'Grace' })).status).toBe(303)
    expect((await readRuns(sender)).map(({ variables }) => variables.name)).toEqual(['Ada', 'Grace'])
  })

  test('queues a run with tags, and reports invalid ones at the field', async () => {
    const sender = await signInSender(service)
    expect((await send(sender, 'greet', greeting, { tags: ' customer:42, nightly  nightly' })).status).toBe(303)
    const [run] = await readRuns(sender)
    expect(run).toMatchObject({ tags: '["customer:42","nightly"]' })
    const again = await sender.visitor.get(`/workflows/greet?from=${run?.id}`)
    expect(inputValue(again, 'tags')).toBe('customer:42 nightly')
    for (const [tags, error] of [
      ['a b#c', '“b#c” has other characters than letters, digits and . _ : / @ = -'],
      ['a b c d e f g h i j k', 'Enter at most 10 tags.'],
      ['x'.repeat(65), 'Enter at most 64 characters.'],
    ] as const) {
      const refused = await send(sender, 'greet', greeting, { tags })
      expect([refused.status, fieldError(refused, 'tags'), inputValue(refused, 'tags')]).toEqual([400, error, tags])
    }
    expect(await readRuns(sender)).toHaveLength(1)
  })

  test('takes a concurrency key for a workflow with a limit or rate per key, and for no other', () => {
    const read = (definition: Workflow, concurrencyKey: string) =>
      readQueueForm(definition, undefined, 'json', new URLSearchParams({ variables: '{}', concurrencyKey }))
    const concurrency = { limit: 1, per: 'key' } as const
    const throttle = { limit: 1, periodSeconds: 60, per: 'key' } as const
    for (const limited of [workflow({ concurrency }), workflow({ throttle })]) {
      const form = read(limited, ' shop:42 ')
      expect(toQueueRequest(form)).toMatchObject({ request: { concurrencyKey: 'shop:42' } })
      expect(String(renderQueueForm(form, '', []))).toContain('name="concurrencyKey"')
      const refused = read(limited, 'shop 42')
      expect(toQueueRequest(refused)).toEqual({ invalid: refused })
      expect(refused.options.concurrencyKey?.error).toContain('“shop 42” has other characters')
    }
    const form = read(workflow(), 'shop:42')
    expect(toQueueRequest(form)).not.toHaveProperty('request.concurrencyKey')
    expect(String(renderQueueForm(form, '', []))).not.toContain('name="concurrencyKey"')
  })

  test('ignores invalid idempotency keys', async () => {
    const sender = await signInSender(service)
    for (const key of ['', 'x', 'x'.repeat(500), 'ä\r\n']) await send(sender, 'greet', { name: 'Ada' }, { key })
    expect(await readRuns(sender)).toHaveLength(4)
  })

  test('accepts scheduling options within the limits of the Execution API', async () => {
    const sender = await signInSender(service)
    const options = { delaySeconds: '60', expiresInSeconds: '120', priority: '-3' }
    expect((await send(sender, 'greet', greeting, options)).status).toBe(303)
    expect(await readRuns(sender)).toMatchObject([{ delayed: 1, priority: -3 }])
    const invalid = await send(sender, 'greet', greeting, {
      delaySeconds: '-1',
      expiresInSeconds: 'soon',
      priority: '11',
    })
    expect(invalid.status).toBe(400)
    expect(fieldError(invalid, 'delaySeconds')).toBe('Enter a whole number from 0 to 31536000.')
    expect(fieldError(invalid, 'expiresInSeconds')).toBe('Enter a whole number from 1 to 31536000.')
    expect(fieldError(invalid, 'priority')).toBe('Enter a whole number from -10 to 10.')
    const invalidResponse = await send(sender, 'greet', greeting, { delaySeconds: '60', expiresInSeconds: '60' })
    expect(fieldError(invalidResponse, 'expiresInSeconds')).toBe('Enter a time longer than the start delay.')
    expect(await readRuns(sender)).toHaveLength(1)
  })
})
