/** Turns a scenario into the script of one attempt. */

import { mediaTypeFor, type NewArtifact } from '../domain/runs/artifact.ts'
import type { Workflow } from '../domain/workflows/workflow.ts'
import type { AttemptScript, ScriptContinuation, ScriptEvent, ScriptOutcome, ScriptWait } from './attempt-script.ts'
import { defaultActions } from './default-actions.ts'
import type {
  Action,
  Continuation,
  Evidence,
  OutcomeName,
  Report,
  Scenario,
  ScenarioError,
} from './scenarios-schema.ts'

export interface ScriptRequest {
  workflow: Workflow
  scenario: Omit<Scenario, 'workflow'>
  attempt: number
  /** Of an attempt that does not end early. */
  durationMilliseconds: number
  output: unknown
}

/** Actions that follow each other, and how the attempt ends after them. */
interface Part {
  actions: readonly Action[]
  milliseconds: number
  kind: OutcomeName
  endsInStep: string | undefined
  error: ScenarioError | undefined
  output: unknown
}

/** How long an attempt of this outcome executes, and the script until then. */
export function buildScript(request: ScriptRequest): AttemptScript {
  const { workflow, scenario, attempt, durationMilliseconds: milliseconds, output } = request
  const { endsInStep, error } = scenario
  const kind = outcomeOfAttempt(scenario, attempt)
  const actions = scenario.actions ?? defaultActions(workflow, kind === 'succeeded')
  return buildPart(request, { actions, milliseconds, kind, endsInStep, error, output })
}

function buildPart(request: ScriptRequest, part: Part): AttemptScript {
  const { workflow, scenario, attempt } = request
  const { kind, endsInStep } = part
  const timed = timeActions(part.actions, part.milliseconds)
  const last = kind === 'succeeded' ? undefined : findLastStep(timed, endsInStep)
  const events: ScriptEvent[] = []
  for (const each of timed) {
    const isLast = each === last
    const continueWith = (answer: Continuation) => buildPart(request, partAfter(answer, part, each.end))
    events.push(...toEvents(each, isLast, continueWith))
    if (isLast) break
  }
  const end = last && endsInStep !== undefined ? last.end : part.milliseconds
  const step = last ? nameOfStep(last.action) : null
  const durationMilliseconds = kind === 'timedOut' ? workflow.timeLimitSeconds * 1000 : end
  if (kind === 'failed' && step !== null) events.push({ at: end, type: 'step', name: step, state: 'failed' })
  const hasFailed = kind === 'failed' || kind === 'timedOut'
  const evidence = evidenceOf(workflow, attempt, hasFailed, scenario.evidence)
  events.push(...evidence.map((artifact) => ({ at: durationMilliseconds, type: 'artifact' as const, artifact })))
  return { events, outcome: toOutcome(part, workflow, step), durationMilliseconds }
}

/** It takes as long as its actions say, and all that is left if one of its steps says nothing. */
function partAfter({ actions = [], error, output }: Continuation, before: Part, reachedAt: number): Part {
  const named = 1000 * namedSeconds(actions)
  const milliseconds = actions.some(isOpenStep) ? Math.max(named, before.milliseconds - reachedAt) : named
  return {
    ...{ ...before, actions, milliseconds: Math.round(milliseconds) },
    ...(error && { kind: 'failed', error, endsInStep: undefined }),
    ...(output !== undefined && { kind: 'succeeded', output }),
  }
}

export function outcomeOf({ outcome, error }: Pick<Scenario, 'outcome' | 'error'>): OutcomeName {
  return outcome ?? (error ? 'failed' : 'succeeded')
}

function outcomeOfAttempt(scenario: ScriptRequest['scenario'], attempt: number): OutcomeName {
  const { firstAttempts = Number.POSITIVE_INFINITY } = scenario
  return attempt <= firstAttempts ? outcomeOf(scenario) : 'succeeded'
}

function toOutcome(part: Part, { timeLimitSeconds }: Workflow, step: string | null): ScriptOutcome {
  const { kind, output } = part
  switch (kind) {
    case 'succeeded':
      return { kind, output }
    case 'workerLost':
      return { kind }
    case 'timedOut':
      return { kind, limitSeconds: timeLimitSeconds, step }
    case 'failed': {
      const { name = 'Error', message } = part.error ?? { message: 'The scenario lets this attempt fail.' }
      return { kind, reason: 'workflowFailed', error: { name, message, stack: null, step } }
    }
  }
}

interface TimedAction {
  action: Action
  start: number
  end: number
}

/**
 * Steps and pauses take the time that they name. Steps that name none share what is left of the duration. Without steps and
 * pauses, the actions are spread evenly.
 */
function timeActions(actions: readonly Action[], durationMilliseconds: number): TimedAction[] {
  const open = actions.filter(isOpenStep).length
  const left = Math.max(0, durationMilliseconds - 1000 * namedSeconds(actions))
  const takesTime = actions.some(({ step, pause }) => step !== undefined || pause !== undefined)
  const share = open === 0 ? 0 : left / open
  const gap = takesTime ? 0 : durationMilliseconds / (actions.length + 1)
  let at = 0
  return actions.map((action) => {
    const start = Math.round(at + gap)
    const milliseconds = action.pause !== undefined ? action.pause * 1000 : ownMilliseconds(action, share)
    at += gap + milliseconds
    return { action, start, end: Math.round(at) }
  })
}

/** A step that names no time. */
function isOpenStep({ step }: Action): boolean {
  return step !== undefined && secondsOfStep(step) === undefined
}

