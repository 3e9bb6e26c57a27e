/** The tab "Browser Contexts": create, upload, rename, restore, delete, and contexts in use by a run. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type DashboardService, type SignedInUser, signIn } from '../support/dashboard.ts'
import { fieldError, linkPaths, pageText, readRows } from '../support/html.ts'
import {
  claim,
  createState,
  leaseContext,
  newContext,
  queueFromForm,
  startBrowserDashboard,
  upload,
} from './browser-context-helpers.ts'

let dashboard: DashboardService

beforeAll(async () => {
  dashboard = await startBrowserDashboard()
})

afterAll(() => dashboard.stop())

async function page({ visitor }: SignedInUser, path: string): Promise<string> {
  const response = await visitor.get(path)
  expect(response.status).toBe(200)
  return pageText(response)
}

/** Returns the text of each row of the page's tables. */
async function rows({ visitor }: SignedInUser, path: string): Promise<string[]> {
  return readRows(await visitor.get(path))
}

async function listContextEntries({ visitor }: SignedInUser) {
  const { text } = await visitor.get('/settings/audit-log.jsonl')
  const entries = text.trim().split('\n')
  return entries.map((line) => JSON.parse(line)).filter(({ action }) => action.startsWith('browserContext.'))
}

test('the empty list explains browser contexts', async () => {
  const text = await page(await signIn(dashboard), '/browser-contexts')
  expect(text).toContain('No browser contexts')
  expect(text).toContain('A browser context stores what a browser remembers')
  expect(text).toContain('Queue a run with a browser context')
})

test('creating, uploading, restoring, renaming and deleting are recorded in the audit log', async () => {
  const ada = await signIn(dashboard)
  const { visitor, accountId } = ada
  const bo = await signIn(dashboard, { accountId, role: 'developer', name: 'Bo' })
  const created = await visitor.post('/browser-contexts/new', { name: ' Shop ' })
  const path = String(created.headers.location).replace('?done=created', '')
  const id = path.split('/')[2] ?? ''
  expect(await page(ada, `${path}?done=created`)).toContain('Browser context created. It is empty until')

  expect((await upload(ada, id, JSON.stringify(createState(['.shop.example'])))).headers.location).toBe(
    `${path}?done=uploaded`,
  )
  expect((await upload(bo, id, JSON.stringify(createState(['bank.example'])))).status).toBe(303)
  expect((await visitor.get(`${path}/versions/2/restore`)).status).toBe(404)
  const question = await page(bo, `${path}/versions/1/restore`)
  expect(question).toContain('Restore version 1?')
  expect(question).toContain('Its state becomes version 3, which the next run starts with.')
  expect(question).toContain('shop.example')
  expect((await bo.visitor.post(`${path}/versions/1/restore`)).headers.location).toBe(`${path}?done=restored`)
  const versions = (await rows(ada, path)).map((row) => row.replaceAll(/\d{4}-\d\d-\d\d [\d:]+ UTC/g, 'then'))
  expect(versions).toEqual([
    expect.stringMatching(/^3 Current then Bo restored from 1 shop\.example \d+ B$/),
    expect.stringMatching(/^2 then Bo bank\.example \d+ B Restore$/),
    expect.stringMatching(/^1 then Ada shop\.example \d+ B Restore$/),
  ])
  expect(JSON.parse((await dashboard.domain.contextVersions.read(accountId, id)) ?? '')).toEqual(
    createState(['.shop.example']),
  )

  expect((await visitor.post(`${path}/rename`, { name: 'Shop, signed in' })).headers.location).toBe(
    `${path}?done=renamed`,
  )
  expect(await page(ada, path)).toContain('Shop, signed in')
  const warning = await page(ada, `${path}/delete`)
  expect(warning).toContain('This cannot be undone.')
  expect(warning).toContain('Queued runs that use it still start, and fail when they request their browser.')
  expect((await bo.visitor.post(`${path}/delete`)).headers.location).toBe('/browser-contexts?done=deleted')
  expect((await visitor.get(path)).status).toBe(404)
  expect(await dashboard.domain.contextVersions.read(accountId, id)).toBeUndefined()

  const subject = (name: string) => ({ id, name })
  expect(await listContextEntries(ada)).toMatchObject([
    { action: 'browserContext.deleted', by: { kind: 'user', id: bo.id }, subject: subject('Shop, signed in') },
    { action: 'browserContext.renamed', by: { id: ada.id }, details: { from: 'Shop', to: 'Shop, signed in' } },
    { action: 'browserContext.restored', by: { id: bo.id }, details: { version: 3, restoredFrom: 1 } },
    { action: 'browserContext.stateReplaced', by: { id: bo.id }, details: { version: 2 } },
    { action: 'browserContext.stateReplaced', by: { id: ada.id }, details: { version: 1 } },
    { action: 'browserContext.created', by: { kind: 'user', id: ada.id, name: 'Ada' }, subject: subject('Shop') },
  ])
})

test('the page has commands to queue a run with the context and to upload a state', async () => {
  const ada = await signIn(dashboard)
  const { id } = await newContext(dashboard, ada, 'Shop')
  const text = await page(ada, `/browser-contexts/${id}`)
  const query = `browserContextId=${id}&persistContext=onSuccess`
  expect(text).toContain(`curl -X PUT '${dashboard.executionUrl}/v1/execution/queue-remote/browse?${query}' \\`)
  expect(text).toContain(`curl -X PUT ${dashboard.browserContextUrl}/alpha/browser-contexts/${id}/storage-state \\`)
  expect(text).toContain("-H 'x-service-api-key: <API_KEY>'")
  const { text: markup } = await ada.visitor.get(`/browser-contexts/${id}`)
  expect(markup).toContain(`<a href="/workflows/browse?browserContextId=${id}#queue">Browse a site</a>`)
})

