/** The live view of a browser at a worker outside of the service, from the worker's requests to the page of the run. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { type SignedInUser, signIn } from '../support/dashboard.ts'
import { startTestService, type TestAccount, type TestService, until } from '../support/service.ts'
import type { OperationId } from './document.ts'
import { invoice } from './example-runs.ts'
import { claimedAttempt, type Filled, send } from './requests.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ worker: false })
})
afterAll(() => service?.stop())

const call = (account: TestAccount, id: OperationId, filled: Filled) => send(service, id, account.key, filled)

/** An attempt of a worker, a user of its account, and the requests of both. */
async function startAttempt(variableData: object = { orderId: 'A-1001' }) {
  const account = await service.createAccount()
  const { runId, attempt } = await claimedAttempt(service, account, { ...invoice, body: { variableData } })
  const user = await signIn(service, { accountId: account.id })
  const path = { runId, attempt }
  const views = (query: string) => call(account, 'getLiveViews', { path, query }).expect(200)
  return {
    ...{ account, path, runId, user, views },
    update: (viewId: string, body: object) =>
      call(account, 'updateLiveView', { path: { ...path, viewId }, body }).expect(200),
    command: (name: string, form = {}) => user.visitor.post(`/runs/${runId}/live/${name}`, form),
    async watched() {
      const stream = await watch(user, runId)
      const { body } = await views('waitSeconds=30')
      return { stream, viewId: body.liveViews[0].id as string }
    },
  }
}

