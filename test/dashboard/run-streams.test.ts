/** Event streams that make open pages reload: what they send, and when they end. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { type SignedInUser, signIn, startDashboardService, Visitor } from '../support/dashboard.ts'
import { readDocument } from '../support/html.ts'
import { startTestService, type TestService, until } from '../support/service.ts'
import { hold, newUser, queue, waitForPage } from './run-helpers.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

afterAll(() => service.stop())

/** Opens a stream and collects its text. */
async function follow({ visitor }: SignedInUser, path: string, url = service.dashboardUrl) {
  const cookie = [...visitor.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const closing = new AbortController()
  const response = await fetch(`${url}${path}`, { headers: { Cookie: cookie }, signal: closing.signal })
  const stream = {
    status: response.status,
    headers: response.headers,
    text: '',
    ended: false,
    close: () => closing.abort(),
  }
  const listen = async () => {
    for await (const chunk of response.body ?? []) stream.text += Buffer.from(chunk).toString()
  }
  void listen()
    .catch(() => {})
    .then(() => {
      stream.ended = true
    })
  onTestFinished(stream.close)
  return stream
}

function countChanges({ text }: { text: string }): number {
  return text.split('event: change').length - 1
}

describe('an event stream', () => {
  test("reports changes of the account's own runs only", async () => {
    const [ada, eve] = [await newUser(service), await newUser(service)]
    const [stream, others] = [await follow(ada, '/runs/changes'), await follow(eve, '/runs/changes')]
    expect(stream.headers.get('content-type')).toMatch(/^text\/event-stream\b/)
    expect(stream.headers.get('cache-control')).toBe('no-store')
    await until('both report possibly missed changes', () => countChanges(stream) === 1 && countChanges(others) === 1)
    await queue(eve, 'greet', { name: 'Eve' }, '?delaySeconds=60')
    await until('the other account gets the change', () => countChanges(others) === 2)
    expect(countChanges(stream)).toBe(1)
    await queue(ada, 'greet', { name: 'Ada' }, '?delaySeconds=60')
    await until('the account gets the change', () => countChanges(stream) === 2)
  })

  test('of a run continues after the event that the page knows, and reports the end', async () => {
    const user = await newUser(service)
    const { id, release } = await hold(user)
    await waitForPage(user, id, 'Holding')
    const page = readDocument(await user.visitor.get(`/runs/${id}`))
    const path = page.querySelector<HTMLElement>('[data-live]')?.dataset.live ?? ''
    expect(path).toMatch(new RegExp(`^/runs/${id}/changes\\?after=\\d+$`))
    const [stream, fromStart] = [await follow(user, path), await follow(user, `/runs/${id}/changes`)]
    await until('the stream from the start reports a change', () => countChanges(fromStart) === 1)
    // On a busy machine, heartbeats may have come.
    expect(stream.text.replaceAll(': heartbeat\n\n', '')).toBe('')
    release()
    await until('both have ended', () => stream.ended && fromStart.ended)
    for (const { text } of [stream, fromStart])
      expect(text).toMatch(/event: change\ndata: \{\}\n\nevent: end\ndata: \{\}\n\n$/)
    const lateStream = await follow(user, `/runs/${id}/changes?after=1000`)
    await until('it has ended', () => lateStream.ended)
    expect(lateStream.text).toBe('event: end\ndata: {}\n\n')
  })

  test('ends when the user signs out', async () => {
    const user = await newUser(service)
    const { id, release } = await hold(user)
    await waitForPage(user, id, 'Holding')
    const streams = [await follow(user, '/runs/changes'), await follow(user, `/runs/${id}/changes`)]
    await until('both report a change', () => streams.every((stream) => countChanges(stream) === 1))
    const otherBrowser = new Visitor(service.dashboardUrl)
    for (const [name, value] of user.visitor.cookies) otherBrowser.cookies.set(name, value)
    expect((await otherBrowser.post('/sign-out')).status).toBe(303)
    release()
    await until('both have ended', () => streams.every(({ ended }) => ended))
    expect(streams.map(countChanges)).toEqual([1, 1])
    expect(streams.map(({ text }) => text.includes('event: end'))).toEqual([false, false])
  })

  test('ends when the user is removed', async () => {
    const dashboard = await startDashboardService()
    onTestFinished(dashboard.stop)
    const owner = await signIn(dashboard)
    const member = await signIn(dashboard, { accountId: owner.accountId, role: 'developer' })
    const stream = await follow(member, '/runs/changes', dashboard.url)
    await until('it reports a change', () => countChanges(stream) === 1)
    await dashboard.domain.users.remove(owner.accountId, member.id, operator)
    await owner.visitor.post('/workflows/greet', { 'variable-name': 'Ada' })
    await until('it has ended', () => stream.ended)
    expect(countChanges(stream)).toBe(1)
  })

  test('does not report the end when the service stops, so that browsers reconnect', async () => {
    const dashboard = await startDashboardService()
    const user = await signIn(dashboard)
    const queued = await user.visitor.post('/workflows/greet', { 'variable-name': 'Ada' })
    const paths = ['/runs/changes', `${queued.headers.location}/changes`]
    const streams = await Promise.all(paths.map((path) => follow(user, path, dashboard.url)))
    await until('both report a change', () => streams.every((stream) => countChanges(stream) === 1))
    await dashboard.stop()
    await until('both have ended', () => streams.every(({ ended }) => ended))
    expect(streams.map(({ text }) => text.includes('event: end'))).toEqual([false, false])
  })

  test('requires a session, and answers HEAD immediately', async () => {
    const user = await newUser(service)
    const response = await new Visitor(service.dashboardUrl).get('/runs/changes')
    expect(response.status).toBe(303)
    expect((await user.visitor.send('HEAD', '/runs/changes')).status).toBe(200)
  })
})
