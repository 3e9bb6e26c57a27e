/** The latest queued runs. Each goes through the events of one documented run, as time passes. */
import type { ServerSentEvent } from '../../contract/handler.ts'
import { fromParameters, withDefaults } from '../../domain/queue/run-options.ts'
import { createRunId } from '../../domain/runs/run.ts'
import type { AcceptedRequest, QueueRequest } from './mock-workflows.ts'

export type ScenarioEvent = NonNullable<ServerSentEvent> & { data: EventData }

interface EventData {
  type: string
  sequence: number
  /** ISO 8601. */
  at: string
  [member: string]: unknown
}

interface QueuedRun {
  id: string
  createdAt: number
  startsAfter: number
  /** Members that do not change. */
  fixed: Record<string, unknown>
  output: unknown
  events: ScenarioEvent[]
}

/** Older runs are forgotten. */
const runsMax = 1000

const artifactDays = 30
const finalStatuses = ['succeeded', 'failed', 'timedOut', 'cancelled', 'expired']

export interface Clock {
  now(): number
  /** Resolves early if the signal is aborted. */
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>
}

export class MockRuns {
  readonly #runs = new Map<string, QueuedRun>()
  readonly #scenario: ScenarioEvent[]
  readonly #clock: Clock

  /** @param scenario the events of a run that succeeds, from `queued`. */
  constructor(scenario: ScenarioEvent[], clock: Clock) {
    this.#scenario = scenario
    this.#clock = clock
  }

