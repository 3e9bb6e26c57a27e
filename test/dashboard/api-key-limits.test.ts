/** What API keys there may be: five of a user, five active ones of an account, and scopes where they are turned on. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { knownScopes } from '../../src/openapi/served-documents.ts'
import { sendRaw } from '../operations/raw-http.ts'
import {
  type DashboardService,
  inputValue,
  pageText,
  type SignedInUser,
  signIn,
  startDashboardService,
} from '../support/dashboard.ts'

let served: DashboardService

beforeAll(async () => {
  served = await startDashboardService()
})

afterAll(() => served.stop())

function create({ visitor }: SignedInUser, fields: Record<string, string | string[]> = {}) {
  return visitor.post('/api-keys/new', { id: crypto.randomUUID(), name: 'import', lifetime: '', ...fields })
}

function list({ accountId }: SignedInUser) {
  return served.domain.apiKeys.list(accountId)
}

const valueIn = /<code id="key-value" data-once>([^<]+)</

describe('five keys', () => {
  test.for([1, 2, 3])(
    'are the most that a user gets of thirty forms that are sent at once (round %i)',
    async (_, { expect }) => {
      const ada = await signIn(served)
      const answers = await Promise.all(Array.from({ length: 30 }, () => create(ada)))
      const made = answers.filter(({ text }) => valueIn.test(text))
      expect(made.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 409]))
      expect(await list(ada)).toHaveLength(5)
    },
  )

  test('of a user are said to be theirs, expired ones included, and one makes room', async () => {
    const ada = await signIn(served)
    for (let made = 0; made < 5; made += 1) await create(ada, { lifetime: made === 0 ? '7' : '' })
    const [expired] = await list(ada)
    await served.domain.store.write(({ query }) =>
      query
        .updateTable('api_keys')
        .set({ expires_at: Date.now() })
        .where('id', '=', expired?.id ?? '')
        .execute(),
    )
    const refused = await create(ada, { name: 'the "sixth"' })
    expect(refused.status).toBe(409)
    expect(inputValue(refused, 'name')).toBe('the "sixth"')
    const words = 'You have reached your limit of 5 API keys , including expired ones.'
    for (const page of [refused, await ada.visitor.get('/api-keys/new'), await ada.visitor.get('/api-keys')]) {
      expect(pageText(page)).toContain(words)
    }
    expect((await ada.visitor.get('/api-keys')).text).not.toContain('href="/api-keys/new"')
    await ada.visitor.post(`/api-keys/${expired?.id}/delete`)
    expect((await create(ada)).status).toBe(200)
  })

  test('that are active in an account are said to be the account’s, whoever holds them', async () => {
    const ada = await signIn(served)
    const bo = await signIn(served, { accountId: ada.accountId, role: 'member' })
    for (let made = 0; made < 3; made += 1) await create(ada)
    const answers = await Promise.all(Array.from({ length: 10 }, () => create(bo)))
    expect(answers.filter(({ text }) => valueIn.test(text))).toHaveLength(2)
    for (const person of [ada, bo]) {
      const refused = await create(person)
      expect(refused.status).toBe(409)
      for (const page of [refused, await person.visitor.get('/api-keys')]) {
        expect(pageText(page)).toContain('This account has reached its limit of 5 active API keys.')
      }
    }
    expect(await list(ada)).toHaveLength(5)
  })
})

describe('scopes', () => {
  test('are chosen only where the account has them turned on, and a form that says otherwise is refused', async () => {
    const ada = await signIn(served)
    expect((await ada.visitor.get('/api-keys/new')).text).not.toContain('name="scope"')
    for (const forged of [
      { permissions: 'some', scope: 'runs:read' },
      { permissions: 'some' },
      { scope: ['runs:read', 'runs:write'] },
    ]) {
      const refused = await create(ada, forged)
      expect([refused.status, valueIn.test(refused.text)]).toEqual([400, false])
      expect(refused.text).toMatch(/role="alert">(Scopes are not enabled|Choose “Selected scopes only”)/)
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

  test('limit what the key may do, to those that there are and no others', async () => {
    const ada = await signIn(served, { scopesEnabled: true })
    const form = await ada.visitor.get('/api-keys/new')
    for (const scope of knownScopes()) expect(form.text).toContain(`name="scope" value="${scope}"`)
    const made = await create(ada, { permissions: 'some', scope: ['runs:read'] })
    const call = async (method: string, path: string) => {
      const headers = ['Authorization', `Bearer ${made.text.match(valueIn)?.[1]}`]
      return (await sendRaw(served.executionUrl, { method, path, headers })).status
    }
    expect(await call('GET', '/v1/execution/runs')).toBe(200)
    expect(await call('PUT', '/v1/execution/queue-remote/greet')).toBe(403)
    const wrong = [
      { permissions: 'some' },
      { permissions: 'some', scope: ['runs:read', 'everything'] },
      { permissions: 'some', scope: '' },
      { permissions: 'all', scope: 'runs:read' },
      { scope: 'runs:read' },
    ]
    for (const fields of wrong) {
      const refused = await create(ada, fields)
      expect([fields, refused.status]).toEqual([fields, 400])
      expect(refused.text).toContain('<small id="scopes-error" class="error">')
    }
    expect(await list(ada)).toHaveLength(1)
  })
})

describe('whoever is not the creator of a key', () => {
  test('sees whose it is, and deletes it as an owner alone', async () => {
    const ada = await signIn(served)
    const [bo, cy] = [
      await signIn(served, { accountId: ada.accountId, role: 'member', name: 'Bo' }),
      await signIn(served, { accountId: ada.accountId, role: 'member', name: 'Cy' }),
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
