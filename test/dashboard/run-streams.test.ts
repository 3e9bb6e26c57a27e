/** What pages are told of runs while they are open, and when they are told nothing any more. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { type SignedInUser, signIn, startDashboardService, Visitor } from '../support/dashboard.ts'
import { startTestService, type TestService, until } from '../support/service.ts'
import { hold, newUser, pageSaying, queue } from './run-pages.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService()
})

afterAll(() => service.stop())

/** What a stream of the dashboard has said, and whether it has ended. */
async function follow({ visitor }: SignedInUser, path: string, url = service.dashboardUrl) {
  const cookie = [...visitor.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const closing = new AbortController()
  const answer = await fetch(`${url}${path}`, { headers: { Cookie: cookie }, signal: closing.signal })
  const heard = { status: answer.status, headers: answer.headers, text: '', ended: false, close: () => closing.abort() }
  const listen = async () => {
    for await (const chunk of answer.body ?? []) heard.text += Buffer.from(chunk).toString()
  }
  void listen()
    .catch(() => {})
    .then(() => {
      heard.ended = true
    })
  onTestFinished(heard.close)
  return heard
}

function changesIn({ text }: { text: string }): number {
  return text.split('event: change').length - 1
}

describe('a page is told', () => {
  test("of changes of the account's own runs alone", async () => {
    const [ada, eve] = [await newUser(service), await newUser(service)]
    const [heard, others] = [await follow(ada, '/runs/changes'), await follow(eve, '/runs/changes')]
    expect(heard.headers.get('content-type')).toMatch(/^text\/event-stream\b/)
    expect(heard.headers.get('cache-control')).toBe('no-store')
    await until(
      'both are told to read what they may have missed',
      () => changesIn(heard) === 1 && changesIn(others) === 1,
    )
    await queue(eve, 'greet', { name: 'Eve' }, '?delaySeconds=60')
    await until('the other account is told', () => changesIn(others) === 2)
    expect(changesIn(heard)).toBe(1)
    await queue(ada, 'greet', { name: 'Ada' }, '?delaySeconds=60')
    await until('the account is told', () => changesIn(heard) === 2)
  })

  test('how a run goes on, from where its page was, and that it has ended', async () => {
    const user = await newUser(service)
    const { id, release } = await hold(user)
    await pageSaying(user, id, 'Holding')
    const { text } = await user.visitor.get(`/runs/${id}`)
    const path = text.match(/data-live="([^"]+)"/)?.[1] ?? ''
    expect(path).toMatch(new RegExp(`^/runs/${id}/changes\\?after=\\d+$`))
    const [heard, fromStart] = [await follow(user, path), await follow(user, `/runs/${id}/changes`)]
    await until('who knows nothing yet is told', () => changesIn(fromStart) === 1)
    expect(heard.text).toBe('')
    release()
    await until('both have ended', () => heard.ended && fromStart.ended)
    for (const { text } of [heard, fromStart])
      expect(text).toMatch(/event: change\ndata: \{\}\n\nevent: end\ndata: \{\}\n\n$/)
    const late = await follow(user, `/runs/${id}/changes?after=1000`)
    await until('it has ended', () => late.ended)
    expect(late.text).toBe('event: end\ndata: {}\n\n')
  })

  test('nothing any more when its reader has signed out', async () => {
    const user = await newUser(service)
    const { id, release } = await hold(user)
    await pageSaying(user, id, 'Holding')
    const streams = [await follow(user, '/runs/changes'), await follow(user, `/runs/${id}/changes`)]
    await until('both are told', () => streams.every((heard) => changesIn(heard) === 1))
    const elsewhere = new Visitor(service.dashboardUrl)
    for (const [name, value] of user.visitor.cookies) elsewhere.cookies.set(name, value)
    expect((await elsewhere.post('/sign-out')).status).toBe(303)
    release()
    await until('both have ended', () => streams.every(({ ended }) => ended))
    expect(streams.map(changesIn)).toEqual([1, 1])
    expect(streams.map(({ text }) => text.includes('event: end'))).toEqual([false, false])
  })

  test('nothing when its reader is removed', async () => {
    const served = await startDashboardService()
    onTestFinished(served.stop)
    const owner = await signIn(served)
    const member = await signIn(served, { accountId: owner.accountId, role: 'member' })
    const heard = await follow(member, '/runs/changes', served.url)
    await until('it is told', () => changesIn(heard) === 1)
    await served.domain.users.remove(owner.accountId, member.id, operator)
    await owner.visitor.post('/workflows/greet', { 'variable-name': 'Ada' })
    await until('it has ended', () => heard.ended)
    expect(changesIn(heard)).toBe(1)
  })

  test('not that it has ended when the service stops, so that browsers come back', async () => {
    const served = await startDashboardService()
    const user = await signIn(served)
    const queued = await user.visitor.post('/workflows/greet', { 'variable-name': 'Ada' })
    const paths = ['/runs/changes', `${queued.headers.location}/changes`]
    const streams = await Promise.all(paths.map((path) => follow(user, path, served.url)))
    await until('both are told', () => streams.every((heard) => changesIn(heard) === 1))
    await served.stop()
    await until('both have ended', () => streams.every(({ ended }) => ended))
    expect(streams.map(({ text }) => text.includes('event: end'))).toEqual([false, false])
  })

  test('nothing without signing in, and HEAD is answered at once', async () => {
    const user = await newUser(service)
    const nobody = await new Visitor(service.dashboardUrl).get('/runs/changes')
    expect(nobody.status).toBe(303)
    expect((await user.visitor.send('HEAD', '/runs/changes')).status).toBe(200)
  })
})
