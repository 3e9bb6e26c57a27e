/** The event stream of a page that watches a run: `frame`, `tabs`, `status`, and `end` when the run has ended. */
import { once } from 'node:events'
import express, { type Request, type RequestHandler, type Response, Router } from 'express'
import type { Actor } from '../../../domain/audit-log/audit-log.ts'
import { type Controller, type PageInput, parseInput } from '../../../domain/run-api/live-views.ts'
import type { Run } from '../../../domain/runs/run.ts'
import { isFinal } from '../../../domain/runs/run-state.ts'
import type { Dependencies } from '../dependencies.ts'
import { orNotFound, type StreamHandler } from '../page-handler.ts'
import { isSignedIn } from '../runs/change-streams.ts'
import { type LiveViewHub, type Received, type Shown, viewersPerRunMax, watchedRunsMax } from './live-view-hub.ts'

/** How often the session and the run are read, which may have ended. */
const checkMilliseconds = 5000
/** A worker connects within a second after the browser was opened. */
const connectMilliseconds = 10_000

export const streamLiveView: StreamHandler = async (page, deps, request, response) => {
  const read = async () => orNotFound(await deps.runs.get(page.account.id, page.params.id ?? ''))
  const run = await read()
  response.status(200).set({ 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' })
  if (request.method === 'HEAD') return void response.end()
  if (isFinal(run.status)) return void response.end(toEvent('end', {}))
  const usesBrowser = deps.workflows.current(page.account.id).get(run.workflowId)?.usesBrowser
  if (!usesBrowser) return void response.end(`${toEvent('status', { text: noBrowser })}${toEvent('end', {})}`)
  const closed = new AbortController()
  const stopping: AbortSignal[] = [request.app.locals.stopping ?? []].flat()
  const signal = AbortSignal.any([closed.signal, ...stopping])
  response.once('close', () => closed.abort())
  // The page may have been closed before there was a listener for it.
  if (response.closed) return
  response.flushHeaders()
  const viewing = { deps, response, signal, read, isSignedIn: () => isSignedIn(deps, request), by: page.actor }
  try {
    let current: Run | undefined = run
    // Only a running attempt takes one of the account's places.
    while (current && !isFinal(current.status) && !signal.aborted)
      current =
        current.status === 'running' ? await showAttempt(current, viewing) : await untilStarted(current, viewing)
    if (current && !signal.aborted) response.write(toEvent('end', {}))
  } catch (error) {
    if (!signal.aborted) deps.log.warn({ err: error }, 'live view failed')
  } finally {
    response.end()
  }
}

interface Viewing {
  deps: Dependencies
  response: Response
  signal: AbortSignal
  read(): Promise<Run>
  isSignedIn(): Promise<boolean>
  by: Actor
}

/** Returns the run when an attempt runs or it has finished; `undefined` if the session has ended. */
async function untilStarted(run: Run, { deps, response, signal, read, isSignedIn }: Viewing): Promise<Run | undefined> {
  await send(response, toEvent('status', { text: 'The run is waiting to start.' }), signal)
  for await (const event of deps.feed.events(run.id, 0, checkMilliseconds / 1000, signal)) {
    if (event && event.type !== 'status') continue
    if (!(await isSignedIn())) return undefined
    const current = await read()
    if (current.status === 'running' || isFinal(current.status)) return current
    if (!event) await send(response, ': heartbeat\n\n', signal)
  }
  return signal.aborted ? undefined : read()
}

/** Shows the browser while an attempt runs. Returns the run afterwards; `undefined` if the session has ended. */
async function showAttempt(run: Run, { deps, response, signal, read, isSignedIn, by }: Viewing) {
  const viewer = await deps.liveView.watch(run, by)
  if (!viewer) {
    await send(response, toEvent('status', { text: tooMany }) + toEvent('end', {}), signal)
    return undefined
  }
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
        if (!(await isSignedIn())) return undefined
        const current = await read()
        if (current.status !== 'running') return current
        checkAt = performance.now() + checkMilliseconds
        await send(response, ': heartbeat\n\n', signal)
      }
      const text = describe(state)
      await send(response, toEvents(shown, text === status ? undefined : text), signal)
      status = text
    }
  } finally {
    deps.liveView.leave(run.id, viewer)
  }
  return undefined
}

const noBrowser = 'The workflow of this run uses no browser.'
const tooMany = `This account watches ${watchedRunsMax} runs, or this run has ${viewersPerRunMax} viewers. Close another page and try again.`

