/** Reconstructs the attempts of a run and their steps from its events. */
import type { RunEvent } from '../../../domain/runs/run.ts'
import { type AttemptError, isFinal, type RunReason, type RunStatus } from '../../../domain/runs/run-state.ts'

export interface Step {
  name: string
  /** `reused`: an earlier attempt had finished it. `interrupted`: its attempt ended while it ran. */
  state: 'running' | 'waiting' | 'finished' | 'failed' | 'reused' | 'interrupted'
  startedAt: number
  endedAt: number | null
}

export interface Attempt {
  number: number
  startedAt: number
  endedAt: number | null
  /** The run's status after the attempt; `running` until then. */
  next: RunStatus
  reason: RunReason | null
  /** Why it failed. */
  error: AttemptError | null
  steps: Step[]
  /** It has left its worker until a wait ends. */
  isWaiting: boolean
}

/** @param events of one run, in order. The oldest may be missing. */
export function parseAttempts(events: readonly RunEvent[]): Attempt[] {
  const attempts = new Map<number, Attempt>()
  for (const { type, at, data } of events) {
    const number = Number(data.attempt)
    // A worker that cannot get the deployment hands the run back with the number of the attempt before.
    if (type === 'status' && data.status === 'queued') {
      for (const handedBack of [...attempts.keys()].filter((each) => each > number)) attempts.delete(handedBack)
    }
    if (type !== 'step' && !(type === 'status' && number > 0)) continue
    const attempt = attempts.get(number) ?? {
      number,
      startedAt: at,
      endedAt: null,
      next: 'running',
      reason: null,
      error: null,
      steps: [],
      isWaiting: false,
    }
    attempts.set(number, attempt)
    if (type === 'step') applyStep(attempt, data as unknown as StepData, at)
    else applyStatus(attempt, data as unknown as StatusData, at)
  }
  return [...attempts.values()]
}

interface StepData {
  name: string
  state: 'started' | 'finished' | 'failed' | 'reused'
  /** Set for a wait. */
  wait?: string
}

function applyStep({ steps }: Attempt, { name, state, wait }: StepData, at: number): void {
  if (state === 'started') steps.push({ name, state: wait ? 'waiting' : 'running', startedAt: at, endedAt: null })
  else if (state === 'reused') {
    // A part of an attempt after a wait repeats those of the part before.
    if (!steps.some((each) => each.name === name)) steps.push({ name, state, startedAt: at, endedAt: at })
  } else {
    const started = steps.findLast((each) => each.name === name)
    if (started) Object.assign(started, { state, endedAt: at })
    else steps.push({ name, startedAt: at, state, endedAt: at })
  }
}

interface StatusData {
  status: RunStatus
  reason: RunReason | null
  error?: AttemptError
}

function applyStatus(attempt: Attempt, { status, reason, error }: StatusData, at: number): void {
  // A cancellation request repeats `running`, and cancelling between attempts repeats the last attempt's number.
  if (attempt.endedAt !== null) return
  attempt.isWaiting = status === 'waiting'
  if (status === 'running' || attempt.isWaiting) return
  Object.assign(attempt, { endedAt: at, next: status, reason, error: error ?? null })
  for (const step of attempt.steps) {
    if (step.state === 'running' || step.state === 'waiting') Object.assign(step, { state: 'interrupted', endedAt: at })
  }
}

export function isFinalStatus({ type, data }: RunEvent): boolean {
  return type === 'status' && isFinal(data.status as RunStatus)
}