/** Opens the stream of the run's page, and collects its events. */
async function watch({ visitor }: SignedInUser, runId: string) {
  const closing = new AbortController()
  const cookie = [...visitor.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const headers = { Cookie: cookie, Accept: 'text/event-stream' }
  const response = await fetch(`${service.dashboardUrl}/runs/${runId}/live`, { headers, signal: closing.signal })
  const stream = { text: '', close: () => closing.abort() }
  const read = async () => {
    for await (const chunk of response.body ?? []) stream.text += Buffer.from(chunk).toString()
  }
  void read().catch(() => {})
  onTestFinished(stream.close)
  return stream
}

const frame = { data: Buffer.from('a picture').toString('base64'), width: 800, height: 600 }

test('a worker learns at once that people watch, and that the last of them has left', async () => {
  const { user, runId, views, update } = await startAttempt()
  expect((await views('')).body).toEqual({ liveViews: [] })
  // It waits before anyone watches.
  const waiting = views('waitSeconds=30').then(({ body }) => body)
  const stream = await watch(user, runId)
  const [{ id }] = (await waiting).liveViews
  expect((await views(`except=${id.toUpperCase()}`)).body).toEqual({ liveViews: [] })
  expect((await update(id, { frame })).body).toEqual({ state: 'open', commands: [], present: [] })
  const received = update(id, { waitForCommands: true }).then(({ body }) => body)
  await until('the frame arrives', () => stream.text.includes(`event: frame\ndata: ${JSON.stringify(frame)}`))
  stream.close()
  expect(await received).toEqual({ state: 'ended', commands: [], present: [] })
  expect((await update(id, { frame })).body.state).toBe('ended')
})

test('secrets are masked in addresses of tabs, and in what the workflow asks for', async () => {
  const { watched, update } = await startAttempt({ orderId: 'A-1001', token: 'tok-4711-secret' })
  const { stream, viewId } = await watched()
  const tabs = [{ url: 'https://shop.example/?token=tok-4711-secret', isShown: true }]
  const control = { phase: 'awaited', by: null, message: 'Enter tok-4711-secret.' }
  void update(viewId, { waitForCommands: true }).then(() => {})
  await update(viewId, { tabs, control })
  await until('both arrive', () => ['tabs', 'control'].every((name) => stream.text.includes(`event: ${name}\n`)))
  expect(stream.text).toContain('https://shop.example/?token=***')
  expect(stream.text).not.toContain('tok-4711')
})

test('a user takes over, and the worker gets the inputs of this user', async () => {
  const { watched, update, command, user, account } = await startAttempt()
  const { stream, viewId } = await watched()
  const next = () => update(viewId, { waitForCommands: true }).then(({ body }) => body)
  const by = { id: user.id, name: user.name }
  const taking = next()
  await update(viewId, { control: { phase: 'free', by: null, message: null } })
  await until('the page knows that it may take over', () => stream.text.includes('"phase":"free"'))
  expect((await command('take-over')).status).toBe(204)
  expect(await taking).toEqual({ state: 'open', commands: [{ type: 'takeOver', by }], present: [user.id] })
  const inputs = [
    { type: 'mouse', event: 'mousePressed', x: 1.5, y: 2, button: 'left', clickCount: 1, modifiers: 0 },
    { type: 'text', text: 'Open sesame' },
  ]
  expect((await command('input', { inputs: JSON.stringify(inputs) })).status, 'not in control yet').toBe(409)
  await update(viewId, { control: { phase: 'paused', by, message: null } })
  const typing = next()
  await until('the input is accepted', async () => {
    return (await command('input', { inputs: JSON.stringify(inputs) })).status === 204
  })
  expect(await typing).toMatchObject({ commands: [{ type: 'input', by, inputs }] })
  const returning = next()
  await until('control is returned', async () => (await command('return-control')).status === 204)
  expect((await returning).commands).toEqual([{ type: 'returnControl', by }])
  const actions = await service.rows<{ action: string }>(
    "SELECT action FROM audit_log WHERE account_id = ? AND action LIKE 'run.%' ORDER BY at, id",
    account.id,
  )
  expect(actions.map(({ action }) => action)).toEqual(['run.watched', 'run.takenOver', 'run.returnedControl'])
})

test('the page shows the user in control by the stored name, and no user of another account', async () => {
  const { watched, update, user } = await startAttempt()
  const { user: stranger } = await startAttempt()
  const { stream, viewId } = await watched()
  const next = update(viewId, { waitForCommands: true })
  await update(viewId, { control: { phase: 'paused', by: { id: stranger.id, name: stranger.name }, message: 'first' } })
  await until('the first control arrives', () => stream.text.includes('"by":null,"message":"first"'))
  await update(viewId, { control: { phase: 'paused', by: { id: user.id, name: 'The chief' }, message: 'second' } })
  await until('the second control arrives', () => stream.text.includes('"message":"second"'))
  expect(stream.text).toContain(`"by":${JSON.stringify({ id: user.id, name: user.name })}`)
  expect(stream.text).not.toContain('The chief')
  stream.close()
  await next
})

test('the page says that the connection to a worker has ended', async () => {
  const { watched, path, account, update } = await startAttempt()
  const { stream, viewId } = await watched()
  const closing = new AbortController()
  const url = `${service.executionUrl}/v1/execution/runs/${path.runId}/attempts/${path.attempt}/live-views/${viewId}`
  const headers = { Authorization: `Bearer ${account.key}`, 'Content-Type': 'application/json' }
  const body = JSON.stringify({ waitForCommands: true })
  const waiting = fetch(url, { method: 'POST', headers, body, signal: closing.signal }).catch(() => 'closed')
  await update(viewId, { frame })
  await until('the frame arrives', () => stream.text.includes('event: frame'))
  closing.abort()
  expect(await waiting).toBe('closed')
  await until('the page says so', () => stream.text.includes('has ended'))
})

test('only the worker that has the lease sees and updates a view, and only of its run', async () => {
  const one = await startAttempt()
  const { viewId } = await one.watched()
  const other = await startAttempt()
  expect((await other.update(viewId, { frame })).body.state, 'a view of another run').toBe('ended')
  expect((await other.views('')).body).toEqual({ liveViews: [] })
  const { value } = await one.account.createKey({ scopes: ['runs:execute'] })
  const path = { ...one.path, viewId }
  await send(service, 'updateLiveView', value, { path, body: { frame } }).expect(409)
  await send(service, 'getLiveViews', value, { path }).expect(409)
  await send(service, 'updateLiveView', other.account.key, { path, body: { frame } }).expect(404)
  await call(one.account, 'updateLiveView', { path: { ...path, attempt: '2' }, body: { frame } }).expect(409)
})

test.for([
  { passed: 20, reported: 300, counted: 300, what: 'what the worker has measured' },
  { passed: 40, reported: 0, counted: 600, what: 'all but 30 minutes at least' },
  { passed: 5, reported: 3600, counted: 300, what: 'no more than has passed' },
])('time for which people have paused an attempt does not count when it is suspended: $what', async (times) => {
  const account = await service.createAccount()
  const { runId, attempt } = await claimedAttempt(service, account)
  const since = Date.now() - times.passed * 60_000
  await service.change('UPDATE runs SET attempt_started_at = ? WHERE id = ?', since, runId)
  const body = { waits: [{ kind: 'answer', name: 'approval' }], names: ['approval'], executedSeconds: times.reported }
  await call(account, 'suspendAttempt', { path: { runId, attempt }, body }).expect(200)
  const [row] = await service.rows<{ executed_ms: number }>('SELECT executed_ms FROM runs WHERE id = ?', runId)
  const counted = Number(row?.executed_ms) / 1000
  expect(counted).toBeGreaterThanOrEqual(times.counted)
  expect(counted).toBeLessThan(times.counted + 60)
})

test('an attempt whose browser people may have paused is ended 31 minutes after its time limit', async () => {
  const account = await service.createAccount()
  const { runId, attempt, workerId, claim } = await claimedAttempt(service, account)
  const leases = [{ runId, attempt: Number(attempt) }]
  const renewedAfter = async (minutes: number) => {
    const since = Date.now() - claim.timeLimitSeconds * 1000 - minutes * 60_000
    await service.change('UPDATE runs SET attempt_started_at = ? WHERE id = ?', since, runId)
    return (await call(account, 'renewLeases', { path: { workerId }, body: { leases } }).expect(200)).body
  }
  expect(await renewedAfter(30)).toMatchObject({ extended: leases, lost: [] })
  expect(await renewedAfter(32)).toMatchObject({ extended: [], lost: leases })
})
