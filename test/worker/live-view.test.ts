/** What watching costs a worker: pictures are taken while someone watches, and at the speed at which they are taken off. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { DashboardConnection } from '../../src/domain/run-api/live-view-connection.ts'
import { parseInput } from '../../src/domain/run-api/live-views.ts'
import { TimeLimit } from '../../src/worker/attempt/time-limit.ts'
import { AttemptLiveView, type LiveViewMessage } from '../../src/worker/live-view/attempt-live-view.ts'
import { LiveViewSender } from '../../src/worker/live-view/live-view-senders.ts'
import { TakeOver } from '../../src/worker/live-view/take-over.ts'

const frame = (data: string) => ({ type: 'frame', data, width: 800, height: 600 }) as const

function createView() {
  const sent: string[] = []
  const logged: string[] = []
  const pauses: boolean[] = []
  const redact = <Value>(value: Value) => JSON.parse(JSON.stringify(value).replaceAll('secret', '***')) as Value
  const attempt = {
    send: (message: LiveViewMessage) => void sent.push('action' in message ? message.action : message.type),
    log: (message: string) => void logged.push(message),
    pause: (isPaused: boolean) => void pauses.push(isPaused),
  }
  const view = new AttemptLiveView({ runId: 'run', attempt: 1 }, attempt, redact)
  const changes: string[] = []
  const listen = (name: string) =>
    view.listen({ changed: () => changes.push(name), ended: () => changes.push(`${name} ended`) })
  return { view, sent, logged, pauses, changes, listen }
}

test('pictures are taken from the first viewer to the last', () => {
  const { view, sent, listen } = createView()
  expect(sent).toEqual([])
  const [leave, leaveToo] = [listen('one'), listen('two')]
  expect(sent).toEqual(['start'])
  view.onMessage(frame('AAAA'))
  leave()
  leave()
  expect(sent).toEqual(['start'])
  leaveToo()
  expect(sent).toEqual(['start', 'stop'])
  expect(view.frame, 'no frame is kept').toBe(undefined)
  view.onMessage(frame('BBBB'))
  expect(view.frame, 'a frame that was on its way is dropped').toBe(undefined)
})

test('a frame replaces the one before, and one that is too large is dropped', () => {
  const { view, sent, changes, listen } = createView()
  listen('one')
  view.onMessage(frame('AAAA'))
  view.onMessage(frame('BBBB'))
  view.onMessage(frame('C'.repeat(1_500_001)))
  expect(view.frame).toEqual({ data: 'BBBB', width: 800, height: 600 })
  expect(changes).toEqual(['one', 'one'])
  expect(sent, 'the browser may send the next').toEqual(['start', 'next'])
})

test('secrets are masked in the addresses of tabs', () => {
  const { view, listen } = createView()
  listen('one')
  view.onMessage({ type: 'tabs', tabs: [{ url: 'https://shop.example/?key=secret', isShown: true }] })
  expect(view.tabs).toEqual([{ url: 'https://shop.example/?key=***', isShown: true }])
})

test('the end of an attempt ends its viewers, and sends nothing to the process that may run another', () => {
  const { view, sent, changes, listen } = createView()
  const leave = listen('one')
  view.end()
  leave()
  view.delivered()
  expect(changes).toEqual(['one ended'])
  expect(sent).toEqual(['start'])
})

test('a worker asks once at an address where another server responds', async () => {
  for (const body of ['', '<html></html>', '{}', 'null']) {
    let polls = 0
    const server = createServer(({ method }, response) => {
      if (method === 'GET') polls += 1
      response.end(body)
    }).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const { view } = createView()
    const connection = new DashboardConnection(
      { token: () => 'token' },
      { id: 'view', runId: 'run', address },
      view.watched,
    )
    const sender = new LiveViewSender(connection, view)
    expect(await sender.ended).toBe('unreachable')
    expect(polls).toBe(1)
  }
})

const [ada, bob] = [
  { id: 'ada', name: 'Ada' },
  { id: 'bob', name: 'Bob' },
]
const click = { type: 'wheel', x: 1, y: 2, deltaX: 0, deltaY: 3, modifiers: 0 } as const
const input = (by: typeof ada) => ({ type: 'input', by, inputs: [click] }) as const

test('input reaches the page of the one who has control, and once the workflow has paused', () => {
  const { view, sent, logged, pauses } = createView()
  view.onCommand({ type: 'takeOver', by: ada })
  view.onCommand({ type: 'takeOver', by: bob })
  expect(view.control.control).toEqual({ phase: 'pausing', by: ada, message: null })
  view.onCommand(input(ada))
  expect(sent).toEqual(['begin'])
  view.onMessage({ type: 'paused' })
  for (const by of [bob, ada]) view.onCommand(input(by))
  view.onCommand({ type: 'returnControl', by: bob })
  expect(sent).toEqual(['begin', 'input'])
  expect(view.control.control.phase).toBe('paused')
  view.onCommand({ type: 'returnControl', by: ada })
  view.onMessage({ type: 'resumed' })
  view.onCommand(input(ada))
  expect(sent).toEqual(['begin', 'input', 'end'])
  expect(pauses).toEqual([true, false])
  expect(logged).toEqual(['Ada took over the browser.', 'Ada returned control of the browser.'])
})

test('input waits until the workflow has paused again when the pause before it is over', () => {
  const { view, sent } = createView()
  view.onCommand({ type: 'takeOver', by: ada })
  view.onCommand({ type: 'returnControl', by: ada })
  view.onCommand({ type: 'takeOver', by: bob })
  // The executor sent these before it knew that Bob took over.
  view.onMessage({ type: 'paused' })
  view.onMessage({ type: 'resumed' })
  expect(view.control.control.phase).toBe('pausing')
  view.onCommand(input(bob))
  expect(sent).not.toContain('input')
})

test('secrets are masked in what a workflow asks for', () => {
  const { view } = createView()
  view.onMessage({ type: 'takeOverAwaited', message: 'Enter the secret code.', waitMinutes: 1 })
  expect(view.control.control.message).toBe('Enter the *** code.')
  view.end()
})

test('a browser whose controller is away for two minutes returns to the workflow', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const { view, sent } = createView()
  view.onCommand({ type: 'takeOver', by: ada })
  vi.advanceTimersByTime(119_000)
  view.control.present('bob')
  view.control.present('ada')
  vi.advanceTimersByTime(119_000)
  expect(sent).toEqual(['begin'])
  vi.advanceTimersByTime(1000)
  expect(sent).toEqual(['begin', 'end'])
  expect(view.control.control.by).toBe(null)
})

test('a workflow that asks for a person continues when no user takes over in time', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const { view, sent, logged } = createView()
  view.onMessage({ type: 'takeOverAwaited', message: 'Enter the code.', waitMinutes: 1 })
  expect(view.control.control).toEqual({ phase: 'awaited', by: null, message: 'Enter the code.' })
  vi.advanceTimersByTime(60_000)
  expect(sent).toEqual(['unanswered'])
  view.onMessage({ type: 'takeOverAwaited', message: 'Enter the code.', waitMinutes: 1 })
  view.onCommand({ type: 'takeOver', by: ada })
  expect(view.control.control.phase).toBe('paused')
  vi.advanceTimersByTime(100_000)
  expect(sent).toEqual(['unanswered', 'begin'])
  view.end()
  vi.advanceTimersByTime(600_000)
  expect(sent, 'an attempt that has ended is sent nothing').toEqual(['unanswered', 'begin'])
  expect(logged).toContain('No user took over the browser in time.')
})

test('time for which an attempt is paused does not count towards its time limit, up to 30 minutes', () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const limit = new TimeLimit()
  let reached = 0
  limit.start(60, () => {
    reached += 1
  })
  vi.advanceTimersByTime(50_000)
  limit.pause()
  vi.advanceTimersByTime(20 * 60_000)
  limit.resume()
  vi.advanceTimersByTime(9000)
  expect(reached).toBe(0)
  limit.pause()
  vi.advanceTimersByTime(10 * 60_000 + 900)
  expect(reached).toBe(0)
  vi.advanceTimersByTime(200)
  expect(reached).toBe(1)
  limit.pause()
  limit.clear()
})

test('only input of the documented shape is passed on', () => {
  const mouse = { type: 'mouse', event: 'mousePressed', x: 1, y: 2, button: 'left', clickCount: 1, modifiers: 0 }
  const key = { type: 'key', event: 'keyDown', key: 'a', code: 'KeyA', keyCode: 65, text: 'a', modifiers: 8 }
  for (const valid of [mouse, key, click, { type: 'text', text: 'pasted' }, { type: 'tab', index: 1 }]) {
    expect(parseInput({ ...valid, more: 1 })).toEqual(valid)
  }
  const invalid = [
    null,
    { type: 'evaluate' },
    { ...mouse, x: Number.NaN },
    { ...mouse, x: 1e9 },
    { ...mouse, event: 'mouseWheel' },
    { ...key, text: 'a'.repeat(51) },
    { ...key, key: 1 },
    { type: 'text', text: 'a'.repeat(10_001) },
    { type: 'tab', index: -1 },
  ]
  for (const each of invalid) expect(parseInput(each)).toBe(undefined)
})

test('a paused workflow goes on when its attempt is aborted', async () => {
  const abort = new AbortController()
  const sent: string[] = []
  const takeOver = new TakeOver((message) => sent.push(message.type), abort.signal)
  await takeOver.boundary()
  takeOver.begin()
  const steps = [takeOver.boundary(), takeOver.boundary()]
  expect(sent).toEqual(['paused'])
  takeOver.end()
  await Promise.all(steps)
  expect(sent).toEqual(['paused', 'resumed'])
  const waiting = takeOver.wait('Enter the code.')
  abort.abort(new Error('cancelled'))
  await expect(waiting).rejects.toThrow('cancelled')
  expect(sent).toEqual(['paused', 'resumed', 'takeOverAwaited', 'paused', 'resumed'])
})
