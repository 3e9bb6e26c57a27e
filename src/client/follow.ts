/** Follows a run by its event stream, over disconnects, to its last event. */
import type { ExecutionV1Operations } from '../../generated/execution.v1/client.ts'
import type { components } from '../../generated/execution.v1/types.ts'
import { eventsOf } from './event-stream.ts'
import { type ClientOptions, type LimitOptions, limitsOf } from './options.ts'
import { aborted, type Problem, ProblemError, problemTypes, unexpectedAnswer } from './problem.ts'
import { isTransient, waitSeconds } from './retry.ts'
import { pause, timeLimit } from './time-limit.ts'

type RunEvent = components['schemas']['RunEvent']
type Status = components['schemas']['RunStatus']

/** What `runs.events` can be told. */
export interface EventsOptions extends Omit<LimitOptions, 'totalSeconds'> {
  /** The `sequence` of the last event that is known already; the events after it follow. Without it: from the first on. */
  after?: number | undefined
  /** Ends the loop with a ProblemError of the type `aborted`. To end it without one, leave it. */
  signal?: AbortSignal | null | undefined
  /** How often in a row it may fail to connect before the loop ends with an error. 10 by default: two to four minutes. */
  retries?: number | undefined
  /** A connection that has been silent for this long is given up for a new one. 45 by default: three heartbeats. */
  silenceSeconds?: number | undefined
}

const usualRetries = 10
const usualSilenceSeconds = 45

/** No event comes after one of these. After a status that only a later service has, the service is asked. */
const final: string[] = ['succeeded', 'failed', 'timedOut', 'cancelled', 'expired'] satisfies Status[]

export async function* follow(
  operations: ExecutionV1Operations,
  client: ClientOptions,
  runId: string,
  { after, signal, silenceSeconds = usualSilenceSeconds, ...given }: EventsOptions,
): AsyncGenerator<RunEvent> {
  const { retries = usualRetries, ...limits } = given
  let last = after
  let failures = 0
  for (;;) {
    const silence = timeLimit(signal, silenceSeconds)
    const onBytes = () => {
      // Also for a heartbeat: who hears from a quiet run follows it, however often its connection is closed.
      failures = 0
      silence.restart()
    }
    let problem: Problem
    try {
      const header = last === undefined ? {} : { 'Last-Event-ID': String(last) }
      const init = { params: { path: { runId }, header }, ...limits, retries: 0, signal: silence.signal }
      // Until its head is there, a connection has the time of any call.
      silence.stop()
      const { data, error, response } = await operations.streamRunEvents(init)
      if (error) problem = error
      // 204: the run has finished.
      else if (!data) return
      else {
        silence.restart()
        for await (const event of readEvents(data, response, onBytes)) {
          // Something on the way may drop Last-Event-ID, and the stream then starts anew.
          if (last === undefined || event.sequence > last) {
            last = event.sequence
            // While the caller is busy with an event nothing is read, and so nothing is silent.
            silence.stop()
            yield event
            silence.restart()
          }
          if (event.type === 'status' && final.includes(event.status)) return
        }
        problem = broken(runId, undefined)
      }
    } catch (cause) {
      problem = cause instanceof ProblemError ? cause.problem : broken(runId, cause)
    } finally {
      silence.abort()
      silence.end()
    }
    if (signal?.aborted) throw new ProblemError(aborted(signal))
    failures += 1
    const seconds = waitSeconds(failures, problem, limitsOf(client, limits))
    if (failures > retries || !isTransient(problem) || seconds === undefined) throw new ProblemError(problem)
    await pause(seconds, signal)
  }
}

async function* readEvents(stream: ReadableStream<Uint8Array>, response: Response, onBytes: () => void) {
  const mediaType = response.headers.get('Content-Type') ?? ''
  if (!/^text\/event-stream\b/i.test(mediaType)) throw notFollowable(response, `it is "${mediaType}"`)
  for await (const data of eventsOf(stream, onBytes)) {
    const event = eventOf(data)
    if (!event) throw notFollowable(response, `it has "${data.slice(0, 100)}"`)
    yield event
  }
}

/** Nothing is known of events of a later service but that they have a number. */
function eventOf(data: string): RunEvent | undefined {
  try {
    const event = JSON.parse(data) as RunEvent | null
    return typeof event?.sequence === 'number' ? event : undefined
  } catch {
    return undefined
  }
}

function notFollowable(response: Response, reason: string): ProblemError {
  return new ProblemError(unexpectedAnswer(response, `The answer is no stream of a run's events: ${reason}.`))
}

/** The stream ended although the run has not: the service stops, or the connection is gone. */
function broken(runId: string, cause: unknown): Problem {
  const detail = `The event stream of run ${runId} broke off.`
  return { status: 0, type: problemTypes.networkFailure, title: 'Network failure', detail, cause }
}
