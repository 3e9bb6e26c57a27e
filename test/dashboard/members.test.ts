/** Members: roles, invitations and removal, after which nothing of a member is accepted. */
import { readFileSync } from 'node:fs'
import { within } from '@testing-library/dom'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { roleDescriptions, roles as roleNames } from '../../src/domain/accounts/roles.ts'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { sendRaw } from '../operations/raw-http.ts'
import {
  type DashboardService,
  password,
  type SignedInUser,
  signIn,
  startDashboardService,
  Visitor,
} from '../support/dashboard.ts'
import { find, inputValue, type Markup, pageText } from '../support/html.ts'

let dashboard: DashboardService

beforeAll(async () => {
  dashboard = await startDashboardService()
})

afterAll(() => dashboard.stop())

const members = '/settings/members'

async function newKey({ accountId, id: userId }: SignedInUser, name = 'Key') {
  return dashboard.domain.apiKeys.create({ accountId, userId, name, scopes: null, expiresAt: null }, operator)
}

async function call(url: string, value: string): Promise<number> {
  const headers = ['Authorization', `Bearer ${value}`]
  return (await sendRaw(url, { method: 'GET', path: '/v1/execution/runs', headers })).status
}

/** Opens the event stream of a queued run and reads its first event. */
async function openStream(value: string): Promise<{ ended: Promise<void> }> {
  const headers = { Authorization: `Bearer ${value}`, 'Content-Type': 'application/json' }
  const url = `${dashboard.executionUrl}/v1/execution`
  const body = '{"variableData":{"name":"Ada"}}'
  const queued = (await (await fetch(`${url}/queue-remote/greet`, { method: 'PUT', headers, body })).json()) as {
    id: string
  }
  const stream = (await fetch(`${url}/runs/${queued.id}/events`, { headers })).body?.getReader()
  if (!stream) throw new Error('The response has no body.')
  await stream.read()
  const toEnd = async () => {
    while (!(await stream.read()).done);
  }
  return { ended: toEnd() }
}

function roles({ accountId }: SignedInUser) {
  return dashboard.domain.users.list(accountId).then((users) => users.map(({ name, role }) => `${name}: ${role}`))
}

test('members are listed for all users, with actions only for admins', async () => {
  const ada = await signIn(dashboard)
  const bo = await signIn(dashboard, { accountId: ada.accountId, role: 'developer', name: 'Bo <i>' })
  const [ownersPage, membersPage] = [await ada.visitor.get(members), await bo.visitor.get(members)]
  for (const page of [ownersPage, membersPage]) {
    for (const text of ['Ada', ada.email, 'Bo <i>', bo.email, 'Admin', 'Developer'])
      expect(pageText(page)).toContain(text)
    expect(page.text).not.toContain('<i>')
  }
  const actions = (page: Markup) => {
    const main = within(find(page).getByRole('main'))
    const links = main.queryAllByRole('link').map((link) => link.getAttribute('href') ?? '')
    const buttons = main
      .queryAllByRole<HTMLButtonElement>('button')
      .map(({ form }) => form?.getAttribute('action') ?? '')
    return [...links, ...buttons].filter((path) => path.startsWith(`${members}/`))
  }
  expect(actions(ownersPage)).toEqual(
    expect.arrayContaining([`${members}/${bo.id}/role`, `${members}/${bo.id}/remove`]),
  )
  expect(actions(ownersPage)).not.toContain(`${members}/${ada.id}/remove`)
  expect(actions(membersPage)).toEqual([])
})

test('a changed role applies from the next request', async () => {
  const ada = await signIn(dashboard)
  const bo = await signIn(dashboard, { accountId: ada.accountId, role: 'developer', name: 'Bo' })
  const give = (person: SignedInUser, to: SignedInUser, role: string) =>
    person.visitor.post(`${members}/${to.id}/role`, { role })
  expect((await bo.visitor.get('/settings/audit-log')).status).toBe(403)
  expect((await give(ada, bo, 'admin')).headers.location).toBe(`${members}?done=role`)
  expect((await bo.visitor.get('/settings/audit-log')).status).toBe(200)
  expect((await give(bo, ada, 'developer')).status).toBe(303)
  expect((await ada.visitor.get('/settings/audit-log')).status).toBe(403)
  expect((await give(ada, bo, 'developer')).status).toBe(403)
  for (const role of ['owner', '', 'Admin', '__proto__']) expect((await give(bo, ada, role)).status).toBe(400)
  expect((await bo.visitor.post(`${members}/${ada.id}/role`)).status).toBe(400)
  expect(await roles(ada)).toEqual(['Ada: developer', 'Bo: admin'])
})

