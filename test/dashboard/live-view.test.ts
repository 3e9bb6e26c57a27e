/** Watching the browser of a run: what a worker sends reaches only users who may see the run. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { Dependencies } from '../../src/surfaces/dashboard/dependencies.ts'
import { streamLiveView } from '../../src/surfaces/dashboard/live-view/live-view-handlers.ts'
import { Viewer, watchedRunsMax } from '../../src/surfaces/dashboard/live-view/live-view-hub.ts'
import type { PageRequest } from '../../src/surfaces/dashboard/page-handler.ts'
import { type DashboardService, type SignedInUser, signIn } from '../support/dashboard.ts'
import { pageText } from '../support/html.ts'
import { until } from '../support/service.ts'
import { claim, queueFromForm, startBrowserDashboard } from './browser-context-helpers.ts'

let dashboard: DashboardService

beforeAll(async () => {
  dashboard = await startBrowserDashboard()
})

afterAll(() => dashboard.stop())

/** Opens the stream of a run, and collects its events. */
async function watch({ visitor }: SignedInUser, runId: string) {
  const closing = new AbortController()
  const cookie = [...visitor.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const response = await fetch(`${dashboard.url}/runs/${runId}/live`, {
    headers: { Cookie: cookie, Accept: 'text/event-stream' },
    signal: closing.signal,
    redirect: 'manual',
  })
  const stream = { status: response.status, text: '', ended: false, close: () => closing.abort() }
  const read = async () => {
    for await (const chunk of response.body ?? []) stream.text += Buffer.from(chunk).toString()
  }
  void read()
    .catch(() => {})
    .finally(() => {
      stream.ended = true
    })
  onTestFinished(stream.close)
  return stream
}

/** A run that a worker has claimed, and the requests by which that worker sends what its browser shows. */
async function startRun(user: SignedInUser) {
  const runId = await queueFromForm(user, { browserContextId: '', persistContext: 'never' })
  const { attempt = 0 } = (await claim(dashboard)).find((each) => each.runId === runId) ?? {}
  const viewOf = async () => (await dashboard.domain.liveViews.list()).find((view) => view.runId === runId)
  const view = () => until('the dashboard asks for the run', viewOf)
  const connect = async (changes: { attempt?: number; token?: string } = {}) => {
    const { id, address } = await view()
    const of = changes.attempt ?? attempt
    const token = changes.token ?? dashboard.domain.liveViews.token(id, { runId, attempt: of })
    const url = `${address}/live-views/${id}/attempts/${of}`
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    const closing = new AbortController()
    return {
      send: async (body: object) => (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).status,
      wait: () => fetch(url, { headers, signal: closing.signal }).then(({ status }) => status),
      next: async () => (await fetch(url, { headers })).json(),
      close: () => closing.abort(),
    }
  }
  return { runId, attempt, viewOf, view, connect }
}

const frame = { data: Buffer.from('a picture').toString('base64'), width: 800, height: 600 }
const tabs = [{ url: 'https://shop.example/', isShown: true }]

test('a viewer gets what the worker of the run sends, and a message when the worker is lost', async () => {
  const ada = await signIn(dashboard)
  const run = await startRun(ada)
  const stream = await watch(ada, run.runId)
  await until('the stream waits', () => stream.text.includes('"Waiting for the browser."'))
  const worker = await run.connect()
  const waiting = worker.wait().catch(() => 'closed')
  expect(await worker.send({ frame, tabs })).toBe(204)
  await until('the frame arrives', () => stream.text.includes(`event: frame\ndata: ${JSON.stringify(frame)}`))
  expect(stream.text).toContain(`event: tabs\ndata: ${JSON.stringify(tabs)}`)
  const late = await watch(ada, run.runId)
  await until('a later viewer gets the same frame', () => late.text.includes('event: frame'))
  worker.close()
  expect(await waiting).toBe('closed')
  await until('both say so', () => [stream, late].every(({ text }) => text.includes('has ended')))
})

test('the worker learns at once that the last viewer has left, and nothing of it stays in the store', async () => {
  const ada = await signIn(dashboard)
  const run = await startRun(ada)
  const [stream, other] = [await watch(ada, run.runId), await watch(ada, run.runId)]
  const worker = await run.connect()
  const waiting = worker.wait()
  await worker.send({ frame, tabs })
  await until('both watch', () => [stream, other].every(({ text }) => text.includes('event: frame')))
  stream.close()
  expect(await worker.send({ frame })).toBe(204)
  other.close()
  expect(await waiting).toBe(410)
  expect(await worker.send({ frame })).toBe(410)
  await until('the request is deleted', async () => (await run.viewOf()) === undefined)
  for (const [, bytes] of await dashboard.contents()) expect(bytes.includes(frame.data)).toBe(false)
})

test('only the token of the view, the run and its latest attempt is accepted', async () => {
  const ada = await signIn(dashboard)
  const run = await startRun(ada)
  const stream = await watch(ada, run.runId)
  const { id } = await run.view()
  const foreign = dashboard.domain.liveViews.token(id, { runId: crypto.randomUUID(), attempt: run.attempt })
  for (const token of ['', 'x', foreign]) expect(await (await run.connect({ token })).send({ frame })).toBe(401)
  expect(await (await run.connect({ attempt: 2 })).send({ tabs })).toBe(204)
  expect(await (await run.connect({ attempt: 1 })).send({ frame }), 'an attempt that lost its lease').toBe(401)
  await until('the tabs arrive', () => stream.text.includes('event: tabs'))
  expect(stream.text).not.toContain('event: frame')
})

test('messages that are no frames and tabs reach no viewer', async () => {
  const ada = await signIn(dashboard)
  const run = await startRun(ada)
  const stream = await watch(ada, run.runId)
  const worker = await run.connect()
  await worker.send({ frame: { ...frame, data: 'x"onerror="' }, tabs: [{ url: 1 }] })
  await worker.send({ frame: { ...frame, width: '1' } })
  await worker.send({ tabs })
  await until('the tabs arrive', () => stream.text.includes('event: tabs'))
  expect(stream.text).not.toContain('event: frame')
  expect(stream.text).not.toContain('onerror')
})

test('runs that wait for a worker, or use no browser, take no place of the live view', async () => {
  const ada = await signIn(dashboard)
  const waiting = await queueFromForm(ada, { browserContextId: '', persistContext: 'never' })
  const stream = await watch(ada, waiting)
  await until('it says so', () => stream.text.includes('The run is waiting to start.'))
  const listed = async () => (await dashboard.domain.liveViews.list()).some(({ runId }) => runId === waiting)
  expect(await listed()).toBe(false)
  await claim(dashboard)
  await until('the start of the run asks for it', listed)
  const none = await watch(ada, await queueFromForm(ada, {}, 'plain'))
  await until('the stream ends', () => none.ended)
  expect(none.text).toContain('uses no browser')
})

test('an account that watches as many runs as it may takes no place of another account', async () => {
  const [ada, eve] = [await signIn(dashboard), await signIn(dashboard)]
  const runIds: string[] = []
  for (let count = 0; count <= watchedRunsMax; count++)
    runIds.push(await queueFromForm(eve, { browserContextId: '', persistContext: 'never' }))
  const claimed = new Set<string>()
  await until('all have started', async () => {
    for (const { runId } of await claim(dashboard)) claimed.add(runId)
    return runIds.every((id) => claimed.has(id))
  })
  const streams = []
  for (const runId of runIds) {
    const stream = await watch(eve, runId)
    await until('it is admitted or refused', () => stream.text.includes('event: status'))
    streams.push(stream)
  }
  expect(streams.map(({ text }) => text.includes(`watches ${watchedRunsMax} runs`))).toEqual(
    streams.map((_, index) => index === watchedRunsMax),
  )
  const run = await startRun(ada)
  const stream = await watch(ada, run.runId)
  const worker = await run.connect()
  void worker.wait().catch(() => {})
  await worker.send({ frame })
  await until('the frame arrives', () => stream.text.includes('event: frame'))
  worker.close()
  streams[0]?.close()
  await until('a closed page frees its place', async () => {
    const next = await watch(eve, runIds.at(-1) ?? '')
    await until('it is admitted or refused', () => next.text.includes('event: status'))
    next.close()
    return next.text.includes('Waiting for the browser.')
  })
})

test('users of other accounts cannot watch', async () => {
  const [ada, eve] = [await signIn(dashboard), await signIn(dashboard)]
  const run = await startRun(ada)
  expect(await watch(eve, run.runId)).toMatchObject({ status: 404 })
  expect(await run.viewOf()).toBe(undefined)
})

test('the audit log has one entry for a user who watches, reconnections included', async () => {
  const ada = await signIn(dashboard)
  const bob = await signIn(dashboard, { accountId: ada.accountId, role: 'developer', name: 'Bob' })
  const run = await startRun(ada)
  for (const user of [ada, bob, bob]) {
    const stream = await watch(user, run.runId)
    await until('it watches', () => stream.text.includes('event: status'))
    stream.close()
  }
  const entries = await dashboard.domain.auditLog.list(ada.accountId, { action: 'run.watched', limit: 10 })
  expect(entries.map(({ by, subject }) => [by.name, subject?.id])).toEqual([
    ['Bob', run.runId],
    ['Ada', run.runId],
  ])
})

test('the page of a run offers it while the run is not finished, for workflows with a browser', async () => {
  const ada = await signIn(dashboard)
  const run = await startRun(ada)
  const page = await ada.visitor.get(`/runs/${run.runId}`)
  expect(page.text).toContain(`data-live-view="/runs/${run.runId}/live"`)
  expect(pageText(page)).toContain('Watch live')
})

const control = { phase: 'free', by: null, message: null }
const wheel = { type: 'wheel', x: 1, y: 2, deltaX: 0, deltaY: 3, modifiers: 0 }

test('commands of a user reach the worker, with one entry each in the audit log', async () => {
  const ada = await signIn(dashboard)
  const run = await startRun(ada)
  const path = `/runs/${run.runId}/live`
  const stream = await watch(ada, run.runId)
  expect((await ada.visitor.post(`${path}/take-over`)).status, 'no worker is connected').toBe(409)
  const worker = await run.connect()
  let waiting = worker.next()
  await worker.send({ control })
  await until('the page may take over', () => stream.text.includes('event: control'))
  expect((await ada.visitor.post(`${path}/input`, { inputs: JSON.stringify([wheel]) })).status).toBe(409)
  expect((await ada.visitor.post(`${path}/take-over`)).status).toBe(204)
  const by = { id: ada.id, name: ada.name }
  expect(await waiting).toEqual({ commands: [{ type: 'takeOver', by }], present: [ada.id] })
  waiting = worker.next()
  await worker.send({ control: { ...control, phase: 'paused', by } })
  const bob = await signIn(dashboard, { accountId: ada.accountId, role: 'developer', name: 'Bob' })
  for (const name of ['take-over', 'return-control'])
    expect((await bob.visitor.post(`${path}/${name}`)).status).toBe(409)
  const inputs = { inputs: JSON.stringify([{ ...wheel, more: 1 }]) }
  expect((await bob.visitor.post(`${path}/input`, inputs)).status).toBe(409)
  for (const invalid of ['', '{}', '[{"type":"evaluate"}]', JSON.stringify(Array(101).fill(wheel))]) {
    expect((await ada.visitor.post(`${path}/input`, { inputs: invalid })).status).toBe(400)
  }
  expect((await ada.visitor.post(`${path}/input`, inputs)).status).toBe(204)
  expect((await waiting).commands).toEqual([{ type: 'input', by, inputs: [wheel] }])
  waiting = worker.next()
  expect((await ada.visitor.post(`${path}/return-control`)).status).toBe(204)
  expect((await waiting).commands).toEqual([{ type: 'returnControl', by }])
  const entries = await dashboard.domain.auditLog.list(ada.accountId, { limit: 3 })
  expect(entries.map(({ action, by }) => [action, by.name]).slice(0, 2)).toEqual([
    ['run.returnedControl', 'Ada'],
    expect.anything(),
  ])
  expect(await dashboard.domain.auditLog.list(ada.accountId, { action: 'run.takenOver', limit: 9 })).toHaveLength(1)
})

test('a worker that was only slow is shown again, with what it had sent before', async () => {
  const ada = await signIn(dashboard)
  const run = await startRun(ada)
  const stream = await watch(ada, run.runId)
  const lost = await run.connect()
  const waiting = lost.wait().catch(() => 'closed')
  await lost.send({ control, tabs, frame })
  await until('the frame arrives', () => stream.text.includes('event: frame'))
  lost.close()
  await waiting
  await until('the page says so', () => stream.text.includes('has ended'))
  const again = await run.connect()
  void again.wait().catch(() => {})
  await until('the frame arrives again', () => stream.text.split('event: frame').length === 3)
  expect(stream.text.split('event: control')).toHaveLength(3)
  again.close()
})

test('a page that is closed while its view is opened does not keep it open', async () => {
  const left = Promise.withResolvers<void>()
  const closing = new AbortController()
  const app = express()
  app.get('/', async (request, response) => {
    const watchSlowly = async () => {
      closing.abort()
      await once(response, 'close')
      return new Viewer()
    }
    const runs = { get: async () => ({ id: 'run', status: 'running' }) }
    const workflows = { current: () => new Map([[undefined, { usesBrowser: true }]]) }
    const deps = {
      runs,
      liveView: { watch: watchSlowly, leave: () => left.resolve() },
      workflows,
    } as unknown as Dependencies
    const page = { account: { id: 'account' }, params: { id: 'run' } } as unknown as PageRequest
    await streamLiveView(page, deps, request, response)
  })
  const server = app.listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await expect(fetch(`http://127.0.0.1:${port}/`, { signal: closing.signal })).rejects.toThrow('aborted')
  await left.promise
})

test('users of other accounts cannot take over', async () => {
  const [ada, eve] = [await signIn(dashboard), await signIn(dashboard)]
  const run = await startRun(ada)
  for (const name of ['take-over', 'return-control', 'input']) {
    expect((await eve.visitor.post(`/runs/${run.runId}/live/${name}`)).status).toBe(404)
  }
})
