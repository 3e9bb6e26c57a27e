/** API keys, passwords, link tokens and session ids appear in no file, log line or metric. */
import { expect, onTestFinished, test } from 'vitest'
import { sendRaw } from '../operations/raw-http.ts'
import { findCanaries } from '../support/canaries.ts'
import { type DashboardService, password, signIn, startDashboardService, Visitor } from '../support/dashboard.ts'
import { copied, inputValue, type Markup } from '../support/html.ts'

async function everywhere({ contents, log, managementUrl }: DashboardService): Promise<[string, Buffer | string][]> {
  const metrics = await sendRaw(managementUrl, { method: 'GET', path: '/metrics' })
  return [...(await contents()), ['the log', JSON.stringify(log)], ['the metrics', metrics.text]]
}

test('secrets appear only in the responses that create them', async () => {
  const dashboard = await startDashboardService()
  onTestFinished(dashboard.stop)
  const secrets: Record<string, string> = { password, next: 'canary next password', invalid: 'canary invalid password' }
  const ada = await signIn(dashboard)
  const { visitor } = ada
  const take = (name: string, value: string | undefined) => {
    secrets[name] = value ?? ''
    expect(secrets[name]).toHaveLength(name.endsWith('key') ? 36 : 32)
  }
  const keyIn = (page: Markup) => copied(page, 'Copy key')
  const tokenIn = (page: Markup) => copied(page, 'Copy link')?.split('/links/')[1]

  const id = inputValue(await visitor.get('/api-keys/new'), 'id') ?? ''
  const form = { id, name: 'canary', lifetime: '' }
  take('first key', keyIn(await visitor.post('/api-keys/new', form)))
  const newId = crypto.randomUUID()
  take('second key', keyIn(await visitor.post(`/api-keys/${id}/rotate`, { id: newId })))
  take('invitation', tokenIn(await visitor.post('/settings/members/invite', { label: 'Bo', role: 'developer' })))
  take('sign-in link', tokenIn(await visitor.post(`/settings/members/${ada.id}/sign-in-link`)))
  take('session', /^s:([^.]+)\./.exec(decodeURIComponent([...visitor.cookies.values()][0] ?? ''))?.[1])
  for (const key of [secrets['first key'], secrets['second key'], crypto.randomUUID()]) {
    const headers = ['Authorization', `Bearer ${key}`]
    await sendRaw(dashboard.executionUrl, { method: 'GET', path: '/v1/execution/runs', headers })
    await visitor.get(`/api-keys?done=${key}`)
    await visitor.get(`/${key}`)
  }
  await new Visitor(dashboard.url).post('/sign-in', { email: ada.email, password: secrets.wrong ?? '' })
  await new Visitor(dashboard.url).post('/sign-in', { email: ada.email, password }, { 'Sec-Fetch-Site': 'cross-site' })
  await visitor.post('/profile/password', { currentPassword: secrets.wrong ?? '', password: secrets.next ?? '' })
  await visitor.post('/profile/password', { currentPassword: password, password: secrets.next ?? '' })
  await new Visitor(dashboard.url).get(`/links/${secrets.invitation}`)
  await new Visitor(dashboard.url).post(`/links/${secrets.invitation}`, {
    name: 'Bo',
    email: 'bo@example.com',
    password,
  })

  const contents = await everywhere(dashboard)
  for (const [name, secret] of Object.entries(secrets))
    expect([name, findCanaries(contents, [secret])]).toEqual([name, []])
  // Proves that the search works.
  expect(findCanaries(contents, ['canary'])).not.toEqual([])
  const again = [
    await visitor.get('/api-keys'),
    await visitor.get('/settings/members'),
    await visitor.get('/settings/audit-log.jsonl'),
  ]
  expect(
    findCanaries(
      again.map(({ text }) => ['a page', text]),
      Object.values(secrets),
    ),
  ).toEqual([])
  await visitor.post('/sign-out')
  expect(findCanaries(await everywhere(dashboard), Object.values(secrets))).toEqual([])
})
