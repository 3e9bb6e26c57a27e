/** Whoever watches a worker's attempts: metrics, traces. Nothing of it changes an attempt, and it must not throw. */
import type { Claim } from '../domain/runs/claim.ts'
import type { Outcome } from '../domain/runs/run-state.ts'
import type { Answer } from './executor-process.ts'

/** How an attempt ended; `undefined` when it could not be carried through. */
export type AttemptEnd = Outcome | { kind: 'leaseLost' } | undefined

export interface WatchedStep {
  /** With every secret masked. */
  name: string
  state: 'started' | 'finished' | 'failed' | 'reused'
  at: number
}

export interface AttemptWatch {
  /** Its process has been told to start. */
  started?(): void
  step?(step: WatchedStep): void
  /** Its workflow has asked for the browser. */
  browserWanted?(answered: Promise<Answer>): void
  /** Once, when its outcome is written down, or will not be. */
  ended?(how: AttemptEnd): void
  /** Does what the attempt does. */
  within?<Result>(act: () => Result): Result
}

/** Begins to watch an attempt that has been claimed. */
export type WatchAttempt = (claim: Claim) => AttemptWatch

/** All of them as one. */
export function watchedBy(watches: readonly WatchAttempt[], claim: Claim): Required<AttemptWatch> {
  const all = watches.map((watch) => watch(claim))
  return {
    started() {
      for (const each of all) each.started?.()
    },
    step(step) {
      for (const each of all) each.step?.(step)
    },
    browserWanted(answered) {
      for (const each of all) each.browserWanted?.(answered)
    },
    ended(how) {
      for (const each of all) each.ended?.(how)
    },
    within<Result>(act: () => Result): Result {
      const around = (inner: () => Result, each: AttemptWatch) => () => (each.within ? each.within(inner) : inner())
      return all.reduce(around, act)()
    },
  }
}
