/**
 * What a simulated attempt does, and when: the reports of an executor, and the outcome. Times are milliseconds of execution
 * since the attempt started: time that a run waits for a sleep, an answer or a called run does not count.
 */
import type { GivenOptions, ReachedWait } from '../domain/queue/run-options.ts'
import type { NewArtifact } from '../domain/runs/artifact.ts'
import type { LogLevel } from '../domain/runs/reported-values.ts'
import type { Outcome } from '../domain/runs/run-state.ts'
import { CalledRunFailed } from '../domain/workflows/define-workflow.ts'
import type { WaitKind } from '../storage/tables/run-tables.ts'
import { contains } from './contains.ts'

export interface AttemptScript {
  /** In the order of their times. */
  events: readonly ScriptEvent[]
  outcome: ScriptOutcome
  /** When the attempt ends. At least the time of the last event. */
  durationMilliseconds: number
}

export type ScriptEvent = { at: number } & (
  | { type: 'log'; level: LogLevel; message: string }
  | { type: 'progress'; percent: number; message: string | null }
  /** `wait` is set for a wait that has ended before. */
  | { type: 'step'; name: string; state: 'started' | 'failed' | 'reused'; wait?: WaitKind }
  /** The value is JSON. */
  | { type: 'stepFinished'; name: string; value: unknown }
  | { type: 'artifact'; artifact: NewArtifact }
  | { type: 'wait'; wait: ScriptWait; answers?: readonly ScriptContinuation[] }
)

/** What follows an answer, instead of the later events and the outcome. The first that matches decides. */
export interface ScriptContinuation {
  /** The answer, or members that it has. `undefined`: no answer came in time. */
  value: unknown
  /** Its times are milliseconds since the wait. */
  script: AttemptScript
}

/** A wait before its run reaches it. Periods begin when the run does. Steps and waits share their names. */
export type ScriptWait = { name: string } & (
  | { kind: 'sleep'; time: { milliseconds: number } | { until: number } }
  | { kind: 'answer'; timeoutSeconds: number; title: string | null; shown: Record<string, unknown> | null }
  | { kind: 'run'; workflowId: string; variables: Record<string, unknown>; options: GivenOptions; isDetached: boolean }
)

/**
 * How the attempt ends. `failed` is followed by another attempt as the workflow's retry policy says. `workerLost`: the
 * worker is gone without a report, and the run continues when its lease has expired.
 */
export type ScriptOutcome = Extract<Outcome, { kind: 'succeeded' | 'failed' | 'timedOut' | 'workerLost' }>

/** The wait as a run reaches it at this time. */
export function toReachedWait(wait: ScriptWait, now: number): ReachedWait {
  const { name } = wait
  if (wait.kind === 'run') return wait
  if (wait.kind === 'sleep') {
    const deadline = 'until' in wait.time ? Math.max(now, wait.time.until) : now + wait.time.milliseconds
    return { name, kind: 'sleep', deadline }
  }
  const { timeoutSeconds, title, shown } = wait
  return { name, kind: 'answer', deadline: now + Math.round(timeoutSeconds * 1000), title, shown }
}

/**
 * The script of a run that has got an answer.
 *
 * @param index of the wait's event.
 * @param json what the run has got from the wait.
 */
export function followAnswer(script: AttemptScript, index: number, json: string): AttemptScript {
  const event = script.events[index]
  if (event?.type !== 'wait' || !event.answers) return script
  const { ok, value } = Object(JSON.parse(json))
  const next = event.answers.find((each) => {
    return each.value === undefined ? ok !== true : ok === true && contains(value, each.value)
  })
  if (!next) return script
  const { events, outcome, durationMilliseconds } = next.script
  const later = events.map((each) => ({ ...each, at: event.at + each.at }))
  return {
    events: [...script.events.slice(0, index + 1), ...later],
    outcome,
    durationMilliseconds: event.at + durationMilliseconds,
  }
}

/** The script after all answers that the run has got. */
function followAnswers(script: AttemptScript, results: ReadonlyMap<string, string>): AttemptScript {
  let followed = script
  for (let index = 0; index < followed.events.length; index += 1) {
    const event = followed.events[index]
    const json = event?.type === 'wait' ? results.get(event.wait.name) : undefined
    if (json !== undefined) followed = followAnswer(followed, index, json)
  }
  return followed
}

/**
 * The rest of the script for a run that has results of earlier parts. Its steps and waits are reused at once, and what it
 * reported in them and before its last wait is not repeated. A called run that has not succeeded fails the attempt.
 *
 * @param results of finished steps and of waits that have ended: JSON by name.
 */
export function resumeScript(whole: AttemptScript, results: ReadonlyMap<string, string>): AttemptScript {
  const script = followAnswers(whole, results)
  const { events } = script
  const isRecordedWait = (event: ScriptEvent) => event.type === 'wait' && results.has(event.wait.name)
  const lastWait = events.findLastIndex(isRecordedWait)
  const kept: ScriptEvent[] = []
  let reusedStep: { name: string; start: number } | undefined
  /** Execution time that is not repeated. */
  let saved = 0
  for (const [index, event] of events.entries()) {
    if (isRecordedWait(event) && event.type === 'wait') {
      const { name, kind } = event.wait
      kept.push({ at: 0, type: 'step', name, state: 'reused', wait: kind })
      const failure = kind === 'run' ? failureOfCall(name, results.get(name) as string) : undefined
      if (failure) return { events: kept, outcome: failure, durationMilliseconds: 0 }
      saved = event.at
    } else if (event.type === 'step' && event.state === 'started' && results.has(event.name)) {
      reusedStep = { name: event.name, start: event.at }
      const at = index < lastWait ? 0 : event.at - saved
      kept.push({ at, type: 'step', name: event.name, state: 'reused' })
    } else if (event.type === 'stepFinished' && event.name === reusedStep?.name) {
      saved += index < lastWait ? 0 : event.at - reusedStep.start
      reusedStep = undefined
    } else if (index > lastWait && !reusedStep) kept.push({ ...event, at: event.at - saved })
  }
  return { ...script, events: kept, durationMilliseconds: script.durationMilliseconds - saved }
}

/** As `call` of a workflow's context throws, if the workflow does not catch it. */
function failureOfCall(name: string, json: string): ScriptOutcome | undefined {
  const { ok, runId, status, error } = Object(JSON.parse(json))
  if (ok === true) return undefined
  const { message, name: errorName } = new CalledRunFailed(name, { runId, status, error })
  return { kind: 'failed', reason: 'workflowFailed', error: { name: errorName, message, stack: null, step: null } }
}
