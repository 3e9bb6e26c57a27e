/** The event stream of a page that watches a run: `frame`, `tabs`, `status`, and `end` when the run has ended. */
import { once } from 'node:events'
import type { Response } from 'express'
import type { Run } from '../../../domain/runs/run.ts'
import { isFinal } from '../../../domain/runs/run-state.ts'
import { orNotFound, type StreamHandler } from '../page-handler.ts'
import { isSignedIn } from '../runs/change-streams.ts'
import type { Shown } from './viewer.ts'

/** How often the session and the run are read, which may have ended. */
const checkMilliseconds = 5000
/** A worker connects within a second after the browser was opened. */
const connectMilliseconds = 10_000

export const streamLiveView: StreamHandler = async (page, deps, request, response) => {
  const read = async () => orNotFound(await deps.runs.get(page.account.id, page.params.id ?? ''))
  let run = await read()
  response.status(200).set({ 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' })
  if (request.method === 'HEAD') return void response.end()
  if (isFinal(run.status)) return void response.end(toEvent('end', {}))
  const closed = new AbortController()
  const stopping: AbortSignal[] = [request.app.locals.stopping ?? []].flat()
  const signal = AbortSignal.any([closed.signal, ...stopping])
  response.once('close', () => closed.abort())
  // The page may have been closed before there was a listener for it.
  if (response.closed) return
  const viewer = await deps.liveView.watch(run, page.actor)
  if (!viewer) return void response.end(`${toEvent('status', { text: tooMany })}${toEvent('end', {})}`)
  response.flushHeaders()
  const state = { isConnected: false, wasConnected: false, since: performance.now() }
  let status: string | undefined
  let checkAt = performance.now() + checkMilliseconds
  try {
    while (!signal.aborted) {
      const shown = await viewer.next(Math.max(0, checkAt - performance.now()), signal)
      if (shown.isConnected !== undefined && shown.isConnected !== state.isConnected) {
        Object.assign(state, { isConnected: shown.isConnected, since: performance.now() })
        state.wasConnected ||= shown.isConnected
      }
      if (performance.now() >= checkAt || shown.isConnected === false) {
        if (!(await isSignedIn(deps, request))) break
        run = await read()
        if (isFinal(run.status)) return void response.write(toEvent('end', {}))
        checkAt = performance.now() + checkMilliseconds
        await send(response, ': heartbeat\n\n', signal)
      }
      const text = describe(run, state)
      await send(response, toEvents(shown, text === status ? undefined : text), signal)
      status = text
    }
  } catch (error) {
    if (!signal.aborted) deps.log.warn({ err: error }, 'live view failed')
  } finally {
    deps.liveView.leave(run.id, viewer)
    response.end()
  }
}

const tooMany = 'Too many people watch runs at the moment. Try again later.'

function describe({ status }: Run, state: { isConnected: boolean; wasConnected: boolean; since: number }): string {
  if (state.isConnected) return ''
  if (status === 'queued') return 'The run is waiting to start.'
  if (state.wasConnected) return 'The connection to the browser has ended. Waiting for the run to continue.'
  if (performance.now() - state.since < connectMilliseconds) return 'Waiting for the browser.'
  return 'Waiting for the browser. If the run uses it already, its worker cannot reach this dashboard (LIVE_VIEW_ADDRESS).'
}

function toEvents({ frame, tabs, control }: Shown, status: string | undefined): string {
  const events = [
    status !== undefined && toEvent('status', { text: status }),
    control && toEvent('control', control),
    tabs && toEvent('tabs', tabs),
    frame && toEvent('frame', frame),
  ]
  return events.filter((event) => event !== false && event !== undefined).join('')
}

function toEvent(name: string, data: unknown): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}

/** Waits until the page has taken what was sent before, so that it gets the latest frame next. */
async function send(response: Response, text: string, signal: AbortSignal): Promise<void> {
  if (text !== '' && !response.write(text)) await once(response, 'drain', { signal })
}
