/** Follows a run's event stream to its last event, reconnecting when the connection breaks. */
import type { ExecutionV1Operations } from '../../generated/execution.v1/client.ts'
import type { components } from '../../generated/execution.v1/types.ts'
import { parseEvents } from './event-stream.ts'
import { type ClientOptions, type LimitOptions, resolveLimits } from './options.ts'
import { aborted, type Problem, ProblemError, problemTypes, unexpectedResponse } from './problem.ts'
import { isTransient, pause, retryDelay, timeLimit } from './time-limit.ts'

type RunEvent = components['schemas']['RunEvent']
type Status = components['schemas']['RunStatus']

/** Options of `runs.events`. */
export interface EventsOptions extends Omit<LimitOptions, 'totalSeconds'> {
  /** The `sequence` of the last known event; only later events are returned. Default: all events. */
  after?: number | undefined
  /** Aborts the loop with a ProblemError of the type `problemTypes.aborted`. Use `break` to leave it without an error. */
  signal?: AbortSignal | null | undefined
  /** How many connection failures in a row are allowed. Default: 10, which takes two to four minutes. */
  retries?: number | undefined
  /** A connection that receives nothing for this long is replaced. Default: 45, which is three heartbeats. */
  silenceSeconds?: number | undefined
}

const defaultRetries = 10
const defaultSilenceSeconds = 45

/** No event follows one of these. For statuses that a later version may add, the service reports the end with 204. */
const finalStatuses: string[] = ['succeeded', 'failed', 'timedOut', 'cancelled', 'expired'] satisfies Status[]

export async function* followRun(
  operations: ExecutionV1Operations,
  client: ClientOptions,
  runId: string,
  { after, signal, silenceSeconds = defaultSilenceSeconds, ...given }: EventsOptions,
): AsyncGenerator<RunEvent> {
  const { retries = defaultRetries, ...limits } = given
  let last = after
  let failures = 0
  for (;;) {
    const silence = timeLimit(signal, silenceSeconds)
    const onBytes = () => {
      // Heartbeats count too: a connection that delivers them works, even if the run is quiet.
      failures = 0
      silence.restart()
    }
    let problem: Problem
    try {
      const header = last === undefined ? {} : { 'Last-Event-ID': String(last) }
      const init = { params: { path: { runId }, header }, ...limits, retries: 0, signal: silence.signal }
      // Until the response headers arrive, the call's own time limit applies.
      silence.stop()
      const { data, error, response } = await operations.streamRunEvents(init)
      if (error) problem = error
      // 204: the run has finished.
      else if (!data) return
      else {
        silence.restart()
        for await (const event of readEvents(data, response, onBytes)) {
          // A proxy may drop Last-Event-ID, so that the stream starts from the beginning.
          if (last === undefined || event.sequence > last) {
            last = event.sequence
            // Nothing is read while the caller handles an event.
            silence.stop()
            yield event
            silence.restart()
          }
          if (event.type === 'status' && finalStatuses.includes(event.status)) return
        }
        problem = connectionLost(runId, undefined)
      }
    } catch (cause) {
      problem = cause instanceof ProblemError ? cause.problem : connectionLost(runId, cause)
    } finally {
      silence.abort()
      silence.end()
    }
    if (signal?.aborted) throw new ProblemError(aborted(signal))
    failures += 1
    const seconds = retryDelay(failures, problem, resolveLimits(client, limits))
    if (failures > retries || !isTransient(problem) || seconds === undefined) throw new ProblemError(problem)
    await pause(seconds, signal)
  }
}

async function* readEvents(stream: ReadableStream<Uint8Array>, response: Response, onBytes: () => void) {
  const mediaType = response.headers.get('Content-Type') ?? ''
  if (!/^text\/event-stream\b/i.test(mediaType)) throw notAnEventStream(response, `it is "${mediaType}"`)
  for await (const data of parseEvents(stream, onBytes)) {
    const event = parseRunEvent(data)
    if (!event) throw notAnEventStream(response, `it contains "${data.slice(0, 100)}"`)
    yield event
  }
}

/** Checks only the sequence number: a later version may add types of events. */
function parseRunEvent(data: string): RunEvent | undefined {
  try {
    const event = JSON.parse(data) as RunEvent | null
    return typeof event?.sequence === 'number' ? event : undefined
  } catch {
    return undefined
  }
}

function notAnEventStream(response: Response, reason: string): ProblemError {
  return new ProblemError(unexpectedResponse(response, `The response is not a stream of run events: ${reason}.`))
}

/** The stream ended before the run did: the service stopped, or the connection broke. */
function connectionLost(runId: string, cause: unknown): Problem {
  const detail = `The event stream of run ${runId} was interrupted.`
  return { status: 0, type: problemTypes.networkFailure, title: 'Network failure', detail, cause }
}
