/** Notification rules in the dashboard, without JavaScript, and "Follow this run". */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type DashboardService, signIn, startDashboardService } from '../support/dashboard.ts'
import { fieldError, pageText, readRows } from '../support/html.ts'
import { type MailServer, startMailServer } from '../support/mail-server.ts'
import { waitLimits } from '../support/timeouts.ts'

let dashboard: DashboardService
let mailServer: MailServer
const closing: (() => unknown)[] = []

beforeAll(async () => {
  mailServer = await startMailServer({ onTestFinished: (close) => void closing.push(close as () => unknown) })
  dashboard = await startDashboardService({ SMTP_URL: mailServer.url, SMTP_FROM: 'runs@service.example' })
})

afterAll(async () => {
  await dashboard.stop()
  for (const close of closing) await close()
})

const path = '/settings/notifications'
const limits = { notStartedSeconds: '900', failurePercent: '50' }
const byEmail = { name: 'Failures', event: 'run.failed', channel: 'email', recipients: 'a@team.example', ...limits }

test('a user creates a rule, sends a test message that the page shows, changes, pauses and deletes it', async () => {
  const [ada, bo] = [await signIn(dashboard), await signIn(dashboard)]
  expect(pageText(await ada.visitor.get(path))).toContain('No notification rules')
  const created = await ada.visitor.post(`${path}/new`, byEmail)
  const [rule] = `${created.headers.location}`.split('?')
  expect(created.status).toBe(303)
  expect(readRows(await ada.visitor.get(path))[0]).toMatch(/^Failures Run failed +a@team.example Enabled none$/)
  expect((await bo.visitor.get(rule ?? '')).status).toBe(404)
  await ada.visitor.post(`${rule}/test`, {})
  await ada.visitor.post(`${rule}/test`, {})
  const page = await ada.visitor.get(rule ?? '')
  expect(readRows(page)).toEqual([expect.stringMatching(/^Delivered This is a test message .* 1 – 250 /)])
  const [mail, ...others] = mailServer.mails
  expect([mail?.to, mail?.headers.subject, others]).toEqual([
    ['a@team.example'],
    '[Failures] This is a test message',
    [],
  ])
  expect(mail?.text).toContain(`${dashboard.url}${rule}`)
  const changed = { ...byEmail, name: '<b>Ends</b>', recipients: 'a@team.example, b@team.example' }
  expect((await ada.visitor.post(`${rule}/edit`, changed)).headers.location).toBe(`${rule}?done=changed`)
  const edited = await ada.visitor.get(rule ?? '')
  expect(pageText(edited)).toContain('a@team.example, b@team.example')
  expect(edited.text).toContain('&lt;b&gt;Ends&lt;/b&gt;')
  await ada.visitor.post(`${rule}/state`, { enabled: 'false' })
  expect(pageText(await ada.visitor.get(rule ?? ''))).toContain('This rule is paused')
  expect((await bo.visitor.post(`${rule}/delete`, {})).status).toBe(404)
  expect((await ada.visitor.post(`${rule}/delete`, {})).headers.location).toBe(`${path}?done=deleted`)
  expect((await ada.visitor.get(rule ?? '')).status).toBe(404)
})

test('mistakes are named at their fields, and the form keeps what was entered', async () => {
  const { visitor } = await signIn(dashboard)
  const refused = async (changes: Record<string, string>, field: string) => {
    const page = await visitor.post(`${path}/new`, { ...byEmail, ...changes })
    expect(page.status).toBe(400)
    return fieldError(page, field)
  }
  expect(await refused({ recipients: 'a@team.example\r\nBcc:b@c.example' }, 'recipients')).toContain('Bcc:b@c.example')
  expect(await refused({ recipients: '' }, 'recipients')).toContain('must have at least one address')
  expect(await refused({ name: '' }, 'name')).toContain('Enter a name')
  expect(await refused({ notStartedSeconds: '5' }, 'notStartedSeconds')).toBe('Enter at least 60.')
  expect(await refused({ workflowIds: 'gret' }, 'workflowIds')).toContain('“gret” is no workflow')
  const slack = { channel: 'slack', recipients: '' }
  expect(await refused({ ...slack, url: 'https://10.0.0.1/' }, 'url')).toContain('WEBHOOK_PRIVATE_ADDRESSES')
  expect(await refused(slack, 'url')).toContain('is required')
})

test('the address and the secret of a webhook are on no later page', async () => {
  const { visitor } = await signIn(dashboard)
  const webhook = { ...byEmail, recipients: '', channel: 'webhook', url: 'https://localhost/hooks?canary-1f0d' }
  const created = await visitor.post(`${path}/new`, webhook)
  const [secret = ''] = /whsec_[A-Za-z0-9+/]+=/.exec(created.text) ?? []
  expect(secret).toHaveLength(50)
  const [rule] = /\/settings\/notifications\/[0-9a-f-]{36}/.exec(created.text) ?? []
  await visitor.post(`${rule}/test`, {})
  const pages = [path, rule ?? '', `${rule}/edit`, `${rule}/delete`, '/settings/audit-log']
  for (const each of pages) {
    const { text } = await visitor.get(each)
    expect(text).not.toContain(secret)
    expect(text).not.toContain('canary-1f0d')
  }
  expect(readRows(await visitor.get(rule ?? ''))[0]).toContain(
    'localhost is not at a public address, or one that WEBHOOK_PRIVATE_ADDRESSES allows.',
  )
})

test('a user with an address follows a run and gets one email when it ends; one without an address is asked for it', async () => {
  const ada = await signIn(dashboard)
  const { domain } = dashboard
  const setEmail = (email: string | null) =>
    domain.store.write((tx) => tx.all('UPDATE users SET email = ? WHERE id = ? RETURNING 1', [email, ada.id]))
  const draft = { accountId: ada.accountId, userId: ada.id, name: 'Key', scopes: null, expiresAt: null }
  const key = await domain.apiKeys.create(draft, { kind: 'operator', id: null, name: 'test' })
  const response = await fetch(`${dashboard.executionUrl}/v1/execution/queue-remote/greet`, {
    method: 'PUT',
    headers: { Authorization: `Bearer ${key.value}`, 'Content-Type': 'application/json' },
    body: '{"variableData":{"name":"Ada"}}',
  })
  const run = `/runs/${((await response.json()) as { id: string }).id}`
  await setEmail(null)
  const asked = await ada.visitor.post(`${run}/follow`, { follow: 'yes' })
  expect(pageText(await ada.visitor.get(`${asked.headers.location}`))).toContain('You have no email address')
  await setEmail('ada@followers.example')
  expect(pageText(await ada.visitor.get(run))).toContain('Follow this run')
  const followed = await ada.visitor.post(`${run}/follow`, { follow: 'yes' })
  expect(pageText(await ada.visitor.get(`${followed.headers.location}`))).toMatch(
    /You get an email at ada@followers.example .*Stop following/,
  )
  await ada.visitor.post(`${run}/cancel`, {})
  const mails = () => mailServer.mails.filter(({ to }) => to.includes('ada@followers.example'))
  await vi.waitFor(() => expect(mails()).toHaveLength(1), waitLimits)
  expect(mails()[0]?.headers.subject).toBe('The run of greet was cancelled')
  expect(mails()[0]?.text).toContain(`${dashboard.url}${run}`)
  expect(pageText(await ada.visitor.get(run))).not.toContain('Follow this run')
})
