/** The audit log page: entries, filters, pagination and the JSON Lines download. */
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Actor, operator, recordAudit } from '../../src/domain/audit-log/audit-log.ts'
import { sendRaw } from '../operations/raw-http.ts'
import {
  type DashboardService,
  password,
  type SignedInUser,
  signIn,
  startDashboardService,
  Visitor,
} from '../support/dashboard.ts'
import { copied, inputValue, linkPaths, type Markup, pageText, readDocument, readRows } from '../support/html.ts'

let dashboard: DashboardService

beforeAll(async () => {
  dashboard = await startDashboardService()
})

afterAll(() => dashboard.stop())

const path = '/settings/audit-log'
/** Refusals are stored every five seconds; reading the page takes 20 ms. */
const rarely = { interval: 500 }

/** Returns the table's rows without their times. */
function readEntries(page: Markup): string[] {
  return readRows(page).map((row) => row.replace(/^[\d-]+ [\d:]+ UTC /, ''))
}

async function download({ visitor }: SignedInUser, query = ''): Promise<Record<string, unknown>[]> {
  const { status, text } = await visitor.get(`${path}.jsonl${query}`)
  expect(status).toBe(200)
  expect(text === '' || text.endsWith('\n')).toBe(true)
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
}

/** Writes entries whose names contain line breaks and quotes. */
function fill(accountId: string, count: number, by: Actor = operator): Promise<void> {
  return dashboard.domain.store.write(async (tx) => {
    for (let index = 0; index < count; index += 1) {
      const subject = { id: `${index}`, name: `line\nbreak "${index}" \u2028 é` }
      await recordAudit(tx, accountId, { action: 'apiKey.renamed', by, subject, details: { index } })
    }
  })
}

test('the page lists each change with its actor, newest first', async () => {
  const ada = await signIn(dashboard)
  const { visitor, accountId } = ada
  const bo = await signIn(dashboard, { accountId, role: 'developer', name: 'Bo' })
  await visitor.post('/settings', { name: 'Engines', scopesEnabled: 'on' })
  await visitor.post('/settings', { name: 'Engines' })
  const id = inputValue(await visitor.get('/api-keys/new'), 'id') ?? ''
  const created = await visitor.post('/api-keys/new', { id, name: 'import', lifetime: '' })
  await visitor.post(`/api-keys/${id}/rename`, { name: 'nightly' })
  const newId = inputValue(await visitor.get(`/api-keys/${id}/rotate`), 'id') ?? ''
  await visitor.post(`/api-keys/${id}/rotate`, { id: newId })
  const headers = ['Authorization', `Bearer ${copied(created, 'Copy key')}`, 'User-Agent', 'old']
  await sendRaw(dashboard.executionUrl, { method: 'GET', path: '/v1/execution/runs', headers })
  await expect.poll(async () => readEntries(await visitor.get(path))[0], rarely).toContain('used a deleted API key')
  await visitor.post(`/api-keys/${newId}/delete`)
  await visitor.post('/settings/members/invite', { label: 'Cy', role: 'admin' })
  const [invitation] = await dashboard.domain.links.listInvitations(accountId)
  await visitor.post(`/settings/members/invitations/${invitation?.id}/withdraw`)
  await visitor.post(`/settings/members/${bo.id}/role`, { role: 'admin' })
  await visitor.post(`/settings/members/${bo.id}/sign-in-link`)
  await bo.visitor.post('/profile/password', { currentPassword: password, password: 'another engine' })
  await new Visitor(dashboard.url).post('/sign-in', { email: bo.email, password: 'another engine' })
  await new Visitor(dashboard.url).post('/sign-in', { email: bo.email, password: 'wrong' })
  await visitor.post(`/settings/members/${bo.id}/remove`)
  const expected = [
    'Ada removed a user Bo',
    'Bo signed in',
    'Bo changed a password',
    'Ada created a sign-in link Bo',
    'Ada changed a role Bo',
    'Ada revoked an invitation Cy',
    'Ada invited a user Cy',
    'Ada deleted an API key nightly',
    '127.0.0.1 old used a deleted API key nightly',
    'Ada rotated an API key nightly',
    'Ada deleted an API key nightly',
    'Ada renamed an API key nightly from import, to nightly',
    'Ada created an API key import',
    'Ada turned scopes off',
    'Ada turned scopes on',
    'Ada renamed the account from Test, to Engines',
    'Bo signed in',
    'Bo joined the account',
    'command line invited a user Bo',
    'Ada signed in',
    'Ada joined the account',
  ]
  const entries = readEntries(await visitor.get(path))
  expect(entries.map((entry, index) => entry.slice(0, expected[index]?.length))).toEqual(expected)
})

