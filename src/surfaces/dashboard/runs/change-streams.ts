/** Server-sent events that make open pages reload their content: `change`, and `end` when a run has finished. */
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { Request, Response } from 'express'
import { isFinal } from '../../../domain/runs/run-state.ts'
import type { Dependencies } from '../dependencies.ts'
import { orNotFound, type StreamHandler } from '../page-handler.ts'
import { authenticate } from '../page-routes.ts'
import { isFinalStatus } from './run-attempts.ts'

/** Interval of comments on a quiet stream, which keep proxies from closing it and detect sessions that have ended. */
const heartbeatSeconds = 15

/** Events within this time cause one reload. */
const burstMilliseconds = 100

/** `null` when there was no change within the heartbeat interval. */
type Message = 'change' | 'end' | null

export const streamAccountChanges: StreamHandler = (page, deps, request, response) =>
  sendMessages(deps, request, response, async function* (signal) {
    for await (const changed of deps.feed.changes(page.account.id, heartbeatSeconds, signal)) {
      yield changed ? 'change' : null
    }
  })

/** Changes of one run after the event that the page knows as the last one. */
export const streamRunChanges: StreamHandler = async (page, deps, request, response) => {
  const run = orNotFound(await deps.runs.get(page.account.id, page.params.id ?? ''))
  const after = Number(page.query.get('after')) || 0
  await sendMessages(deps, request, response, async function* (signal) {
    if (isFinal(run.status) && !(await deps.feed.hasEventsAfter(run.id, after))) return yield 'end'
    const events = deps.feed.events(run.id, after, heartbeatSeconds, signal)
    for await (const event of lastOfBursts(events, burstMilliseconds)) {
      yield event && 'change'
      if (event && isFinalStatus(event)) yield 'end'
    }
  })
}

/** Changes of a bulk action, read at each change of the account's runs and each second: some batches change no run. */
export const streamBulkActionChanges: StreamHandler = async ({ account, params }, deps, request, response) => {
  const read = async () => orNotFound(await deps.bulkActions.get(account.id, params.id ?? ''))
  await read()
  await sendMessages(deps, request, response, async function* (signal) {
    let shown = ''
    for await (const _ of deps.feed.changes(account.id, 1, signal)) {
      const action = await read()
      const state = JSON.stringify(action)
      yield state === shown ? null : 'change'
      if (action.status === 'finished') return yield 'end'
      shown = state
    }
  })
}

/** Sends messages until there are no more, the browser disconnects, the session ends or the service stops. */
async function sendMessages(
  deps: Dependencies,
  request: Request,
  response: Response,
  messages: (signal: AbortSignal) => AsyncIterable<Message>,
): Promise<void> {
  response.status(200).set({ 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' })
  if (request.method === 'HEAD') return void response.end()
  response.flushHeaders()
  const aborted = new AbortController()
  response.once('close', () => aborted.abort())
  try {
    for await (const message of messages(aborted.signal)) {
      if (aborted.signal.aborted || !(await isSignedIn(deps, request))) break
      const text = message === null ? ': heartbeat\n\n' : `event: ${message}\ndata: {}\n\n`
      if (!response.write(text)) await once(response, 'drain', { signal: aborted.signal })
    }
    response.end()
  } catch (error) {
    // Aborts the connection, so that the browser reconnects.
    response.destroy()
    if (!aborted.signal.aborted) deps.log.warn({ err: error }, 'dashboard event stream failed')
  }
}

/** Reads the session from the store: the request still has the one that it started with. */
export async function isSignedIn(deps: Dependencies, request: Request) {
  const session = await deps.sessions.get(request.sessionID)
  return session !== undefined && (await authenticate(deps, request)) !== undefined
}

/**
 * Yields the last value of each burst: of those that arrive within `milliseconds` of the first. Yields `null` when it
 * arrives alone. Ends with its source.
 */
export async function* lastOfBursts<Value>(
  source: AsyncGenerator<Value | null>,
  milliseconds: number,
): AsyncGenerator<Value | null> {
  let next = source.next()
  try {
    for (;;) {
      const first = await next
      if (first.done) return
      let last = first.value
      next = source.next()
      const cancel = new AbortController()
      const timeout = delay(milliseconds, undefined, { signal: cancel.signal }).catch(() => undefined)
      const end = performance.now() + milliseconds
      // Checks the clock too: values that arrive without a pause keep timers from firing.
      while (last !== null && performance.now() < end) {
        const result = await Promise.race([next, timeout])
        if (!result || result.done) break
        last = result.value ?? last
        next = source.next()
      }
      cancel.abort()
      yield last
    }
  } finally {
    // Not awaited: a generator returns only after its pending `next` has resolved.
    next.catch(() => {})
    source.return(undefined).catch(() => {})
  }
}
