/** The attempts of a run and their steps, as its events tell them. */
import type { RunEvent } from '../../../domain/runs/run.ts'
import { isFinal, type RunReason, type RunStatus } from '../../../domain/runs/run-state.ts'

export interface Step {
  name: string
  /** `reused`: an earlier attempt had finished it. `interrupted`: its attempt ended while it ran. */
  state: 'running' | 'finished' | 'failed' | 'reused' | 'interrupted'
  startedAt: number
  endedAt: number | null
}

export interface Attempt {
  number: number
  startedAt: number
  endedAt: number | null
  /** What became of the run after it; `running` as long as it goes on. */
  next: RunStatus
  reason: RunReason | null
  steps: Step[]
}

/** @param events of one run, in their order; the oldest may be missing. */
export function attemptsOf(events: readonly RunEvent[]): Attempt[] {
  const attempts = new Map<number, Attempt>()
  const attemptOf = (number: number, at: number): Attempt => {
    const known = attempts.get(number)
    if (known) return known
    const attempt: Attempt = { number, startedAt: at, endedAt: null, next: 'running', reason: null, steps: [] }
    attempts.set(number, attempt)
    return attempt
  }
  for (const { type, at, data } of events) {
    const number = Number(data.attempt)
    if (type === 'step') {
      const told = data as { name: string; state: 'started' | 'finished' | 'failed' | 'reused' }
      tellStep(attemptOf(number, at), told, at)
    } else if (type === 'status' && number > 0) {
      tellStatus(attemptOf(number, at), data as { status: RunStatus; reason: RunReason | null }, at)
    }
  }
  return [...attempts.values()]
}

function tellStep({ steps }: Attempt, told: { name: string; state: string }, at: number): void {
  const { name, state } = told
  if (state === 'started') steps.push({ name, state: 'running', startedAt: at, endedAt: null })
  else if (state === 'reused') steps.push({ name, state, startedAt: at, endedAt: at })
  else {
    const step = steps.findLast((each) => each.name === name)
    const ended = { state: state as 'finished' | 'failed', endedAt: at }
    if (step) Object.assign(step, ended)
    else steps.push({ name, startedAt: at, ...ended })
  }
}

function tellStatus(attempt: Attempt, { status, reason }: { status: RunStatus; reason: RunReason | null }, at: number) {
  // A running attempt is told again when somebody has asked to cancel it; one that has ended, when the run is cancelled.
  if (status === 'running' || attempt.endedAt !== null) return
  attempt.endedAt = at
  attempt.next = status
  attempt.reason = reason
  for (const step of attempt.steps) {
    if (step.state === 'running') Object.assign(step, { state: 'interrupted', endedAt: at })
  }
}

/** Whether the run has ended by what this event tells. */
export function isEnd({ type, data }: RunEvent): boolean {
  return type === 'status' && isFinal(data.status as RunStatus)
}
