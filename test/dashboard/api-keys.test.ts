/** The tab "API Keys": creating, listing, renaming, rotating and deleting keys. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sendRaw } from '../operations/raw-http.ts'
import {
  type DashboardService,
  type SignedInUser,
  signIn,
  startDashboardService,
  stopClock,
} from '../support/dashboard.ts'
import { control, copied, fieldError, inputValue, type Markup, pageText, readDocument } from '../support/html.ts'
import { until } from '../support/service.ts'

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

/** Returns the status of a request to the Execution API with the key. */
async function call(value: string, agent = 'curl/8.5'): Promise<number> {
  const headers = ['Authorization', `Bearer ${value}`, 'User-Agent', agent]
  return (await sendRaw(dashboard.executionUrl, { method: 'GET', path: '/v1/execution/runs', headers })).status
}

/** Opens, completes and submits the form. */
async function create({ visitor }: SignedInUser, fields: Record<string, string | string[]> = {}) {
  const id = inputValue(await visitor.get('/api-keys/new'), 'id') ?? ''
  const form = { id, name: 'import', lifetime: '', ...fields }
  return { id, form, response: await visitor.post('/api-keys/new', form) }
}

function shownValue(page: Markup): string {
  return copied(page, 'Copy key') ?? ''
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/

function list({ accountId }: SignedInUser) {
  return dashboard.domain.apiKeys.list(accountId)
}

describe('an API key', () => {
  test('is shown only in the response that created it, which is not cached', async () => {
    const ada = await signIn(dashboard)
    const { id, form, response } = await create(ada)
    expect([response.status, response.headers['cache-control']]).toEqual([200, 'no-store'])
    const value = shownValue(response)
    expect(value).toMatch(uuid)
    expect(response.text).toContain(`Authorization: Bearer ${value}`)
    expect(pageText(response)).toContain(`curl -X PUT ${dashboard.executionUrl}/v1/execution/queue-remote/`)
    expect(await call(value)).toBe(200)
    const again = await ada.visitor.post('/api-keys/new', { ...form, name: 'another' })
    expect([again.status, again.headers.location]).toEqual([303, '/api-keys?done=repeated'])
    expect(await list(ada)).toMatchObject([{ id, name: 'import' }])
    for (const path of [
      '/api-keys?done=repeated',
      `/api-keys/${id}/rename`,
      `/api-keys/${id}/rotate`,
      `/api-keys/${id}/delete`,
      '/settings/audit-log',
    ]) {
      const page = await ada.visitor.get(path)
      expect(page.text).not.toContain(value)
      expect(page.text).not.toContain(value.slice(9))
    }
    expect(pageText(await ada.visitor.get('/api-keys?done=repeated'))).toContain('This key was already created.')
  })

  test('is listed with its prefix, dates and last use, but not its value', async () => {
    const ada = await signIn(dashboard)
    const value = shownValue((await create(ada, { name: 'nightly import', lifetime: '30' })).response)
    await call(value, 'nightly/1.0 "<b>')
    const pageContent = async () => pageText(await ada.visitor.get('/api-keys'))
    expect(await pageContent()).toContain('1 of 5 keys in use. You have created 1 of 5.')
    for (const text of ['nightly import', `${value.slice(0, 8)}…`, 'You', 'Active', 'Rename', 'Rotate', 'Delete']) {
      expect(await pageContent()).toContain(text)
    }
    const [key] = await list(ada)
    const rounded = (at: number) => new Date(at).toISOString().slice(0, 19).replace('T', ' ')
    expect(await pageContent()).toContain(`${rounded(key?.createdAt ?? 0)} UTC`)
    expect(await pageContent()).toContain(`${rounded((key?.createdAt ?? 0) + 30 * 86_400_000)} UTC`)
    await until('the use is recorded', async () => (await list(ada))[0]?.lastUsedAt)
    const deletion = await ada.visitor.get(`/api-keys/${key?.id}/delete`)
    expect(pageText(deletion)).toContain('by 127.0.0.1 nightly/1.0 "<b>')
    expect(deletion.text).not.toContain('<b>')
  })

  test('is refused by the Execution API as soon as it is deleted', async () => {
    const ada = await signIn(dashboard)
    const { id, response } = await create(ada)
    expect(await call(shownValue(response))).toBe(200)
    expect(pageText(await ada.visitor.get(`/api-keys/${id}/delete`))).toContain('Delete “import”?')
    expect(await call(shownValue(response))).toBe(200)
    expect((await ada.visitor.post(`/api-keys/${id}/delete`)).headers.location).toBe('/api-keys?done=deleted')
    expect(await call(shownValue(response))).toBe(401)
    expect((await ada.visitor.post(`/api-keys/${id}/delete`)).status).toBe(404)
    expect(pageText(await ada.visitor.get('/api-keys'))).toContain('No API keys')
  })

  test('expires at the chosen time', async () => {
    const ada = await signIn(dashboard)
    const value = shownValue((await create(ada, { lifetime: '7' })).response)
    const [key] = await list(ada)
    expect(key?.expiresAt).toBe(Date.now() + 7 * 86_400_000)
    clock.advance(7 * 86_400_000)
    // The session has expired too.
    await ada.visitor.post('/sign-in', { email: ada.email, password: ada.password })
    expect(await call(value)).toBe(401)
    expect(pageText(await ada.visitor.get('/api-keys'))).toContain('Expired')
    for (const lifetime of ['8', '-1', 'never', '1e3', '__proto__', 'constructor', 'toString']) {
      const { response } = await create(ada, { lifetime })
      expect([lifetime, response.status, fieldError(response, 'lifetime')]).toEqual([
        lifetime,
        400,
        'Choose one of the listed lifetimes.',
      ])
    }
    expect(await list(ada)).toHaveLength(1)
  })

  test('can be renamed, and an invalid name is refused with an error at the field', async () => {
    const ada = await signIn(dashboard)
    const { id } = await create(ada)
    const rename = (name: string) => ada.visitor.post(`/api-keys/${id}/rename`, { name })
    expect((await rename(' nightly import ')).headers.location).toBe('/api-keys?done=renamed')
    expect(pageText(await ada.visitor.get('/api-keys?done=renamed'))).toContain('API key renamed.')
    for (const invalid of ['', '   ', 'a'.repeat(101), 'a\u0001b']) {
      const response = await rename(invalid)
      expect([response.status, inputValue(response, 'name')]).toEqual([400, invalid])
      expect(fieldError(response, 'name')).toMatch(
        /^(Enter a name|Use at most 100 characters|Remove the control characters)/,
      )
    }
    expect(await list(ada)).toMatchObject([{ id, name: 'nightly import' }])
  })

  test('is rotated with an overlap of 0 to 24 hours', async () => {
    const ada = await signIn(dashboard)
    const { visitor } = ada
    const { id, response } = await create(ada, { name: 'overlapping' })
    const newId = inputValue(await visitor.get(`/api-keys/${id}/rotate`), 'id') ?? ''
    for (const overlap of ['25', '-1', '1.5', 'x', '']) {
      const refused = await visitor.post(`/api-keys/${id}/rotate`, { id: newId, overlap })
      expect([refused.status, pageText(refused)]).toEqual([400, expect.stringContaining('from 0 to 24.')])
    }
    const rotated = await visitor.post(`/api-keys/${id}/rotate`, { id: newId, overlap: '1' })
    expect(await Promise.all([call(shownValue(response)), call(shownValue(rotated))])).toEqual([200, 200])
  })

  test('is rotated once per form, even at the limit, and the old value is refused immediately', async () => {
    const ada = await signIn(dashboard)
    const { id, response } = await create(ada, { name: 'rotated' })
    for (let count = 1; count < 5; count += 1) await create(ada)
    const newId = inputValue(await ada.visitor.get(`/api-keys/${id}/rotate`), 'id') ?? ''
    const rotate = () => ada.visitor.post(`/api-keys/${id}/rotate`, { id: newId })
    const [rotated, ...others] = (await Promise.all([rotate(), rotate(), rotate()])).sort((a, b) => a.status - b.status)
    if (!rotated) throw new Error('There are three responses.')
    expect([rotated.status, rotated.headers['cache-control']]).toEqual([200, 'no-store'])
    for (const other of others) expect(other.headers.location).toBe('/api-keys?done=repeated')
    expect(await call(shownValue(response))).toBe(401)
    expect(await call(shownValue(rotated))).toBe(200)
    expect(pageText(rotated)).toContain('Save the API key “rotated”')
    expect((await list(ada)).map((key) => key.id)).toContain(newId)
    expect(await list(ada)).toHaveLength(5)
    expect((await rotate()).headers.location).toBe('/api-keys?done=repeated')
  })
})

describe('the name of an API key', () => {
  test('is escaped on every page', async () => {
    const name = `<script>alert(1)</script>"'\`\${7*7}&amp;<!--`
    const ada = await signIn(dashboard)
    const { id, response } = await create(ada, { name })
    const pages = [
      '/api-keys',
      `/api-keys/${id}/rename`,
      `/api-keys/${id}/rotate`,
      `/api-keys/${id}/delete`,
      '/settings/audit-log',
    ]
    const responses = [response, ...(await Promise.all(pages.map((path) => ada.visitor.get(path))))]
    for (const page of responses) {
      expect([readDocument(page).body.textContent, inputValue(page, 'name')].join('\n')).toContain(name)
      expect(readDocument(page).querySelector('script:not([src])')).toBe(null)
    }
    expect(inputValue(await ada.visitor.get(`/api-keys/${id}/rename`), 'name')).toBe(name)
  })

  test('that is too long is refused, and the form keeps its values', async () => {
    const ada = await signIn(dashboard, { scopesEnabled: true })
    const name = `"${'ä'.repeat(100)}`
    const { id, form, response } = await create(ada, {
      name,
      lifetime: '90',
      permissions: 'some',
      scope: ['runs:read'],
    })
    expect([response.status, shownValue(response)]).toEqual([400, ''])
    expect(fieldError(response, 'name')).toBe('Use at most 100 characters.')
    expect([inputValue(response, 'name'), inputValue(response, 'id')]).toEqual([name, id])
    expect(inputValue(response, 'lifetime')).toBe('90')
    expect(control(response, 'permissions', 'some')).toMatchObject({ checked: true })
    expect(control(response, 'scope', 'runs:read')).toMatchObject({ checked: true })
    expect(await list(ada)).toEqual([])
    const corrected = await ada.visitor.post('/api-keys/new', { ...form, name: 'ä'.repeat(100) })
    expect(shownValue(corrected)).toMatch(uuid)
    expect(await list(ada)).toMatchObject([{ name: 'ä'.repeat(100), scopes: ['runs:read'] }])
  })
})