test('a viewer creates and rotates no API key, which would use up those of the account', async () => {
  const ada = await signIn(dashboard)
  const bo = await signIn(dashboard, { accountId: ada.accountId, role: 'operator', name: 'Bo' })
  const { id } = await newKey(bo)
  expect((await bo.visitor.get('/api-keys')).text).toContain(`/api-keys/${id}/rotate`)
  expect((await ada.visitor.post(`${members}/${bo.id}/role`, { role: 'viewer' })).status).toBe(303)
  const page = (await bo.visitor.get('/api-keys')).text
  expect([page.includes('/api-keys/new'), page.includes(`${id}/rotate`)]).toEqual([false, false])
  expect((await bo.visitor.post('/api-keys/new', { name: 'mine', lifetime: '' })).status).toBe(403)
  expect((await bo.visitor.post(`/api-keys/${id}/rotate`, {})).status).toBe(403)
  expect((await bo.visitor.post(`/api-keys/${id}/delete`)).status).toBe(303)
})

test('the documentation has the roles as the dashboard describes them', () => {
  const guide = readFileSync(new URL('../../docs/operating.md', import.meta.url), 'utf8')
  for (const role of roleNames) expect(guide).toContain(`| ${role} | ${roleDescriptions[role]} |`)
})

describe('the only admin', () => {
  const message = 'This user is the only admin. Make another user an admin first.'

  test('can neither be removed nor lose the role', async () => {
    const ada = await signIn(dashboard)
    const bo = await signIn(dashboard, { accountId: ada.accountId, role: 'developer', name: 'Bo' })
    const responses = [
      await ada.visitor.post(`${members}/${ada.id}/role`, { role: 'developer' }),
      await ada.visitor.post(`${members}/${ada.id}/remove`),
    ]
    for (const response of responses) {
      expect(response.status).toBe(409)
      expect(pageText(response)).toContain(message)
    }
    expect(await roles(ada)).toEqual(['Ada: admin', 'Bo: developer'])
    // The page offers only what it accepts.
    const change = 'Change the role of Ada'
    expect(find(await ada.visitor.get(members)).queryByRole('button', { name: change })).toBeNull()
    await ada.visitor.post(`${members}/${bo.id}/role`, { role: 'admin' })
    find(await ada.visitor.get(members)).getByRole('button', { name: change })
  })

  test.for(['remove', 'role', 'both'])(
    'remains when two admins demote each other at the same time (%s)',
    async (how, { expect }) => {
      const other = await startDashboardService(dashboard.settings)
      onTestFinished(other.stop)
      for (let round = 0; round < 2; round += 1) {
        const ada = await signIn(dashboard)
        const bo = await signIn(other, { accountId: ada.accountId, name: 'Bo' })
        const actionOfAda = how === 'role' ? 'role' : 'remove'
        const actionOfBo = how === 'remove' ? 'remove' : 'role'
        const responses = await Promise.all([
          ada.visitor.post(`${members}/${bo.id}/${actionOfAda}`, { role: 'developer' }),
          bo.visitor.post(`${members}/${ada.id}/${actionOfBo}`, { role: 'developer' }),
        ])
        // The later request is refused: its user has lost the role, or the account would have no owner.
        expect(
          responses.filter(({ status, headers }) => status === 303 && headers.location !== '/sign-in'),
        ).toHaveLength(1)
        expect((await roles(ada)).filter((user) => user.endsWith(': admin'))).toHaveLength(1)
      }
    },
  )
})

