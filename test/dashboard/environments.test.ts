/** Environments in the dashboard: the switch, the page that adds and removes them, links to them, and promotion. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { Deployments } from '../../src/domain/deployments/deployments.ts'
import { type DashboardService, type SignedInUser, signIn, startDashboardService } from '../support/dashboard.ts'
import { control, copied, fieldError, linkPaths, pageText, readDocument, readRows } from '../support/html.ts'
import { writtenSnapshot } from '../support/snapshots.ts'

let dashboard: DashboardService

beforeAll(async () => {
  dashboard = await startDashboardService()
})

afterAll(() => dashboard.stop())

const path = '/settings/environments'

/** An admin of an account with `production` and `staging`. */
async function open() {
  const ada = await signIn(dashboard)
  const staging = await dashboard.domain.environments.add(ada.accountId, { name: 'staging' }, operator)
  return { ada, staging }
}

const switchTo = ({ visitor }: SignedInUser, environmentId: string, next = '/') =>
  visitor.post('/environment', { environmentId, next })

/** The title of the page, and the environment that its switch shows. */
async function shown({ visitor }: SignedInUser, at = '/runs') {
  const document = readDocument(await visitor.get(at))
  return [document.title, document.querySelector('#environment option[selected]')?.textContent]
}

test('an account with one environment sees nothing of environments, also after it had several', async () => {
  const ada = await signIn(dashboard)
  const paths = ['/', '/runs', '/workflows', '/api-keys', '/settings', '/settings/members', '/profile', '/go-to']
  const read = async () => {
    const pages = await Promise.all(paths.map((each) => ada.visitor.get(each)))
    // Charts end now, and times of use change.
    return pages.map(({ text }) => text.replaceAll(/<relative-time[\s\S]*?<\/relative-time>|datetime="[^"]*"/g, ''))
  }
  const before = await read()
  for (const [index, text] of before.entries()) {
    const expected = paths[index] === '/settings' ? ['Add an environment, such as staging'] : []
    const mentions = pageText({ text }).match(/[^.\n]*environment(?! variable)[^.\n]*/gi) ?? []
    expect([paths[index], mentions.length]).toEqual([paths[index], expected.length])
    expect(text).not.toContain('data-environment')
  }
  await dashboard.domain.environments.add(ada.accountId, { name: 'staging' }, operator)
  expect(pageText(await ada.visitor.get('/runs'))).toContain('staging')
  await dashboard.domain.environments.remove(ada.accountId, 'staging', operator)
  expect((await read()).slice(1)).toEqual(before.slice(1))
})

test('each page shows the environment that the session has switched to, and nothing of the others', async () => {
  const { ada, staging } = await open()
  const { domain } = dashboard
  for (const [accountId, name] of [
    [ada.accountId, 'Of production'],
    [staging.id, 'Of staging'],
  ] as const)
    await domain.apiKeys.create({ accountId, userId: ada.id, name, scopes: null, expiresAt: null }, operator)
  expect(await shown(ada)).toEqual(['Runs · production · execution-service', 'production'])
  expect(pageText(await ada.visitor.get('/api-keys'))).toContain('Of production')
  const switched = await switchTo(ada, staging.id, '/api-keys')
  expect([switched.status, switched.headers.location]).toEqual([303, '/api-keys'])
  const page = pageText(await ada.visitor.get('/api-keys'))
  expect([page.includes('Of staging'), page.includes('Of production'), page.includes(ada.name)]).toEqual([
    true,
    false,
    true,
  ])
  // Another session of the same user shows another environment.
  const other = await signIn(dashboard, { accountId: ada.accountId, name: 'Bo', role: 'viewer' })
  expect((await shown(other))[1]).toBe('production')
  await switchTo(ada, ada.accountId)
  expect((await shown(ada))[1]).toBe('production')
})

test('a session can only show environments of its own account, and goes on in none that was removed', async () => {
  const { ada, staging } = await open()
  const { ada: bo } = await open()
  for (const id of [bo.accountId, crypto.randomUUID(), '']) expect((await switchTo(ada, id)).status).toBe(404)
  expect((await switchTo(ada, staging.id, '//evil.example')).headers.location).toBe('/')
  await dashboard.domain.environments.add(ada.accountId, { name: 'dev' }, operator)
  await dashboard.domain.environments.remove(ada.accountId, 'staging', operator)
  const form = { name: 'Context' }
  const refused = await ada.visitor.post('/browser-contexts/new', form)
  expect(refused.status).toBe(403)
  expect(pageText(refused)).toContain('The environment that this page showed was removed. No changes were made.')
  expect((await shown(ada))[1]).toBe('production')
  expect((await ada.visitor.post('/browser-contexts/new', form)).status).toBe(303)
})

test('a form of a page that shows another environment than the session is refused', async () => {
  const { ada, staging } = await open()
  const { body } = readDocument(await ada.visitor.get('/browser-contexts/new'))
  expect(body.dataset.environment).toBe(ada.accountId)
  await switchTo(ada, staging.id)
  const form = { name: 'Context', shownEnvironment: ada.accountId }
  const refused = await ada.visitor.post('/browser-contexts/new', form)
  expect([refused.status, pageText(refused)]).toEqual([
    403,
    expect.stringContaining(
      'This form was for production, and you have switched to staging since. No changes were made.',
    ),
  ])
  expect((await ada.visitor.post('/browser-contexts/new', { ...form, shownEnvironment: staging.id })).status).toBe(303)
})

test('a link that names another environment asks before it switches', async () => {
  const { ada, staging } = await open()
  const link = `/runs?workflow=greet&environment=staging`
  const asked = await ada.visitor.get(link)
  expect(pageText(asked)).toContain('This link is to staging')
  expect((await shown(ada))[1]).toBe('production')
  const next = control(asked, 'next', '/runs?workflow=greet')?.value ?? ''
  expect((await switchTo(ada, staging.id, next)).headers.location).toBe('/runs?workflow=greet')
  expect(pageText(await ada.visitor.get(link))).not.toContain('This link is to')
  expect((await ada.visitor.get('/runs?environment=unknown')).status).toBe(200)
})

test('an admin adds environments, and removes one by typing its name, with a receipt', async () => {
  const ada = await signIn(dashboard)
  expect(linkPaths(await ada.visitor.get('/settings'), 'Add an environment, such as staging')).toEqual([path])
  const wrong = await ada.visitor.post(path, { name: 'Staging', first: 'production' })
  expect([wrong.status, fieldError(wrong, 'name')]).toEqual([400, expect.stringContaining('lower-case letters')])
  const added = await ada.visitor.post(path, { name: 'staging', first: 'live' })
  expect(added.headers.location).toBe(`${path}?done=added`)
  const rows = readRows(await ada.visitor.get(path))
  expect(rows).toEqual([
    expect.stringMatching(/^live Shown .* the first one$/),
    expect.stringMatching(/^staging .* Remove$/),
  ])
  const [removal = ''] = linkPaths(await ada.visitor.get(path), 'Remove staging')
  await switchTo(ada, removal.split('/')[3] ?? '')
  const refused = await ada.visitor.post(removal, { confirm: 'live' })
  expect([refused.status, fieldError(refused, 'confirm')]).toEqual([400, 'This is not the name of the environment.'])
  const removed = await ada.visitor.post(removal, { confirm: 'staging' })
  expect(JSON.parse(copied(removed, 'Copy receipt') ?? '')).toMatchObject({ environment: 'staging', left: 0 })
  expect(await shown(ada)).toEqual(['Runs · execution-service', undefined])
  expect((await ada.visitor.get(removal)).status).toBe(404)
  expect(pageText(await ada.visitor.get('/settings/audit-log'))).toContain('removed an environment staging')
})

test('members and settings of the account are those of all environments', async () => {
  const { ada, staging } = await open()
  await switchTo(ada, staging.id)
  expect(pageText(await ada.visitor.get('/settings/members'))).toContain(ada.email)
  const bo = await signIn(dashboard, { accountId: ada.accountId, name: 'Bo', role: 'operator' })
  const draft = { accountId: staging.id, userId: bo.id, name: 'Key of Bo', scopes: null, expiresAt: null }
  await dashboard.domain.apiKeys.create(draft, operator)
  expect(pageText(await ada.visitor.get(`/settings/members/${bo.id}/remove`))).toContain('Key of Bo')
  const saved = await ada.visitor.post('/settings', { name: 'Renamed', scopesEnabled: 'on' })
  expect(saved.status).toBe(303)
  await switchTo(ada, ada.accountId)
  expect(pageText(await ada.visitor.get('/profile'))).toContain('Admin of Renamed')
  expect((await switchTo(bo, staging.id)).status).toBe(303)
  expect((await bo.visitor.get(path)).status).toBe(403)
  expect((await bo.visitor.get('/promote')).status).toBe(403)
})

const snapshot = (version: string, more: object = {}) =>
  writtenSnapshot({ order: { version, variables: { type: 'object', properties: {}, ...more }, module: version } })

test('a developer promotes what an environment serves, after the same checks as a deployment', async () => {
  const { ada, staging } = await open()
  expect((await (await signIn(dashboard)).visitor.get('/promote')).status).toBe(404)
  const dev = await signIn(dashboard, { accountId: ada.accountId, role: 'developer', name: 'Dee' })
  await switchTo(dev, staging.id)
  expect(pageText(await dev.visitor.get('/promote'))).toContain('staging has no deployment')
  const deployments = new Deployments(dashboard.domain.store)
  const deploy = (version: string, more?: object) =>
    deployments.deploy(snapshot(version, more), { accountId: staging.id, by: operator, directory: null })
  const first = (await deploy('1.0.0')).deployment.id
  expect(linkPaths(await dev.visitor.get('/workflows'), 'Promote')).toEqual(['/promote'])
  const compared = await dev.visitor.get('/promote')
  expect(pageText(compared)).toContain('Changes in production order 1.0.0 is new')
  expect(control(compared, 'deploymentId')?.value).toBe(first)
  // What the page has shown is promoted, even if another deployment has become current since.
  await deploy('1.1.0', { required: ['size'] })
  const promoted = await dev.visitor.post('/promote', { to: 'production', deploymentId: first })
  expect(promoted.headers.location).toBe('/workflows?promotedTo=production')
  const current = async () => {
    await deployments.refresh()
    return deployments.current(ada.accountId).get('order')?.version
  }
  expect(await current()).toBe('1.0.0')

  const breaking = await dev.visitor.get('/promote?to=production')
  expect(pageText(breaking)).toContain('The workflow order has the version 1.1.0 after 1.0.0, but breaks its callers:')
  const form = { to: 'production', deploymentId: control(breaking, 'deploymentId')?.value ?? '' }
  const refused = await dev.visitor.post('/promote', form)
  expect([refused.status, pageText(refused)]).toEqual([409, expect.stringContaining('Nothing was promoted')])
  expect(await current()).toBe('1.0.0')
  expect((await dev.visitor.post('/promote', { ...form, allowBreaking: 'on' })).status).toBe(303)
  expect(await current()).toBe('1.1.0')
  expect(pageText(await dev.visitor.get('/promote'))).toContain('production already serves this.')
  for (const wrong of [{ to: 'unknown' }, { to: 'staging' }, { deploymentId: 'f'.repeat(64) }])
    expect((await dev.visitor.post('/promote', { ...form, ...wrong })).status).toBe(404)
})
