/** Secrets and settings in the dashboard: their page, without JavaScript, and runs that wait for them. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type DashboardService, signIn, startDashboardService } from '../support/dashboard.ts'
import { fieldError, pageText, readRows } from '../support/html.ts'
import { removeDirectory, temporaryDirectory } from '../support/service.ts'

let dashboard: DashboardService

beforeAll(async () => {
  dashboard = await startDashboardService()
})

afterAll(() => dashboard.stop())

const path = '/settings/secrets'
const token = 'canary-5b1f0d8a6de21c0a'
const secret = { kind: 'secret', secretName: 'SHOP_TOKEN', secretValue: token }

test('a user stores versions of a secret, whose value no page shows, and deletes it after a question', async () => {
  const [ada, bo] = [await signIn(dashboard), await signIn(dashboard)]
  for (const value of ['the first one', token]) {
    const { status, headers } = await ada.visitor.post(path, { ...secret, secretValue: value })
    expect([status, headers.location]).toEqual([303, `${path}?done=stored`])
  }
  const page = await ada.visitor.get(`${path}?done=stored`)
  expect(readRows(page)[0]).toMatch(/^SHOP_TOKEN none 2 .* Delete$/)
  expect(pageText(page)).toContain('Stored. Runs that waited for it start now')
  const asked = await ada.visitor.post(`${path}/delete`, { kind: 'secret', name: 'SHOP_TOKEN' })
  expect(pageText(asked)).toContain('Delete SHOP_TOKEN?')
  const auditLog = await ada.visitor.get('/settings/audit-log')
  for (const { text } of [page, asked, auditLog]) expect(text).not.toContain(token)
  expect(pageText(auditLog)).toContain('stored a secret SHOP_TOKEN')
  expect(readRows(await bo.visitor.get(path))).toEqual([])
  const confirmed = { kind: 'secret', name: 'SHOP_TOKEN', confirmed: 'yes' }
  expect((await bo.visitor.post(`${path}/delete`, confirmed)).status).toBe(404)
  expect((await ada.visitor.post(`${path}/delete`, confirmed)).headers.location).toBe(`${path}?done=deleted`)
  expect(readRows(await ada.visitor.get(path))).toEqual([])
})

test('the number of versions leads to the users that stored them, with the times', async () => {
  const [ada, bo] = [await signIn(dashboard), await signIn(dashboard)]
  for (const name of ['SHOP_TOKEN', 'OTHER_TOKEN', 'SHOP_TOKEN'])
    await ada.visitor.post(path, { ...secret, secretName: name })
  const [, link] =
    /href="([^"]*)" aria-label="Versions of SHOP_TOKEN: 2"/.exec((await ada.visitor.get(path)).text) ?? []
  const history = (link ?? '').replaceAll('&amp;', '&')
  const rows = readRows(await ada.visitor.get(history))
  expect(rows).toEqual([
    expect.stringMatching(new RegExp(`${ada.name} stored a secret SHOP_TOKEN version 2$`)),
    expect.stringMatching(new RegExp(`${ada.name} stored a secret SHOP_TOKEN version 1$`)),
  ])
  expect(pageText(await bo.visitor.get(history))).toContain('No entries match these filters.')
})

test('the pages say what workflows declare, and what of it is missing or in the external store', async () => {
  const SECRETS_DIR = temporaryDirectory()
  const WORKFLOWS_DIR = fileURLToPath(new URL('../operations/declaring-workflows', import.meta.url))
  const service = await startDashboardService({ WORKFLOWS_DIR, SECRETS_DIR: join(SECRETS_DIR, '{account}') })
  try {
    const { visitor, accountId } = await signIn(service)
    const pages = async () => [
      pageText(await visitor.get('/workflows/shop')),
      pageText(await visitor.get(path)).replace(/Store a secret.*/, ''),
    ]
    const missing = await pages()
    expect(missing[0]).toMatch(/Secrets SHOP_TOKEN \(missing: store it ?\) Settings SHOP_URL/)
    expect(missing[1]).toMatch(/Missing, so that runs wait: SHOP_TOKEN ?, declared by shop ?: store it/)
    mkdirSync(join(SECRETS_DIR, accountId))
    writeFileSync(join(SECRETS_DIR, accountId, 'SHOP_TOKEN'), 'abc')
    expect((await pages())[1]).toContain('The secret SHOP_TOKEN in the external store is no text of 4 to 16384')
    writeFileSync(join(SECRETS_DIR, accountId, 'SHOP_TOKEN'), token)
    const found = await pages()
    expect(found[0]).toMatch(/Secrets SHOP_TOKEN Settings/)
    expect(found[1]).toMatch(/In the external store, so that runs get them: SHOP_TOKEN ?, declared by shop/)
    for (const text of found) expect(text).not.toContain(token)
  } finally {
    await service.stop()
    removeDirectory(SECRETS_DIR)
  }
})

test('settings are JSON, or text', async () => {
  const { visitor } = await signIn(dashboard)
  for (const [settingName, settingValue] of Object.entries({ A: '10', B: 'https://shop.example.com', C: '["a"]' }))
    await visitor.post(path, { kind: 'setting', settingName, settingValue })
  const rows = readRows(await visitor.get(path))
  expect(rows.map((row) => row.split(' ').slice(0, 2))).toEqual([
    ['A', '10'],
    ['B', '"https://shop.example.com"'],
    ['C', '["a"]'],
  ])
})

test.each([
  ['a name in small letters', { ...secret, secretName: 'shop' }, 'secretName', /^Use capital letters/],
  ['a short secret', { ...secret, secretValue: 'abc' }, 'secretValue', /^Enter at least 4 characters\.$/],
  ['a long secret', { ...secret, secretValue: 'a'.repeat(16_385) }, 'secretValue', /^Use at most 16384 characters\.$/],
  ['an empty setting', { kind: 'setting', settingName: 'A', settingValue: '' }, 'settingValue', /^Enter a value\.$/],
])('%s is refused at its field, and a secret is not shown again', async (_, form, field, message) => {
  const { visitor } = await signIn(dashboard)
  const page = await visitor.post(path, form)
  expect([page.status, fieldError(page, field)]).toEqual([400, expect.stringMatching(message)])
  if ('secretValue' in form) expect(page.text).not.toContain(`>\n${form.secretValue}`)
  expect(readRows(await visitor.get(path))).toEqual([])
})

test('at most 100 are stored, and an unknown kind is no page', async () => {
  const { visitor, accountId, id, name } = await signIn(dashboard)
  const by = { kind: 'user', id, name } as const
  for (let count = 0; count < 100; count++)
    await dashboard.domain.accountValues.put(accountId, 'secret', `NAME_${count}`, 'a value', by)
  const page = await visitor.post(path, secret)
  expect([page.status, pageText(page)]).toEqual([409, expect.stringContaining('This account has 100 secrets.')])
  expect((await visitor.post(path, { ...secret, kind: 'constructor' })).status).toBe(404)
})