describe('a removed member', () => {
  test('is refused everywhere immediately, and the confirmation lists their API keys', async () => {
    const ada = await signIn(dashboard)
    const bo = await signIn(dashboard, { accountId: ada.accountId, name: 'Bo' })
    const other = await startDashboardService(dashboard.settings)
    onTestFinished(other.stop)
    const [first, second, keyOfAda] = [
      await newKey(bo, 'nightly <b>'),
      await newKey(bo, 'reports'),
      await newKey(ada, 'kept'),
    ]
    const otherBrowser = new Visitor(other.url)
    await otherBrowser.post('/sign-in', { email: bo.email, password })
    const path = `${members}/${bo.id}/remove`
    const confirmation = await ada.visitor.get(path)
    expect(pageText(confirmation)).toContain('These 2 API keys are deleted too.')
    for (const { name, prefix } of [first, second]) expect(pageText(confirmation)).toContain(`${name} ${prefix}…`)
    expect(pageText(confirmation)).not.toContain('kept')
    const urls = [dashboard.executionUrl, other.executionUrl]
    for (const url of urls) expect(await call(url, first.value)).toBe(200)
    const stream = await openStream(first.value)
    const userBo = await dashboard.domain.users.get(bo.id)
    const link = userBo && (await dashboard.domain.links.createSignInLink(userBo, operator))

    expect((await ada.visitor.post(path)).headers.location).toBe(`${members}?done=removed`)
    for (const url of urls) {
      expect(await call(url, first.value)).toBe(401)
      expect(await call(url, second.value)).toBe(401)
      expect(await call(url, keyOfAda.value)).toBe(200)
    }
    expect((await bo.visitor.get('/')).headers.location).toBe('/sign-in')
    expect((await otherBrowser.get('/')).headers.location).toBe('/sign-in')
    expect((await bo.visitor.post('/api-keys/new', { name: 'mine', lifetime: '' })).headers.location).toBe('/sign-in')
    for (const url of [dashboard.url, other.url]) {
      expect((await new Visitor(url).post('/sign-in', { email: bo.email, password })).status).toBe(401)
      expect((await new Visitor(url).get(`/links/${link}`)).status).toBe(410)
    }
    await stream.ended
    expect(await roles(ada)).toEqual(['Ada: admin'])
    expect((await ada.visitor.post(path)).status).toBe(404)
    expect(pageText(await ada.visitor.get('/settings/audit-log'))).toContain('removed a user Bo')
  })

  test('can be invited again with the same email address as a new user', async () => {
    const ada = await signIn(dashboard)
    const bo = await signIn(dashboard, { accountId: ada.accountId, role: 'developer', name: 'Bo' })
    const key = await newKey(bo)
    await ada.visitor.post(`${members}/${bo.id}/remove`)
    const token = await dashboard.domain.links.invite(ada.accountId, { label: 'Bo', role: 'developer' }, operator)
    const again = new Visitor(dashboard.url)
    const form = { name: 'Bo', email: bo.email, password }
    expect((await again.post(`/links/${token}`, form)).status).toBe(303)
    expect((await again.get('/profile')).status).toBe(200)
    expect(pageText(await again.get('/api-keys'))).toContain('You have created 0 of 5')
    expect(await call(dashboard.executionUrl, key.value)).toBe(401)
    expect((await bo.visitor.get('/')).status).toBe(303)
  })

  test('without API keys is described as such', async () => {
    const ada = await signIn(dashboard)
    const bo = await signIn(dashboard, { accountId: ada.accountId, role: 'developer', name: 'Bo' })
    expect(pageText(await ada.visitor.get(`${members}/${bo.id}/remove`))).toContain('Bo has no API keys.')
    await newKey(bo)
    expect(pageText(await ada.visitor.get(`${members}/${bo.id}/remove`))).toContain('This API key is deleted too.')
  })
})

test('submitting the form twice creates one invitation', async () => {
  const ada = await signIn(dashboard)
  const form = {
    id: inputValue(await ada.visitor.get(`${members}/invite`), 'id') ?? '',
    label: 'Bo',
    role: 'developer',
  }
  expect(pageText(await ada.visitor.post(`${members}/invite`, form))).toContain('Invitation for Bo')
  const again = await ada.visitor.post(`${members}/invite`, form)
  expect([again.status, again.headers.location]).toEqual([303, `${members}?done=invited`])
  expect(await dashboard.domain.links.listInvitations(ada.accountId)).toHaveLength(1)
})

test('an invitation requires a name and a role, and the form keeps its values', async () => {
  const { visitor, accountId } = await signIn(dashboard)
  const invalid = [
    [{ label: '', role: 'developer' }, 'Enter a name.'],
    [{ label: '"'.repeat(101), role: 'developer' }, 'Use at most 100 characters.'],
    [{ label: 'Bo', role: 'owner' }, 'Choose a role.'],
    [{ label: 'Bo' }, 'Choose a role.'],
  ] as const
  for (const [form, message] of invalid) {
    const response = await visitor.post(`${members}/invite`, form)
    expect([response.status, inputValue(response, 'label')]).toEqual([400, form.label])
    expect(pageText(response)).toContain(message)
  }
  expect(await dashboard.domain.links.listInvitations(accountId)).toEqual([])
})
