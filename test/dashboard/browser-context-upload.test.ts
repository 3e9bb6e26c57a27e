/** Uploading a storage state: validated by the schema of the Browser Context API, and never shown. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stateBytesMax } from '../../src/domain/browser-contexts/storage-state.ts'
import { findCanaries } from '../support/canaries.ts'
import { type DashboardService, type SignedInUser, signIn } from '../support/dashboard.ts'
import { fieldError, pageText } from '../support/html.ts'
import { createState, newContext, sendMultipart, startBrowserDashboard, upload } from './browser-context-helpers.ts'

let dashboard: DashboardService

beforeAll(async () => {
  dashboard = await startBrowserDashboard()
})

afterAll(() => dashboard.stop())

function stored({ accountId }: SignedInUser, id: string): Promise<string | undefined> {
  return dashboard.domain.contextVersions.read(accountId, id)
}

const empty = '{"cookies":[],"origins":[]}'

test('a storage state is stored with all its members, including unknown ones', async () => {
  const ada = await signIn(dashboard)
  const { id } = await newContext(dashboard, ada)
  const state = { ...createState(['a.example']), later: { member: [1, null, 'é'] } }
  await upload(ada, id, `\uFEFF${JSON.stringify(state, null, 2)}`)
  expect(await stored(ada, id)).toBe(JSON.stringify(state))
})

const [cookie] = createState(['a.example']).cookies
const invalid: [what: string, content: string, error: string | RegExp][] = [
  ['text that is not JSON', '{"cookies": [canary]}', 'The file is not JSON.'],
  ['an empty file', '', 'The file is empty.'],
  ['null', 'null', 'The file must be object.'],
  ['no cookies', '{"origins":[]}', '/cookies is required.'],
  ['an empty cookie', '{"cookies":[{}],"origins":[]}', '/cookies/0/name is required.'],
  [
    'a invalid domain',
    JSON.stringify({ cookies: [{ ...cookie, domain: ['canary'] }], origins: [] }),
    '/cookies/0/domain must be string.',
  ],
  [
    'an unknown enum value',
    JSON.stringify({ cookies: [{ ...cookie, sameSite: 'canary' }], origins: [] }),
    '/cookies/0/sameSite must be equal to one of the allowed values: "Strict", "Lax", "None".',
  ],
  ['a duplicate member', '{"cookies":[],"cookies":["canary"],"origins":[]}', /two members of the same name/],
  ['a polluting member', '{"cookies":[],"origins":[],"__proto__":{}}', '/__proto__ is not allowed.'],
  ['deeply nested JSON', `{"cookies":[],"origins":[],"x":${'['.repeat(70)}${']'.repeat(70)}}`, /64 levels deep\.$/],
]

test.each(invalid)('%s is refused with an error that names the member but not its value', async (_, content, error) => {
  const ada = await signIn(dashboard)
  const { id } = await newContext(dashboard, ada)
  const response = await upload(ada, id, content)
  expect(response.status).toBe(400)
  if (typeof error === 'string') expect(fieldError(response, 'state')).toBe(error)
  else expect(fieldError(response, 'state')).toMatch(error)
  expect(response.text).not.toContain('canary')
  expect(await stored(ada, id)).toBe(empty)
})

test('a file of 5 MiB is accepted, and one byte more is refused', async () => {
  const ada = await signIn(dashboard)
  const { id } = await newContext(dashboard, ada)
  const [before = '', after = ''] = JSON.stringify(createState(['a.example'], { cookie: '|' })).split('|')
  const fits = `${before}${'v'.repeat(stateBytesMax - before.length - after.length)}${after}`
  expect((await upload(ada, id, fits)).status).toBe(303)
  for (const large of [fits.replace('vv', 'vvv'), fits + ' '.repeat(1024 * 1024)]) {
    const response = await upload(ada, id, large)
    expect(response.status).toBe(413)
    expect(fieldError(response, 'state')).toBe('The file is too large. A storage state has at most 5\u00a0MiB.')
  }
  expect(await stored(ada, id)).toBe(fits)
})

describe('an upload', () => {
  test('without a file is refused', async () => {
    const ada = await signIn(dashboard)
    const { id } = await newContext(dashboard, ada)
    const none = '--x\r\nContent-Disposition: form-data; name="state"; filename=""\r\n\r\n\r\n--x--\r\n'
    const responses = [
      await sendMultipart(ada.visitor, id, Buffer.from(none), 'x'),
      await upload(ada, id, empty, 'another'),
      await ada.visitor.post(`/browser-contexts/${id}`),
    ]
    for (const response of responses) {
      expect(response.status).toBe(400)
      expect(fieldError(response, 'state')).toBe('Choose a file.')
    }
  })

  test('with too many parts is refused before they are parsed', async () => {
    const ada = await signIn(dashboard)
    const { id } = await newContext(dashboard, ada)
    const part = '--x\r\nContent-Disposition: form-data; name="state"; filename="a"\r\n\r\n\r\n'
    const parts = Buffer.from(`${part.repeat(40_000)}--x--\r\n`)
    expect((await sendMultipart(ada.visitor, id, parts, 'x')).status).toBe(415)
    expect(await stored(ada, id)).toBe(empty)
  })

  test('from another site is refused', async () => {
    const ada = await signIn(dashboard)
    const { id } = await newContext(dashboard, ada)
    const headers = { 'Sec-Fetch-Site': 'cross-site', 'Content-Type': 'multipart/form-data; boundary=x' }
    const response = await ada.visitor.send('POST', `/browser-contexts/${id}`, { headers, body: '--x--\r\n' })
    expect(response.status).toBe(403)
  })
})

test('the contents of a browser context appear on no page, in no file and in no log line', async () => {
  const ada = await signIn(dashboard)
  const { id } = await newContext(dashboard, ada, 'Shop')
  const canaries = { cookie: crypto.randomUUID(), stored: crypto.randomUUID() }
  const state = JSON.stringify(createState(['visible-site.example'], canaries))
  const broken = [state.slice(0, -1), state.replace('"path":"/"', `"path":["${canaries.cookie}"]`), `${state}${state}`]
  const responses = []
  for (const content of [state, ...broken, state]) responses.push(await upload(ada, id, content))
  responses.push(await ada.visitor.post(`/browser-contexts/${id}/versions/1/restore`))
  expect(responses.map(({ status }) => status)).toEqual([303, 400, 400, 400, 303, 303])
  for (const path of ['', '/rename', '/delete', '/versions/1/restore']) {
    responses.push(await ada.visitor.get(`/browser-contexts/${id}${path}`))
  }
  for (const path of ['/browser-contexts', '/settings/audit-log', '/settings/audit-log.jsonl']) {
    responses.push(await ada.visitor.get(path))
  }
  const pages = responses.map(({ text }, index): [string, string] => [`response ${index}`, text])
  const contents: [string, string | Buffer][] = [
    ...pages,
    ...(await dashboard.contents()),
    ['log', JSON.stringify(dashboard.log)],
  ]
  expect(findCanaries(contents, Object.values(canaries))).toEqual([])
  // Proves that the search works.
  expect(findCanaries(contents, ['visible-site.example'])).not.toEqual([])
  expect(pageText(responses[6] ?? { text: '' })).toContain('visible-site.example')
})
