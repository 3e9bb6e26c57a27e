/** Tells pages that what they show has changed, as server-sent events: `change`, and `end` when nothing will any more. */
import { once } from 'node:events'
import type { Request, Response } from 'express'
import { isFinal } from '../../../domain/runs/run-state.ts'
import type { Parts } from '../dependencies.ts'
import { readVisit } from '../serve.ts'
import { found, type Visit } from '../visit.ts'
import { isEnd } from './attempts.ts'
import { inBursts } from './bursts.ts'

/** Within it, a proxy hears that the connection lives, and whoever has signed out is no longer told anything. */
const quietSeconds = 15

/** A page is read anew for each piece of news; what happens within this time is one. */
const burstMilliseconds = 100

type News = 'change' | 'end' | null
type Stream = (visit: Visit, request: Request, response: Response) => Promise<void>

/** Of all runs of the account. */
export function allChanges(parts: Parts): Stream {
  return (visit, request, response) =>
    send(parts, visit, request, response, async function* (signal) {
      for await (const changed of parts.feed.changes(visit.account.id, quietSeconds, signal)) {
        yield changed ? 'change' : null
      }
    })
}

/** Of one run, after the event that the page names as the last that it knows. */
export function runChanges(parts: Parts): Stream {
  return async (visit, request, response) => {
    const run = found(await parts.runs.get(visit.account.id, visit.params.id ?? ''))
    const after = Number(visit.query.get('after')) || 0
    await send(parts, visit, request, response, async function* (signal) {
      if (isFinal(run.status) && !(await parts.feed.hasEventsAfter(run.id, after))) return yield 'end'
      for await (const event of inBursts(parts.feed.events(run.id, after, quietSeconds, signal), burstMilliseconds)) {
        yield event && 'change'
        if (event && isEnd(event)) yield 'end'
      }
    })
  }
}

/** Sends the news until there is no more, the reader goes or signs out, or the service stops. */
async function send(
  parts: Parts,
  visit: Visit,
  request: Request,
  response: Response,
  newsUntil: (signal: AbortSignal) => AsyncIterable<News>,
): Promise<void> {
  response.status(200).set({ 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' })
  if (request.method === 'HEAD') return void response.end()
  response.flushHeaders()
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  try {
    for await (const news of newsUntil(gone.signal)) {
      if (gone.signal.aborted || !(await isSignedIn(parts, visit, request, response))) break
      const text = news === null ? ': quiet\n\n' : `event: ${news}\ndata: {}\n\n`
      if (!response.write(text)) await once(response, 'drain', { signal: gone.signal })
    }
    response.end()
  } catch (error) {
    // Not ended properly, so that the browser tries again.
    response.destroy()
    if (!gone.signal.aborted) parts.log.warn({ err: error }, 'a stream of the dashboard failed')
  }
}

/** Asks the store for the session: the request remembers the one that it came with. */
async function isSignedIn(parts: Parts, visit: Visit, request: Request, response: Response): Promise<boolean> {
  const session = await parts.sessions.get(visit.sessionId)
  return session !== undefined && (await readVisit(parts, request, response)) !== undefined
}