  /**
   * @param template a queued run of the workflow.
   * @param isAwaited whether the run has finished when it is returned.
   * @param reused steps that the run does not execute.
   */
  queue(
    template: object,
    { workflow, variableData }: AcceptedRequest,
    { query }: QueueRequest,
    output: unknown,
    { isAwaited = false, reused = [] }: { isAwaited?: boolean; reused?: readonly string[] },
  ) {
    const now = this.#clock.now()
    const { delaySeconds, expiresInSeconds, ...options } = withDefaults(fromParameters(query))
    const startsAfter = delaySeconds * 1000
    const duration = timeOf(this.#scenario.at(-1)) - timeOf(this.#scenario[0])
    const createdAt = isAwaited ? now - duration - startsAfter : now
    const id = createRunId()
    const fixed = {
      ...{ ...template, id, workflowId: workflow.id, workflowVersion: workflow.version, variableData },
      ...options,
      persistContext: options.browserContextId === null ? null : options.persistContext,
      createdAt: toTime(createdAt),
      availableAt: startsAfter === 0 ? null : toTime(createdAt + startsAfter),
      expiresAt: expiresInSeconds === null ? null : toTime(createdAt + expiresInSeconds * 1000),
    }
    const events = reuseSteps(this.#scenario, reused).map((event, index) => {
      const offset = timeOf(event) - timeOf(this.#scenario[0]) + (index === 0 ? 0 : startsAfter)
      return { ...event, data: { ...event.data, at: toTime(createdAt + offset) } }
    })
    this.#runs.set(id, { id, createdAt, startsAfter, fixed, output, events })
    for (const oldest of this.#runs.keys()) {
      if (this.#runs.size <= runsMax) break
      this.#runs.delete(oldest)
    }
    return this.get(id) as Record<string, unknown>
  }

  /** The run as it is now; `undefined` if it was not queued here. */
  get(id: string): Record<string, unknown> | undefined {
    const run = this.#runs.get(id.toLowerCase())
    return run && toRun(run, this.#clock.now())
  }

  /** Names of the steps that the run has started or reused until now, in their order. */
  steps(id: string): { finished: string[]; unfinished: string[] } {
    const past = this.#runs.get(id.toLowerCase())?.events.filter((event) => timeOf(event) <= this.#clock.now()) ?? []
    const namesOf = (...states: string[]) =>
      past.filter(({ data }) => states.includes(String(data.state))).map(({ data }) => String(data.name))
    const finished = namesOf('finished', 'reused')
    return { finished, unfinished: namesOf('started').filter((name) => !finished.includes(name)) }
  }

  /** Like the service, leaves a finished run as it is. */
  cancel(id: string): Record<string, unknown> | undefined {
    const run = this.#runs.get(id.toLowerCase())
    if (!run) return undefined
    const now = this.#clock.now()
    const past = run.events.filter((event) => timeOf(event) <= now)
    const last = past.at(-1)
    if (!last || isFinal(last)) return toRun(run, now)
    const sequence = past.length + 1
    const attempt = past.findLast(({ data }) => data.type === 'status')?.data.attempt
    const data = { type: 'status', sequence, at: toTime(now), status: 'cancelled', attempt, reason: 'cancelRequested' }
    run.events = [...past, { id: String(sequence), event: 'status', data }]
    run.fixed = { ...run.fixed, cancelRequested: true }
    return toRun(run, now)
  }

  /** Sends each event when it is due. Returns `undefined` if the run was not queued here or has no event after `after`. */
  events(id: string, after: number, signal: AbortSignal): AsyncIterable<ServerSentEvent> | undefined {
    const run = this.#runs.get(id.toLowerCase())
    if (!run?.events.some(({ data }) => data.sequence > after)) return undefined
    return this.#follow(run, after, signal)
  }

  has(id: string): boolean {
    return this.#runs.has(id.toLowerCase())
  }

  async *#follow(run: QueuedRun, after: number, signal: AbortSignal): AsyncGenerator<ServerSentEvent> {
    let sequence = after
    while (!signal.aborted) {
      // Read again, because the run may have been cancelled.
      const next = run.events.find(({ data }) => data.sequence > sequence)
      if (!next) return
      const left = timeOf(next) - this.#clock.now()
      if (left > 0) await this.#clock.sleep(Math.min(left, pollMilliseconds), signal)
      else {
        sequence = next.data.sequence
        yield next
      }
    }
  }
}

/** How soon a stream notices that its run was cancelled. */
const pollMilliseconds = 250

/** The scenario with one event for each reused step, numbered again. */
function reuseSteps(scenario: readonly ScenarioEvent[], reused: readonly string[]): ScenarioEvent[] {
  const isReused = ({ data }: ScenarioEvent) => data.type === 'step' && reused.includes(String(data.name))
  const events = scenario.filter((event) => !isReused(event) || event.data.state === 'finished')
  return events.map((event, index) => {
    const data = { ...event.data, sequence: index + 1, ...(isReused(event) && { state: 'reused' }) }
    return { ...event, id: String(data.sequence), data }
  })
}

function isFinal({ data }: ScenarioEvent): boolean {
  return finalStatuses.includes(String(data.status))
}

function timeOf(event: ScenarioEvent | undefined): number {
  return Date.parse(event?.data.at ?? '')
}

function toTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString()
}

/** The run after all events until now. */
function toRun({ fixed, events, output, createdAt, startsAfter }: QueuedRun, now: number): Record<string, unknown> {
  const past = events.filter((event) => timeOf(event) <= now)
  const statuses = past.filter(({ data }) => data.type === 'status')
  const last = statuses.at(-1)
  const started = statuses.find(({ data }) => data.status === 'running')?.data.at ?? null
  const status = String(last?.data.status ?? 'queued')
  const finished = last && isFinal(last) ? last.data.at : null
  const progress = past.findLast(({ data }) => data.type === 'progress')?.data
  const artifacts = past.flatMap(({ data: { type, name, mediaType, sizeBytes, at } }) =>
    type === 'artifact' ? [{ name, mediaType, sizeBytes, createdAt: at, expiresAt: addDays(at) }] : [],
  )
  const outcome = finished === null ? null : status
  const attempt = { number: 1, startedAt: started, finishedAt: finished, outcome, error: null }
  const waitingFor = status !== 'queued' ? null : now < createdAt + startsAfter ? 'delay' : 'worker'
  return {
    ...{ ...fixed, status, waitingFor, reason: last?.data.reason ?? null, startedAt: started, finishedAt: finished },
    ...{ attempts: started === null ? 0 : 1, attemptHistory: started === null ? [] : [attempt] },
    progress: progress ? { percent: progress.percent, message: progress.message } : null,
    ...{ artifacts, output: status === 'succeeded' ? output : null },
  }
}

function addDays(at: string): string {
  return toTime(Date.parse(at) + artifactDays * 24 * 60 * 60 * 1000)
}
