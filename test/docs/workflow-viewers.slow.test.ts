/** Who sees the docs of which workflows: several accounts, by session and by API key. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { Deployments } from '../../src/domain/deployments/deployments.ts'
import { representations } from '../../src/domain/workflows/workflows-document.ts'
import { sendRaw } from '../operations/raw-http.ts'
import { type DashboardService, type SignedInUser, signIn, startDashboardService } from '../support/dashboard.ts'
import { until } from '../support/service.ts'
import { runModule, writtenSnapshot } from '../support/snapshots.ts'
import { expectOnlyKnownMarkup, hostileTexts } from './hostile-texts.ts'
import { searchDocs, siteText } from './site.ts'

/** Text that would be markup or a script, if it were not shown as text. */
const hostile = 'Sends <img src=x onerror=alert(1)> [now](javascript:alert(1)) </title>'

const invoices = {
  title: 'Send the invoices',
  description: hostile,
  variables: { type: 'object', properties: { month: { type: 'string', description: hostile } } },
  module: runModule('return 1'),
}

let service: DashboardService
/** Has a deployment in addition to that of the installation, which is all that `other` sees. */
let own: SignedInUser
let other: SignedInUser

beforeAll(async () => {
  service = await startDashboardService()
  ;[own, other] = [await signIn(service), await signIn(service)]
  const snapshot = writtenSnapshot({ 'send.invoices': invoices })
  const deployments = new Deployments(service.domain.store)
  await deployments.deploy(snapshot, { accountId: own.accountId, by: operator, directory: '/' })
  await until('the deployment is current', async () => (await own.visitor.get('/workflows')).text.includes('invoices'))
})

afterAll(() => service.stop())

function newKey({ accountId, id }: SignedInUser) {
  const key = { accountId, userId: id, name: `key ${crypto.randomUUID()}`, scopes: null, expiresAt: null }
  return service.domain.apiKeys.create(key, operator)
}

async function readerByKey(user: SignedInUser) {
  const { value } = await newKey(user)
  const headers = ['Authorization', `Bearer ${value}`]
  return (path: string) => sendRaw(service.executionUrl, { method: 'GET', path, headers })
}

const lists = ['workflows/', 'workflows/index.md', 'workflows.json', 'workflows.js']

test('each account sees only the workflows that it may run, by session and by key; those of another are not found', async () => {
  const views = [
    [(path: string) => own.visitor.get(path), (path: string) => other.visitor.get(path)],
    [await readerByKey(own), await readerByKey(other)],
  ] as const
  for (const [ofOwn, ofOther] of views) {
    // Twice, so that a response kept for either account would show.
    for (const name of [...lists, ...lists]) {
      const [mine, theirs] = [await ofOwn(`/docs/${name}`), await ofOther(`/docs/${name}`)]
      expect([name, mine.status, theirs.status]).toEqual([name, 200, 200])
      expect(mine.text).toContain('send.invoices')
      expect(mine.text).toContain('Hold alone')
      expect(theirs.text).toContain('Hold alone')
      expect(theirs.text).not.toContain('invoices')
    }
    expect((await ofOwn('/docs/workflows/send.invoices')).status).toBe(200)
    for (const extension of ['', '.md']) {
      const absent = await ofOther(`/docs/workflows/send.invoices${extension}`)
      const unknown = await ofOther(`/docs/workflows/nothing${extension}`)
      expect([absent.status, absent.text.replaceAll('send.invoices', 'nothing')]).toEqual([404, unknown.text])
    }
  }
})

test('without a session or a key nothing is shown, and the host of the Browser Context API has none', async () => {
  for (const name of [...lists, 'workflows/count-words']) {
    const get = (url: string) => sendRaw(url, { method: 'GET', path: `/docs/${name}` })
    const [signedOut, withoutKey, elsewhere] = [
      await get(service.url),
      await get(service.executionUrl),
      await get(service.browserContextUrl),
    ]
    expect([name, signedOut.status, signedOut.text]).toEqual([name, 303, ''])
    expect([name, withoutKey.status, withoutKey.text]).toEqual([name, 401, 'Unauthorized'])
    expect([name, elsewhere.status]).toEqual([name, 404])
  }
})

