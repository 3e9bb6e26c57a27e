/** What watching costs a worker: pictures are taken while someone watches, and at the speed at which they are taken off. */
import { expect, test } from 'vitest'
import { AttemptLiveView } from '../../src/worker/live-view/attempt-live-view.ts'

const frame = (data: string) => ({ type: 'frame', data, width: 800, height: 600 }) as const

function createView() {
  const sent: string[] = []
  const redact = <Value>(value: Value) => JSON.parse(JSON.stringify(value).replaceAll('secret', '***')) as Value
  const view = new AttemptLiveView({ runId: 'run', attempt: 1 }, (action) => sent.push(action), redact)
  const changes: string[] = []
  const listen = (name: string) =>
    view.listen({ changed: () => changes.push(name), ended: () => changes.push(`${name} ended`) })
  return { view, sent, changes, listen }
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
