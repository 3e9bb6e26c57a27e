/** Sends server-sent events (HTML Standard, section 9.2) as they come, no faster than the client takes them. */
import type { Exchange } from './exchange.ts'
import type { ServerSentEvent } from './handler.ts'

const heartbeat = ': heartbeat\n\n'

/** Sends the head at once, then the events until they end, the client goes, or the service stops. */
export function sendEvents(
  exchange: Exchange,
  status: number,
  headers: string[],
  events: AsyncIterable<ServerSentEvent>,
): void {
  exchange.response.writeHead(status, headers).flushHeaders()
  writeAll(exchange, events)
    .then(() => exchange.response.end())
    .catch((error: unknown) => {
      exchange.fault('The event stream failed.', { err: error })
      // Not ended properly, so that the client sees that events are missing.
      exchange.response.destroy()
    })
    .finally(() => exchange.end(status))
}

async function writeAll(exchange: Exchange, events: AsyncIterable<ServerSentEvent>) {
  const { response } = exchange
  const iterator = events[Symbol.asyncIterator]()
  const interruption = interruptionOf(exchange)
  try {
    while (!interruption.isOver) {
      const next = await interruption.unless(iterator.next())
      if (!next || next.done) return
      if (!response.write(eventText(exchange, next.value))) {
        await interruption.unless(new Promise((resolve) => response.once('drain', resolve)))
      }
    }
  } finally {
    interruption.forget()
    // Not awaited: a generator returns only when what it waits for has come.
    iterator.return?.()?.catch((error: unknown) => exchange.fault('The event stream failed to end.', { err: error }))
  }
}

function eventText(exchange: Exchange, event: ServerSentEvent): string {
  if (event === null) return heartbeat
  const wrong = exchange.served?.answers.checkEvent(event.data)
  if (wrong !== undefined) throw new Error(`An event does not fit its document: ${wrong}`)
  if (/[\r\n\0]/.test(event.id + event.event)) throw new Error('The id or name of an event has a line break.')
  return `id: ${event.id}\nevent: ${event.event}\ndata: ${JSON.stringify(event.data)}\n\n`
}

/** Ends waiting when the connection closes or the service stops. */
function interruptionOf({ response }: Exchange) {
  const stopping = response.app.locals.stopping as AbortSignal | undefined
  let wake = () => {}
  const interrupt = () => {
    interruption.isOver = true
    wake()
  }
  const interruption = {
    isOver: response.destroyed || (stopping?.aborted ?? false),
    /** Resolves with nothing when interrupted. `Promise.race` would keep each promise until the stream ends. */
    unless<T>(promise: Promise<T>): Promise<T | undefined> {
      return new Promise((resolve, reject) => {
        wake = () => resolve(undefined)
        promise.then(resolve, reject)
        if (interruption.isOver) wake()
      })
    },
    forget() {
      response.off('close', interrupt)
      stopping?.removeEventListener('abort', interrupt)
    },
  }
  response.once('close', interrupt)
  stopping?.addEventListener('abort', interrupt)
  return interruption
}
