/**
 * The browser of one attempt, on the worker's side: what it starts with, what is kept of it, and that its cookies stand
 * in nothing that is told of the run.
 */

import type { ContextVersions, StagedVersion } from '../domain/browser-contexts/context-versions.ts'
import {
  domainLengthMax,
  isSameState,
  longestDomainLength,
  secretCookieValues,
  stateBytesMax,
} from '../domain/browser-contexts/storage-state.ts'
import type { Report } from '../domain/runs/attempt-reports.ts'
import type { Claim } from '../domain/runs/claim.ts'
import type { Outcome, RunStatus } from '../domain/runs/run-state.ts'
import { createRedactor, type Secrets } from '../domain/workflows/secrets.ts'
import type { Transaction } from '../storage/store.ts'
import { type BrowserHost, BrowserMissing } from './browser/browser-host.ts'
import type { Answer } from './executor-process.ts'
import type { TakenState } from './messages.ts'
import { untilAvailable } from './reporter.ts'

export interface AttemptBrowserDependencies {
  host: BrowserHost
  versions: ContextVersions
}

/** What the end of an attempt means for its browser context. */
export interface Saved {
  outcome: Outcome
  reports: Report[]
  /** Makes the new version count, in the transaction that ends the attempt. */
  alongside(tx: Transaction, next: RunStatus): Promise<Report[]>
}

export class AttemptBrowser {
  readonly #parts: AttemptBrowserDependencies
  readonly #claim: Claim
  readonly #secrets: Secrets
  readonly #cookies = new Set<string>()
  #state: TakenState
  /** What the browser context held when the browser was opened with it. */
  #given: string | undefined
  #taken = false
  #released = false
  /** Masks secrets and cookies; for what is told of the run beside its output. */
  redact: <Value>(value: Value) => Value

  constructor(parts: AttemptBrowserDependencies, claim: Claim, secrets: Secrets) {
    this.#parts = parts
    this.#claim = claim
    this.#secrets = secrets
    this.redact = createRedactor(secrets)
  }

  /** What the executor is answered when its workflow wants the browser. */
  async provide(): Promise<Answer> {
    if (this.#released) return refused('The run has ended.')
    let storageState: string | undefined
    try {
      storageState = await this.#storedState()
    } catch (error) {
      return refused((error as Error).message)
    }
    try {
      const endpoint = await this.#parts.host.take()
      if (this.#released) this.#parts.host.release()
      this.#taken = !this.#released
      this.#given = storageState
      return { type: 'browser', endpoint, storageState }
    } catch (error) {
      const known = error instanceof BrowserMissing
      return refused(known ? error.message : `The browser could not be started: ${(error as Error).message}`)
    }
  }

  /** What the browser starts with; nothing where the run has no browser context. */
  async #storedState(): Promise<string | undefined> {
    const { accountId, browserContextId: id } = this.#claim
    if (id === null) return undefined
    const state = await untilAvailable(() => this.#parts.versions.read(accountId, id)).catch((cause: unknown) => {
      throw new Error('What is stored of the browser context of this run does not open: replace or restore it.', {
        cause,
      })
    })
    if (state === undefined) throw new Error('The browser context of this run was deleted.')
    this.#mask(state)
    return state
  }

  /** Takes what the browser held when the workflow ended. */
  take(state: TakenState): void {
    this.#state = state
    if (!state || !('json' in state)) return
    try {
      this.#mask(state.json)
      const length = longestDomainLength(state.json)
      if (length <= domainLengthMax) return
      this.#state = { unreadable: `the domain of a cookie has ${length} characters; it may have ${domainLengthMax}.` }
    } catch {
      // A workflow can change everything in its process, Playwright's functions too.
      this.#state = { unreadable: 'it is not as Playwright writes it.' }
    }
  }

  /** Says that the attempt needs no browser any more. */
  release(): void {
    if (this.#taken && !this.#released) this.#parts.host.release()
    this.#released = true
  }

  /** Stores what is to be kept of the browser; it counts once the attempt's end does. */
  async save(outcome: Outcome): Promise<Saved> {
    const { accountId, runId, hold, persistContext } = this.#claim
    const succeeded = outcome.kind === 'succeeded'
    if (!hold || !this.#state || (persistContext !== 'always' && !succeeded)) return unchanged(outcome)
    const problem = problemOf(this.#state)
    if (problem !== undefined) return succeeded ? unchanged(notSaved(problem)) : unchanged(outcome, warning(problem))
    const { json } = this.#state as { json: string }
    // A run that only looks leaves the earlier versions where they are.
    if (this.#given !== undefined && isSameState(this.#given, json)) return unchanged(outcome)
    const staged = await this.#parts.versions.stage(accountId, hold.contextId, json, { runId })
    if (!staged) return unchanged(outcome, warning(wasDeleted))
    const alongside = async (tx: Transaction, next: RunStatus) => {
      // A run that was cancelled as it succeeded has not succeeded.
      if (persistContext !== 'always' && next !== 'succeeded') return this.#drop(tx, staged)
      return (await this.#parts.versions.commitForRun(tx, staged, hold)) ? [] : [warning(wasDeleted)]
    }
    return { outcome, reports: [], alongside }
  }

  async #drop(tx: Transaction, staged: StagedVersion): Promise<Report[]> {
    await this.#parts.versions.discard(tx, staged)
    return []
  }

  #mask(state: string | undefined): void {
    if (state === undefined) return
    const known = this.#cookies.size
    for (const value of secretCookieValues(state)) this.#cookies.add(value)
    if (this.#cookies.size === known) return
    this.redact = createRedactor({ ...this.#secrets, cookies: [...this.#cookies] })
  }
}

const wasDeleted = 'The browser context was deleted while the run used it: nothing was saved.'

function problemOf(state: NonNullable<TakenState>): string | undefined {
  if ('unreadable' in state) return `What the browser held could not be read: ${state.unreadable}`
  const bytes = 'tooLarge' in state ? state.tooLarge : Buffer.byteLength(state.json)
  if (bytes <= stateBytesMax) return undefined
  return `The browser holds ${bytes} bytes of cookies and storage; at most ${stateBytesMax} can be saved.`
}

function refused(message: string): Answer {
  return { type: 'browserRefused', message }
}

function notSaved(message: string): Outcome {
  return { kind: 'failed', reason: 'contextNotSaved', error: { name: 'ContextNotSaved', message } }
}

function unchanged(outcome: Outcome, ...reports: Report[]): Saved {
  return { outcome, reports, alongside: async () => [] }
}

function warning(message: string): Report {
  return { at: Date.now(), type: 'log', data: { level: 'warn', message } }
}
