/** Uploading a storage state as a file: held to the rules of the Browser Context API, and quoted nowhere. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stateBytesMax } from '../../src/domain/browser-contexts/storage-state.ts'
import { findCanaries } from '../support/canaries.ts'
import { type DashboardService, fieldError, pageText, type SignedInUser, signIn } from '../support/dashboard.ts'
import { newContext, sendMultipart, serveBrowsers, stateOf, upload } from './context-pages.ts'

let served: DashboardService

beforeAll(async () => {
  served = await serveBrowsers()
})

afterAll(() => served.stop())

function stored({ accountId }: SignedInUser, id: string): Promise<string | undefined> {
  return served.domain.contextVersions.read(accountId, id)
}

const empty = '{"cookies":[],"origins":[]}'

test('what Playwright wrote is stored with all its members, known ones and others', async () => {
  const ada = await signIn(served)
  const { id } = await newContext(served, ada)
  const state = { ...stateOf(['a.example']), later: { member: [1, null, 'é'] } }
  await upload(ada, id, `\uFEFF${JSON.stringify(state, null, 2)}`)
  expect(await stored(ada, id)).toBe(JSON.stringify(state))
})

const [cookie] = stateOf(['a.example']).cookies
const wrong: [what: string, content: string, error: string | RegExp][] = [
  ['text that is no JSON', '{"cookies": [canary]}', 'The file is not JSON.'],
  ['nothing', '', 'The file is empty.'],
  ['null', 'null', 'The file must be object.'],
  ['no cookies', '{"origins":[]}', "The file must have required property 'cookies'."],
  ['a cookie of nothing', '{"cookies":[{}],"origins":[]}', "/cookies/0 must have required property 'name'."],
  [
    'a wrong domain',
    JSON.stringify({ cookies: [{ ...cookie, domain: ['canary'] }], origins: [] }),
    '/cookies/0/domain must be string.',
  ],
  [
    'another choice than there is',
    JSON.stringify({ cookies: [{ ...cookie, sameSite: 'canary' }], origins: [] }),
    '/cookies/0/sameSite must be equal to one of the allowed values.',
  ],
  ['two members of a name', '{"cookies":[],"cookies":["canary"],"origins":[]}', /two members of the same name/],
  ['a polluting member', '{"cookies":[],"origins":[],"__proto__":{}}', '/__proto__ is not allowed.'],
  ['too deep JSON', `{"cookies":[],"origins":[],"x":${'['.repeat(70)}${']'.repeat(70)}}`, /64 levels deep\.$/],
]

test.each(wrong)('%s is refused with the member at fault, never with its value', async (_, content, error) => {
  const ada = await signIn(served)
  const { id } = await newContext(served, ada)
  const answer = await upload(ada, id, content)
  expect(answer.status).toBe(400)
  if (typeof error === 'string') expect(fieldError(answer, 'state')).toBe(error)
  else expect(fieldError(answer, 'state')).toMatch(error)
  expect(answer.text).not.toContain('canary')
  expect(await stored(ada, id)).toBe(empty)
})

test('a file of 5 MiB is taken, and one byte more is refused in words', async () => {
  const ada = await signIn(served)
  const { id } = await newContext(served, ada)
  const [before = '', after = ''] = JSON.stringify(stateOf(['a.example'], { cookie: '|' })).split('|')
  const fits = `${before}${'v'.repeat(stateBytesMax - before.length - after.length)}${after}`
  expect((await upload(ada, id, fits)).status).toBe(303)
  for (const large of [fits.replace('vv', 'vvv'), fits + ' '.repeat(1024 * 1024)]) {
    const answer = await upload(ada, id, large)
    expect(answer.status).toBe(413)
    expect(fieldError(answer, 'state')).toBe('The file is too large. A storage state has at most 5\u00a0MiB.')
  }
  expect(await stored(ada, id)).toBe(fits)
})

describe('a form', () => {
  test('without a file asks for one', async () => {
    const ada = await signIn(served)
    const { id } = await newContext(served, ada)
    const none = '--x\r\nContent-Disposition: form-data; name="state"; filename=""\r\n\r\n\r\n--x--\r\n'
    const answers = [
      await sendMultipart(ada.visitor, id, Buffer.from(none), 'x'),
      await upload(ada, id, empty, 'another'),
      await ada.visitor.post(`/browser-contexts/${id}`),
    ]
    for (const answer of answers) {
      expect(answer.status).toBe(400)
      expect(fieldError(answer, 'state')).toBe('Choose a file.')
    }
  })

  test('of more parts than it has fields is refused before they are taken apart', async () => {
    const ada = await signIn(served)
    const { id } = await newContext(served, ada)
    const part = '--x\r\nContent-Disposition: form-data; name="state"; filename="a"\r\n\r\n\r\n'
    const parts = Buffer.from(`${part.repeat(40_000)}--x--\r\n`)
    expect((await sendMultipart(ada.visitor, id, parts, 'x')).status).toBe(415)
    expect(await stored(ada, id)).toBe(empty)
  })

  test('of another site is refused', async () => {
    const ada = await signIn(served)
    const { id } = await newContext(served, ada)
    const headers = { 'Sec-Fetch-Site': 'cross-site', 'Content-Type': 'multipart/form-data; boundary=x' }
    const answer = await ada.visitor.send('POST', `/browser-contexts/${id}`, { headers, body: '--x--\r\n' })
    expect(answer.status).toBe(403)
  })
})

test('what a browser context holds is shown on no page, and stands in no file and no line of the log', async () => {
  const ada = await signIn(served)
  const { id } = await newContext(served, ada, 'Shop')
  const canaries = { cookie: crypto.randomUUID(), stored: crypto.randomUUID() }
  const state = JSON.stringify(stateOf(['visible-site.example'], canaries))
  const broken = [state.slice(0, -1), state.replace('"path":"/"', `"path":["${canaries.cookie}"]`), `${state}${state}`]
  const answers = []
  for (const content of [state, ...broken, state]) answers.push(await upload(ada, id, content))
  answers.push(await ada.visitor.post(`/browser-contexts/${id}/versions/1/restore`))
  expect(answers.map(({ status }) => status)).toEqual([303, 400, 400, 400, 303, 303])
  for (const path of ['', '/rename', '/delete', '/versions/1/restore']) {
    answers.push(await ada.visitor.get(`/browser-contexts/${id}${path}`))
  }
  for (const path of ['/browser-contexts', '/settings/audit-log', '/settings/audit-log.jsonl']) {
    answers.push(await ada.visitor.get(path))
  }
  const pages = answers.map(({ text }, index): [string, string] => [`answer ${index}`, text])
  const places: [string, string | Buffer][] = [
    ...pages,
    ...(await served.contents()),
    ['log', JSON.stringify(served.log)],
  ]
  expect(findCanaries(places, Object.values(canaries))).toEqual([])
  // The search does find what is there.
  expect(findCanaries(places, ['visible-site.example'])).not.toEqual([])
  expect(pageText(answers[6] ?? { text: '' })).toContain('visible-site.example')
})