function describe(state: { isConnected: boolean; wasConnected: boolean; since: number }): string {
  if (state.isConnected) return ''
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

// Taking over the browser of a run, handing it back, and the input in between: sent by the script of the run's page.

/** Inputs in one request; the page collects them while the one before is sent. */
const inputsMax = 100

/** 409 if someone else has control, or no worker is connected. */
export const takeOver: StreamHandler = async ({ account, actor, user, params }, deps, _request, response) => {
  const run = orNotFound(await deps.runs.get(account.id, params.id ?? ''))
  const control = await deps.liveView.control(run.id)
  if (!control || control.by !== null) return void response.status(409).end()
  // Before the command: no user has control without an entry.
  await deps.liveViews.record('run.takenOver', account.id, actor, run)
  await deps.liveView.command(run.id, { type: 'takeOver', by: toController(user) })
  response.status(204).end()
}

export const returnControl: StreamHandler = async ({ account, actor, user, params }, deps, _request, response) => {
  const run = orNotFound(await deps.runs.get(account.id, params.id ?? ''))
  const control = await deps.liveView.control(run.id)
  if (control?.by?.id !== user.id) return void response.status(409).end()
  await deps.liveView.command(run.id, { type: 'returnControl', by: toController(user) })
  await deps.liveViews.record('run.returnedControl', account.id, actor, run)
  response.status(204).end()
}

/** The form's `inputs` is a JSON array. The worker drops input of users who do not have control. */
export const sendInput: StreamHandler = async ({ account, user, params, form }, deps, _request, response) => {
  const run = orNotFound(await deps.runs.get(account.id, params.id ?? ''))
  const inputs = parseInputs(form.get('inputs') ?? '')
  if (!inputs) return void response.status(400).end()
  const control = await deps.liveView.control(run.id)
  if (control?.by?.id !== user.id) return void response.status(409).end()
  await deps.liveView.command(run.id, { type: 'input', by: toController(user), inputs })
  response.status(204).end()
}

function toController({ id, name }: Controller): Controller {
  return { id, name }
}

/** Returns `undefined` unless all of it is input. */
function parseInputs(text: string): PageInput[] | undefined {
  try {
    const values: unknown = JSON.parse(text)
    if (!Array.isArray(values) || values.length > inputsMax) return undefined
    const inputs = values.map(parseInput).filter((input) => input !== undefined)
    return inputs.length === values.length ? inputs : undefined
  } catch {
    return undefined
  }
}

// Where workers send what a watched browser shows: a request for each frame, and one that stays open while someone
// watches. They need no session, but a token that belongs to the view and the attempt.

/** A frame has at most 1.5 MB. */
const bodyBytesMax = 2 * 1024 * 1024
/** Shorter than the time after which proxies close a quiet connection. */
const holdMilliseconds = 15_000
/** From the response to one of a worker's waiting requests to the next one. */
const gapMilliseconds = 5000

export function workerConnections(hub: LiveViewHub): Router {
  /** By view and attempt: an earlier attempt's connection may still be open. */
  const gaps = new Map<string, NodeJS.Timeout>()
  const requireToken: RequestHandler = (request, response, next) => {
    const { id, attempt } = read(request)
    const token = /^Bearer ([\w-]+)$/.exec(request.get('Authorization') ?? '')?.[1] ?? ''
    const admitted = Number.isSafeInteger(attempt) && hub.admits(id, attempt, token)
    if (admitted) return next()
    response.status(admitted === undefined ? 410 : 401).end()
  }
  const wait: RequestHandler = async (request, response) => {
    const { id, attempt } = read(request)
    const connection = `${id}/${attempt}`
    clearTimeout(gaps.get(connection))
    gaps.delete(connection)
    const lost = new AbortController()
    response.once('close', () => lost.abort())
    const stopping: AbortSignal[] = [request.app.locals.stopping ?? []].flat()
    const ended = AbortSignal.any([lost.signal, AbortSignal.timeout(holdMilliseconds), ...stopping])
    const next = await hub.nextCommands(id, ended)
    if (lost.signal.aborted) return hub.disconnect(id, attempt)
    const forget = () => {
      gaps.delete(connection)
      hub.disconnect(id, attempt)
    }
    if (!next) return void response.status(410).end()
    gaps.set(connection, setTimeout(forget, gapMilliseconds).unref())
    response.json(next)
  }
  const receive: RequestHandler = (request, response) => {
    hub.receive(read(request).id, parse(request.body))
    response.status(204).end()
  }
  const router = Router()
  const path = '/live-views/:id/attempts/:attempt'
  router.get(path, requireToken, wait)
  router.post(path, requireToken, express.json({ limit: bodyBytesMax }), receive)
  return router
}

function read({ params }: Request): { id: string; attempt: number } {
  return { id: String(params.id), attempt: Number(params.attempt) }
}

const isNumber = (value: unknown) => typeof value === 'number'

/** The worker passes on what a workflow's process has sent. */
function parse(body: unknown): Received {
  const { frame, tabs, control } = Object(body)
  const { data, width, height } = Object(frame)
  const isFrame = /^[A-Za-z0-9+/]+=*$/.test(String(data)) && isNumber(width) && isNumber(height)
  const areTabs = Array.isArray(tabs) && tabs.every((tab) => typeof Object(tab).url === 'string')
  return {
    ...(isFrame && { frame: { data, width, height } }),
    ...(typeof Object(control).phase === 'string' && { control }),
    ...(areTabs && { tabs: tabs.map(({ url, isShown }) => ({ url, isShown: isShown === true })) }),
  }
}