test('no response may be stored, or loaded by a page of another origin', async () => {
  const byKey = await readerByKey(own)
  for (const name of [...lists, 'workflows/single', 'workflows/nothing']) {
    for (const { headers } of [await own.visitor.get(`/docs/${name}`), await byKey(`/docs/${name}`)]) {
      expect([name, headers['cache-control']]).toEqual([name, 'no-store'])
      expect(headers['cross-origin-resource-policy']).toBe('same-origin')
      expect(headers['content-security-policy']).toMatch(/script-src 'self'; style-src 'self';.*frame-ancestors 'none'/)
    }
  }
})

test('the document is the one that the Execution API returns, and the list links to it', async () => {
  const byKey = await readerByKey(own)
  const { text } = await own.visitor.get('/docs/workflows.json')
  expect(text).toBe((await byKey('/v1/execution/openapi.json')).text)
  expect(JSON.parse(text).paths).toHaveProperty(['/v1/execution/queue-remote/send.invoices'])
  expect((await own.visitor.get('/docs/workflows/')).text).toContain('href="../workflows.json"')
})

test('a page is made once, for users and keys, and sent compressed to clients that accept it', async () => {
  const user = await signIn(service)
  const { value } = await newKey(user)
  const byKey = (name: string, coding: string) => {
    const headers = { Authorization: `Bearer ${value}`, 'Accept-Encoding': coding }
    return fetch(`${service.executionUrl}/docs/${name}`, { headers })
  }
  for (const name of ['workflows/', 'workflows/single', 'workflows/single.md', 'workflows.js']) {
    const { text } = await user.visitor.get(`/docs/${name}`)
    const compressed = await byKey(name, 'gzip')
    expect([await compressed.text(), compressed.headers.get('vary')]).toEqual([text, 'Accept-Encoding'])
    expect(compressed.headers.get('content-encoding')).toBe(text.length < 1024 ? null : 'gzip')
    const { bytes } = representations
    expect(await (await byKey(name, 'identity')).text()).toBe(text)
    expect(representations.bytes).toBe(bytes)
  }
  // Pages that do not exist are not kept: callers choose their names.
  const { bytes } = representations
  expect((await byKey('workflows/unknown', 'identity')).status).toBe(404)
  expect(representations.bytes).toBe(bytes)
})

test('the search of these pages finds workflows by title, id and variable', async () => {
  expect((await own.visitor.get('/docs/workflows/single')).text).toContain('data-workflows-index="../workflows.js"')
  const { text } = await own.visitor.get('/docs/workflows.js')
  for (const query of ['send the invoices', 'send invoices', 'month']) {
    expect(searchDocs(text, query)[0]).toMatchObject({ place: 'Workflow', href: 'workflows/send.invoices' })
  }
})

test('the list and the pages of workflows with hostile texts have only the markup that the service writes', async () => {
  const { accountId, visitor } = await signIn(service)
  const named = hostileTexts.map(
    (text, index) => [`w${index}`, { ...invoices, title: text, description: text }] as const,
  )
  const snapshot = writtenSnapshot(Object.fromEntries(named))
  await new Deployments(service.domain.store).deploy(snapshot, { accountId, by: operator, directory: '/' })
  await until('the deployment is current', async () => (await visitor.get('/workflows')).text.includes('w100'))
  const articleOf = (page: string) => /<article>(.*)<\/article>/s.exec(page)?.[1] ?? ''
  const list = await visitor.get('/docs/workflows/')
  expectOnlyKnownMarkup(articleOf(list.text), 'all')
  expect(list.text.match(/<tr>/g)?.length).toBeGreaterThan(hostileTexts.length)
  for (const [id, { title }] of named.filter((_each, index) => index % 10 === 0)) {
    const { status, text } = await visitor.get(`/docs/workflows/${id}`)
    expect([title, status]).toEqual([title, 200])
    expectOnlyKnownMarkup(articleOf(text), title)
  }
})

test('markup and scripts of authors are shown as text', async () => {
  for (const path of ['/docs/workflows/', '/docs/workflows/send.invoices']) {
    const { text } = await own.visitor.get(path)
    expect(text).not.toMatch(/<img src=x|href="javascript|<\/title> /)
    expect(text).toContain('&lt;img src=x onerror=alert(1)&gt;')
  }
})

test('llms-full.txt has every page that llms.txt lists', async () => {
  const [list, full] = [await siteText('llms.txt'), await siteText('llms-full.txt')]
  const names = [...list.matchAll(/\]\(([\w-]+\.md)\)/g)].map(([, name = '']) => name)
  expect(names).toEqual(expect.arrayContaining(['errors.md', 'example-count-words.md']))
  for (const name of names) expect(full).toContain((await siteText(name)).trim())
})
