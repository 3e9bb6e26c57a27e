/** Limits of API keys: five per user, five active per account, and scopes where the account enables them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { knownScopes } from '../../src/openapi/served-documents.ts'
import { sendRaw } from '../operations/raw-http.ts'
import {
  type DashboardService,
  type SignedInUser,
  signIn,
  startDashboardService,
  stopClock,
} from '../support/dashboard.ts'
import { copied, fieldError, find, inputValue, type Markup, pageText } from '../support/html.ts'

let dashboard: DashboardService
let clock: ReturnType<typeof stopClock>

beforeAll(async () => {
  clock = stopClock({ daysAgo: 14 })
  dashboard = await startDashboardService()
})

afterAll(async () => {
  await dashboard.stop()
  clock.restore()
})

function create({ visitor }: SignedInUser, fields: Record<string, string | string[]> = {}) {
  return visitor.post('/api-keys/new', { id: crypto.randomUUID(), name: 'import', lifetime: '', ...fields })
}

function list({ accountId }: SignedInUser) {
  return dashboard.domain.apiKeys.list(accountId)
}

const valueIn = (page: Markup) => copied(page, 'Copy key')

describe('the limit of five keys', () => {
  test('of a user counts expired keys, and deleting one allows another', async () => {
    const ada = await signIn(dashboard)
    for (let count = 0; count < 5; count += 1) await create(ada, { lifetime: count === 0 ? '7' : '' })
    const [expired] = await list(ada)
    clock.advance(7 * 86_400_000)
    // The session has expired too.
    await ada.visitor.post('/sign-in', { email: ada.email, password: ada.password })
    const refused = await create(ada, { name: 'the "sixth"' })
    expect(refused.status).toBe(409)
    expect(inputValue(refused, 'name')).toBe('the "sixth"')
    const message = 'You have reached your limit of 5 API keys , including expired ones.'
    for (const page of [refused, await ada.visitor.get('/api-keys/new'), await ada.visitor.get('/api-keys')]) {
      expect(pageText(page)).toContain(message)
    }
    expect((await ada.visitor.get('/api-keys')).text).not.toContain('href="/api-keys/new"')
    await ada.visitor.post(`/api-keys/${expired?.id}/delete`)
    expect((await create(ada)).status).toBe(200)
  })

  test('of an account counts the active keys of all its users', async () => {
    const ada = await signIn(dashboard)
    const bo = await signIn(dashboard, { accountId: ada.accountId, role: 'developer' })
    for (let count = 0; count < 3; count += 1) await create(ada)
    const responses = await Promise.all(Array.from({ length: 10 }, () => create(bo)))
    expect(responses.filter(valueIn)).toHaveLength(2)
    for (const user of [ada, bo]) {
      const refused = await create(user)
      expect(refused.status).toBe(409)
      for (const page of [refused, await user.visitor.get('/api-keys')]) {
        expect(pageText(page)).toContain('This account has reached its limit of 5 active API keys.')
      }
    }
    expect(await list(ada)).toHaveLength(5)
  })
})

describe('scopes', () => {
  test('are accepted only while the account enables them', async () => {
    const ada = await signIn(dashboard)
    expect((await ada.visitor.get('/api-keys/new')).text).not.toContain('name="scope"')
    for (const forged of [
      { permissions: 'some', scope: 'runs:read' },
      { permissions: 'some' },
      { scope: ['runs:read', 'runs:write'] },
    ]) {
      const refused = await create(ada, forged)
      expect([refused.status, valueIn(refused)]).toEqual([400, undefined])
      expect(pageText(find(refused).getByRole('alert'))).toMatch(/Scopes are off|Choose “Selected scopes only”/)
    }
    expect(await list(ada)).toEqual([])
    await ada.visitor.post('/settings', { name: 'Test', scopesEnabled: 'on' })
    expect((await ada.visitor.get('/api-keys/new')).text).toContain('name="scope"')
    expect((await create(ada, { permissions: 'some', scope: 'runs:read' })).status).toBe(200)
    await ada.visitor.post('/settings', { name: 'Test' })
    expect((await create(ada, { permissions: 'some', scope: 'runs:read' })).status).toBe(400)
    expect(await list(ada)).toMatchObject([{ scopes: ['runs:read'] }])
    expect(pageText(await ada.visitor.get('/api-keys'))).toContain('runs:read')
  })

  test('restrict the key, and unknown or missing scopes are refused', async () => {
    const ada = await signIn(dashboard, { scopesEnabled: true })
    const form = await ada.visitor.get('/api-keys/new')
    for (const scope of knownScopes()) expect(form.text).toContain(`name="scope" value="${scope}"`)
    const created = await create(ada, { permissions: 'some', scope: ['runs:read'] })
    const call = async (method: string, path: string) => {
      const headers = ['Authorization', `Bearer ${valueIn(created)}`]
      return (await sendRaw(dashboard.executionUrl, { method, path, headers })).status
    }
    expect(await call('GET', '/v1/execution/runs')).toBe(200)
    expect(await call('PUT', '/v1/execution/queue-remote/greet')).toBe(403)
    const invalid = [
      { permissions: 'some' },
      { permissions: 'some', scope: ['runs:read', 'everything'] },
      { permissions: 'some', scope: '' },
      { permissions: 'all', scope: 'runs:read' },
      { scope: 'runs:read' },
    ]
    for (const fields of invalid) {
      const refused = await create(ada, fields)
      expect([fields, refused.status]).toEqual([fields, 400])
      expect(refused.text).toContain('<small id="scopes-error" class="error">')
    }
    expect(await list(ada)).toHaveLength(1)
  })

  test('restrict the key to workflows, which the list shows', async () => {
    const ada = await signIn(dashboard, { scopesEnabled: true })
    const fields = { permissions: 'some', scope: ['runs:read', 'runs:write'], workflows: 'greet, approve' }
    const created = await create(ada, fields)
    expect(await list(ada)).toMatchObject([{ scopes: fields.scope, workflowIds: ['greet', 'approve'] }])
    expect(pageText(await ada.visitor.get('/api-keys'))).toContain('runs:read runs:write for greet approve')
    // The command of the page is of a workflow that the key may queue.
    expect(pageText(created)).toMatch(/queue-remote\/(greet|approve) /)
    const headers = ['Authorization', `Bearer ${valueIn(created)}`]
    const statusOf = async (path: string) =>
      (await sendRaw(dashboard.executionUrl, { method: 'GET', path, headers })).status
    expect(await statusOf('/v1/execution/runs?workflowId=greet')).toBe(200)
    expect(await statusOf('/v1/execution/runs')).toBe(403)
    const invalid = [
      { ...fields, workflows: 'no/id' },
      { ...fields, scope: ['runs:read', 'schedules:read'] },
      { permissions: 'all', workflows: 'greet' },
    ]
    for (const refusedFields of invalid) {
      const refused = await create(ada, refusedFields)
      expect([refusedFields, refused.status]).toEqual([refusedFields, 400])
      expect(fieldError(refused, 'workflows')).toMatch(/no\/id|cannot have the scope schedules:read|needs scopes/)
      expect(inputValue(refused, 'workflows')).toBe(refusedFields.workflows)
    }
    expect(await list(ada)).toHaveLength(1)
  })
})

describe('the key of another user', () => {
  test('can be deleted by admins, but not renamed or rotated', async () => {
    const ada = await signIn(dashboard)
    const [bo, cy] = [
      await signIn(dashboard, { accountId: ada.accountId, role: 'developer', name: 'Bo' }),
      await signIn(dashboard, { accountId: ada.accountId, role: 'developer', name: 'Cy' }),
    ]
    await create(bo, { name: 'his' })
    const [key] = await list(bo)
    const path = `/api-keys/${key?.id}`
    expect(pageText(await ada.visitor.get('/api-keys'))).toContain('Bo')
    expect((await ada.visitor.get('/api-keys')).text).not.toContain(`${path}/rotate`)
    expect((await cy.visitor.get('/api-keys')).text).not.toContain(`${path}/delete`)
    expect((await cy.visitor.post(`${path}/delete`)).status).toBe(403)
    expect((await ada.visitor.post(`${path}/rotate`, { id: crypto.randomUUID() })).status).toBe(403)
    expect((await ada.visitor.post(`${path}/rename`, { name: 'hers' })).status).toBe(403)
    expect(await list(bo)).toMatchObject([{ id: key?.id, name: 'his' }])
    expect(pageText(await ada.visitor.get(`${path}/delete`))).toContain('Created by Bo')
    expect((await ada.visitor.post(`${path}/delete`)).status).toBe(303)
    expect(await list(bo)).toEqual([])
  })
})