test('a taken or invalid name is refused, and the form keeps it', async () => {
  const ada = await signIn(dashboard)
  const { id } = await newContext(dashboard, ada, 'Shop')
  const other = await newContext(dashboard, ada, 'Bank')
  const paths = ['/browser-contexts/new', `/browser-contexts/${other.id}/rename`]
  for (const path of paths) {
    const conflict = await ada.visitor.post(path, { name: 'Shop' })
    expect([path, conflict.status]).toEqual([path, 409])
    expect(fieldError(conflict, 'name')).toBe('Another browser context has this name. Enter a different name.')
    expect(conflict.text).toContain('value="Shop"')
    const invalid = await ada.visitor.post(path, { name: 'a\u0007b' })
    expect([path, invalid.status]).toEqual([path, 400])
    expect(fieldError(invalid, 'name')).toBe('Remove the control characters.')
  }
  expect((await ada.visitor.post(`/browser-contexts/${id}/rename`, { name: '' })).status).toBe(400)
  expect((await ada.visitor.post(`/browser-contexts/${id}/rename`, { name: 'Shop' })).status).toBe(303)
  expect((await ada.visitor.post('/browser-contexts/new', { name: '' })).status).toBe(303)
  expect((await rows(ada, '/browser-contexts')).map((row) => row.split(' ')[0])).toEqual([
    expect.stringMatching(/^context-/),
    'Bank',
    'Shop',
  ])
  // A rename to the same name is not recorded.
  expect((await listContextEntries(ada)).map(({ action }) => action)).toEqual(['browserContext.created'])
})

describe('the list', () => {
  test('shows size, sites and last use', async () => {
    const ada = await signIn(dashboard)
    const { id } = await newContext(dashboard, ada, 'Shop')
    await newContext(dashboard, ada, 'Bank')
    await upload(
      ada,
      id,
      JSON.stringify(createState(['e.example', '.a.example', 'a.example', 'b.example', 'c.example'])),
    )
    const [bank, shop] = await rows(ada, '/browser-contexts')
    expect(bank).toMatch(/^Bank Empty none none – .* never$/)
    expect(shop).toMatch(/^Shop Ready 1 a\.example, b\.example, c\.example \+1 [\d.]+ (B|KiB) /)
  })

  test('has pages of fifty', async () => {
    const ada = await signIn(dashboard)
    for (let index = 0; index < 51; index++) await newContext(dashboard, ada, `Context ${index}`)
    const first = await ada.visitor.get('/browser-contexts')
    expect(await rows(ada, '/browser-contexts')).toHaveLength(50)
    const [older = ''] = linkPaths(first, /Older/)
    expect(await rows(ada, older)).toEqual([expect.stringMatching(/^Context 0 /)])
    const other = await signIn(dashboard)
    expect((await other.visitor.get(older)).headers.location).toBe('/browser-contexts')
  })
})

describe('a browser context in use by a run', () => {
  test('refuses changes, but can be deleted', async () => {
    const ada = await signIn(dashboard)
    const { id } = await newContext(dashboard, ada, 'Shop')
    const path = `/browser-contexts/${id}`
    for (const site of ['a.example', 'b.example']) await upload(ada, id, JSON.stringify(createState([site])))
    const { runId } = await leaseContext(dashboard, ada, id)
    const short = `…${runId.slice(-8)}`
    expect((await rows(ada, '/browser-contexts'))[0]).toMatch(`Shop In use run ${short} 2`)
    expect((await ada.visitor.get(path)).text).toContain(`href="/runs/${runId}"`)
    expect(await page(ada, path)).toContain(`In use Shop ${id}`)

    const sentence = `Run ${short} is using this browser context and may change it. Nothing was saved.`
    const responses = [
      await upload(ada, id, JSON.stringify(createState([]))),
      await ada.visitor.post(`${path}/versions/1/restore`),
    ]
    for (const response of responses) {
      expect(response.status).toBe(409)
      expect(pageText(response)).toContain(sentence)
      expect(response.text).toContain(`href="/runs/${runId}"`)
    }
    expect((await dashboard.domain.contextVersions.list(ada.accountId, id))?.map(({ number }) => number)).toEqual([
      2, 1,
    ])
    expect((await listContextEntries(ada)).map(({ details }) => details)).toEqual([{ version: 2 }, { version: 1 }])

    expect(await page(ada, `${path}/delete`)).toContain(`Run ${short} is using it. The run continues, but`)
    expect((await ada.visitor.post(`${path}/delete`)).status).toBe(303)
    expect((await ada.visitor.get(path)).status).toBe(404)
  })

  test('makes the next run wait, whose page says why', async () => {
    const ada = await signIn(dashboard)
    const { id } = await newContext(dashboard, ada, 'Shop')
    const holder = await leaseContext(dashboard, ada, id)
    const next = await queueFromForm(ada, { browserContextId: id, persistContext: 'always' })
    expect(await claim(dashboard)).toEqual([])
    const text = await page(ada, `/runs/${next}`)
    expect(text).toContain(`Waiting for its browser context, Shop , which run …${holder.runId.slice(-8)} is using.`)
    expect(text).toContain('Browser context Shop')
    expect(text).toContain('Save browser state Always, even if the run fails')
    expect(await page(ada, '/runs')).toContain('waiting for its browser context')
    await ada.visitor.post(`/browser-contexts/${id}/delete`)
    const deleted = await page(ada, `/runs/${next}`)
    // Within a second, maintenance lets it start.
    expect(deleted).toMatch(/Its browser context was deleted. The run starts without one.|No workers are running/)
    expect(deleted).toContain('Browser context deleted')
  })
})