test('the page escapes texts that callers provide', async () => {
  const { visitor, accountId } = await signIn(dashboard)
  const by = { kind: 'caller', id: null, name: '<script>alert(1)</script>' } as const
  const details = { from: '"><img src=x>', to: '<b>', expiresAt: 0, scopes: ['a', 'b'] }
  await dashboard.domain.store.write((tx) => recordAudit(tx, accountId, { action: 'apiKey.renamed', by, details }))
  const page = await visitor.get(path)
  expect(readDocument(page).querySelector('main :is(script, img, b)')).toBe(null)
  expect(readEntries(page)[0]).toContain('from "><img src=x>, to <b>, ')
  expect(readEntries(page)[0]).toContain('1970-01-01T00:00:00.000Z, scopes a b')
})

describe('a filter', () => {
  test('by user and by action applies to the page and the download', async () => {
    const ada = await signIn(dashboard)
    const bo = await signIn(dashboard, { accountId: ada.accountId, name: 'Bo' })
    const only = async (query: string) => {
      const entries = readEntries(await ada.visitor.get(`${path}?${query}`))
      return entries.map((entry) => entry.match(/^\S+ (signed in|joined)/)?.[0] ?? entry)
    }
    expect(await only(`actor=${bo.id}`)).toEqual(['Bo signed in', 'Bo joined'])
    expect(await only('action=user.signedIn')).toEqual(['Bo signed in', 'Ada signed in'])
    expect(await only(`action=user.signedIn&actor=${ada.id}`)).toEqual(['Ada signed in'])
    const page = await ada.visitor.get(`${path}?action=user.signedIn&actor=${bo.id}`)
    const [link = ''] = linkPaths(page, /Download/)
    expect([inputValue(page, 'action'), inputValue(page, 'actor')]).toEqual(['user.signedIn', bo.id])
    expect(await download(ada, link.replace(`${path}.jsonl`, ''))).toMatchObject([
      { action: 'user.signedIn', by: { id: bo.id } },
    ])
    expect(pageText(await ada.visitor.get(`${path}?action=user.removed`))).toContain('No entries match these filters.')
    // Unknown actions are ignored; unknown users match nothing.
    for (const nonsense of ['constructor', '__proto__', 'user.', '%01'])
      expect(await only(`action=${nonsense}`)).toHaveLength(5)
    for (const unknown of ['unknown', "'%20OR%20''='", '%01', '%ff']) expect(await only(`actor=${unknown}`)).toEqual([])
  })

  test('by a user of another account matches nothing', async () => {
    const [ada, eve] = [await signIn(dashboard), await signIn(dashboard)]
    expect(readEntries(await ada.visitor.get(`${path}?actor=${eve.id}`))).toEqual([])
    expect(await download(ada, `?actor=${eve.id}`)).toEqual([])
    const newest = (await download(eve))[0]?.id
    expect(readEntries(await ada.visitor.get(`${path}?before=${newest}`)).join()).not.toContain(eve.id)
  })
})