function ownMilliseconds({ step }: Action, share: number): number {
  if (step === undefined) return 0
  const seconds = secondsOfStep(step)
  return seconds === undefined ? share : seconds * 1000
}

/** Seconds that the actions name. */
export function namedSeconds(actions: readonly Action[]): number {
  const seconds = actions.map(({ step, pause = 0 }) => pause + (step === undefined ? 0 : (secondsOfStep(step) ?? 0)))
  return seconds.reduce((sum, each) => sum + each, 0)
}

function secondsOfStep(step: NonNullable<Action['step']>): number | undefined {
  return typeof step === 'string' ? undefined : step.durationSeconds
}

function nameOfStep({ step }: Action): string | null {
  return step === undefined ? null : typeof step === 'string' ? step : step.name
}

/** The step in which an attempt ends: of that name, or else the last action. */
function findLastStep(timed: readonly TimedAction[], name: string | undefined): TimedAction | undefined {
  const last = name === undefined ? timed.at(-1) : timed.find(({ action }) => nameOfStep(action) === name)
  return last?.action.step === undefined ? undefined : last
}

/**
 * @param isUnfinished whether the step does not end.
 * @param continueWith the script after an answer.
 */
function toEvents(
  { action, start, end }: TimedAction,
  isUnfinished: boolean,
  continueWith: (answer: Continuation) => AttemptScript,
): ScriptEvent[] {
  const { step } = action
  if (step !== undefined) {
    const { name, value = null, actions = [] } = typeof step === 'string' ? { name: step } : step
    const gap = (end - start) / (actions.length + 1)
    return [
      { at: start, type: 'step', name, state: 'started' },
      ...actions.flatMap((each, index) => toReports(each, Math.round(start + gap * (index + 1)))),
      ...(isUnfinished ? [] : [{ at: end, type: 'stepFinished' as const, name, value }]),
    ]
  }
  const wait = toWait(action)
  if (!wait) return toReports(action, start)
  const { answers } = Object(action.ask) as { answers?: readonly Continuation[] }
  const continuations = answers?.map((each): ScriptContinuation => ({ value: each.value, script: continueWith(each) }))
  return [{ at: start, type: 'wait', wait, ...(continuations && { answers: continuations }) }]
}

function toReports({ log, progress, artifact }: Report, at: number): ScriptEvent[] {
  if (log !== undefined) {
    const { message, level = 'info' } = typeof log === 'string' ? { message: log } : log
    return [{ at, type: 'log', level, message }]
  }
  if (progress !== undefined) {
    const { percent, message = null } = typeof progress === 'number' ? { percent: progress } : progress
    return [{ at, type: 'progress', percent, message }]
  }
  return artifact ? [{ at, type: 'artifact', artifact: toArtifact(artifact) }] : []
}

export function toArtifact({ name, mediaType, text, base64, sizeBytes = 0 }: NonNullable<Report['artifact']>) {
  const filled = () => Buffer.alloc(sizeBytes, `${name}\n`)
  const content =
    text !== undefined ? Buffer.from(text) : base64 === undefined ? filled() : Buffer.from(base64, 'base64')
  return { name, mediaType: mediaType ?? mediaTypeFor(name), content } satisfies NewArtifact
}

const daySeconds = 86_400

function toWait({ sleep, ask, call }: Action): ScriptWait | undefined {
  if (sleep) {
    const { name, seconds = 0, until } = sleep
    const time = until === undefined ? { milliseconds: Math.round(seconds * 1000) } : { until: Date.parse(until) }
    return { name, kind: 'sleep', time }
  }
  if (ask !== undefined) {
    const { wait, title = null, timeoutSeconds = 7 * daySeconds, show } = typeof ask === 'string' ? { wait: ask } : ask
    return { name: wait, kind: 'answer', timeoutSeconds, title, shown: show ?? null }
  }
  if (!call) return undefined
  const { name, workflow: workflowId, variables = {}, detached = false } = call
  return { name, kind: 'run', workflowId, variables, options: {}, isDetached: detached }
}

/** A grey picture of 64 × 36 pixels. */
const picture =
  '/9j/2wBDAAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAj/wAALCAAkAEABAREA/8QAFQABAQAAAAAAAAAAAAAAAAAAAAf/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/9oACAEBAAA/ALAAAAAAAAAAAAAA/9k='

/** The evidence that the workflow's policy keeps of a browser that did not run, in the files that the service stores. There is no trace. */
function evidenceOf(
  { usesBrowser, evidence: policy, title: workflowTitle }: Workflow,
  attempt: number,
  hasFailed: boolean,
  { url = 'https://example.com/', title = workflowTitle, console = [], failedRequests = [] }: Evidence = {},
): NewArtifact[] {
  const isKept = policy === 'always' || (policy === 'onFailure' && hasFailed)
  if (!usesBrowser || !isKept) return []
  const screenshot = `attempt-${attempt}-page-1.jpg`
  const summary = {
    pages: [{ url, title, screenshot }],
    console: console.map((message) => ({ ...message, url })),
    failedRequests: failedRequests.map(({ status = null, error = null, ...request }) => ({
      ...request,
      status,
      error,
    })),
    trace: null,
  }
  return [
    { name: screenshot, kind: 'evidence', mediaType: 'image/jpeg', content: Buffer.from(picture, 'base64') },
    {
      ...{ name: `attempt-${attempt}-browser.json`, kind: 'evidence', mediaType: 'application/json' },
      content: Buffer.from(`${JSON.stringify(summary, null, 2)}\n`),
    },
  ]
}