describe('a long log', () => {
  test('is paginated with its filter, each entry on one page', async () => {
    const ada = await signIn(dashboard)
    await fill(ada.accountId, 120)
    const seen: string[] = []
    const sizes: number[] = []
    let next: string | undefined = `${path}?action=apiKey.renamed`
    while (next) {
      const page = await ada.visitor.get(next)
      const entries = readEntries(page)
      sizes.push(entries.length)
      seen.push(...entries.map((entry) => entry.match(/index (\d+)$/)?.[1] ?? ''))
      next = linkPaths(page, /Older entries/)[0]
    }
    expect(sizes).toEqual([50, 50, 20])
    expect(seen).toEqual(Array.from({ length: 120 }, (_, index) => String(119 - index)))
    for (const before of ['', 'zzz', '%01', '%ff', "'"])
      expect((await ada.visitor.get(`${path}?before=${before}`)).status).toBe(200)
  })

  test('is downloaded completely, one JSON object per line, newest first', async () => {
    const ada = await signIn(dashboard)
    await fill(ada.accountId, 1301, { kind: 'user', id: ada.id, name: 'Ada' })
    const { headers } = await ada.visitor.get(`${path}.jsonl`)
    expect(headers).toMatchObject({
      'content-type': expect.stringContaining('application/jsonl'),
      'content-disposition': 'attachment; filename=audit-log.jsonl',
      'cache-control': 'no-store',
    })
    const lines = await download(ada)
    expect(lines).toHaveLength(1303)
    expect(lines.slice(0, 1301).map(({ details }) => (details as { index: number }).index)).toEqual(
      Array.from({ length: 1301 }, (_, index) => 1300 - index),
    )
    expect(lines[0]).toEqual({
      id: expect.any(String),
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      by: { kind: 'user', id: ada.id, name: 'Ada' },
      action: 'apiKey.renamed',
      subject: { id: '1300', name: 'line\nbreak "1300" \u2028 é' },
      details: { index: 1300 },
    })
    expect(await download(ada, '?action=user.joined')).toHaveLength(1)
  })

  test('stops being read when the client disconnects', async () => {
    const ada = await signIn(dashboard)
    await fill(ada.accountId, 20_000)
    const { hostname, port } = new URL(dashboard.url)
    const cookie = [...ada.visitor.cookies].map((pair) => pair.join('=')).join('; ')
    const warnings: Error[] = []
    const listen = (warning: Error) => warnings.push(warning)
    process.on('warning', listen)
    const socket = connect(Number(port), hostname)
    socket.write(`GET ${path}.jsonl HTTP/1.1\r\nHost: ${hostname}:${port}\r\nCookie: ${cookie}\r\n\r\n`)
    await new Promise((resolve) => socket.once('data', resolve))
    // Small reads, so that the service often waits for the socket to drain.
    for (let part = 0; part < 40; part += 1) {
      socket.pause()
      await new Promise((resolve) => setImmediate(resolve))
      socket.resume()
      await new Promise((resolve) => socket.once('data', resolve))
    }
    socket.destroy()
    expect((await ada.visitor.get('/profile')).status).toBe(200)
    process.off('warning', listen)
    expect(warnings).toEqual([])
    expect(dashboard.log.filter(({ level }) => Number(level) >= 50)).toEqual([])
  })
})

test('refused API keys and exceeded rate limits are in the log and in the audit log of the account', async () => {
  const service = await startDashboardService({ RATE_LIMIT_PER_MINUTE: '2' })
  try {
    const { accountId, id: userId, visitor } = await signIn(service)
    const draft = { accountId, userId, name: 'Busy', scopes: null, expiresAt: null }
    const [busy, gone] = [
      await service.domain.apiKeys.create(draft, operator),
      await service.domain.apiKeys.create(draft, operator),
    ]
    await service.domain.apiKeys.delete(accountId, gone.id, operator)
    const call = async (key: string) => {
      const headers = ['Authorization', `Bearer ${key}`, 'User-Agent', 'curl/8']
      return (await sendRaw(service.executionUrl, { method: 'GET', path: '/v1/execution/runs', headers })).status
    }
    const keys = [busy.value, busy.value, busy.value, busy.value, gone.value, crypto.randomUUID()]
    const statuses: number[] = []
    for (const key of keys) statuses.push(await call(key))
    expect(statuses).toEqual([200, 200, 429, 429, 401, 401])
    const refusals = service.log.filter(({ count }) => count !== undefined)
    expect(refusals).toMatchObject([
      { level: 40, msg: 'API key rate limited', address: '127.0.0.1', accountId, subjectId: busy.id, count: 1 },
      { level: 40, msg: 'API key refused', address: '127.0.0.1', accountId, subjectId: gone.id, count: 1 },
    ])
    await expect
      .poll(async () => readEntries(await visitor.get(path)).filter((entry) => entry.startsWith('127.0.0.1')), rarely)
      .toEqual([
        '127.0.0.1 curl/8 used a deleted API key Busy',
        '127.0.0.1 curl/8 exceeded the rate limit of an API key Busy',
      ])
  } finally {
    await service.stop()
  }
})
