/** The browser context of a run: read when its browser starts, and stored as a new version when its attempt ends. */
import { findValueErrors } from '../../contract/value-checks.ts'
import type { Transaction } from '../../storage/store.ts'
import type { SignInKind } from '../../storage/tables/run-tables.ts'
import type { StorageUsage } from '../accounts/storage-usage.ts'
import { toRunError } from '../runs/reported-values.ts'
import type { PersistContext, Report } from '../runs/run.ts'
import type { Outcome, RunStatus } from '../runs/run-state.ts'
import type { ContextLease } from './context-lease.ts'
import type { ContextVersions } from './context-versions.ts'
import { type CapturedState, isSameState, stateBytesMax } from './storage-state.ts'

/** The members of a claim that its browser context depends on. */
export interface RunWithContext {
  runId: string
  accountId: string
  browserContextId: string | null
  persistContext: PersistContext
  contextLease: ContextLease | null
  /** If the run signs the context in, or checks whether it is signed in. */
  signsIn?: SignInKind | null
}

/** How saving the browser context changes the end of an attempt. */
export interface SavedContext {
  outcome: Outcome
  reports: Report[]
  /** Publishes the new version in the transaction that completes the attempt, if there is one. */
  within?: (tx: Transaction, next: RunStatus) => Promise<Report[]>
}

interface StateAtEnd {
  captured: CapturedState
  /** The state that the browser started with, if there was one. */
  restored: string | undefined
  redact(text: string): string
  /** Why the account may store nothing more. */
  refusal?(): string | undefined
}

/** Returns the state to store, or how the attempt ends without storing one. */
export function stateToSave(
  run: RunWithContext,
  outcome: Outcome,
  { captured, restored, redact, refusal }: StateAtEnd,
): { json: string } | SavedContext {
  const { contextLease, persistContext } = run
  const succeeded = hasSucceeded(outcome)
  // A browser without a session has nothing to keep.
  if (outcome.kind === 'signedOut') return unchanged(outcome)
  if (isSignIn(run) && succeeded && !captured) return unchanged(notSaved(noBrowser))
  if (!contextLease || !captured || (persistContext !== 'always' && !succeeded)) return unchanged(outcome)
  const problem = problemOf(captured)
  const text = problem === undefined ? refusal?.() : redact(problem)
  if (text !== undefined) return succeeded ? unchanged(notSaved(text)) : unchanged(outcome, warning(text))
  const { json } = captured as { json: string }
  // A run that changed nothing makes no new version, which would push out an old one. Runs wait for that of a sign-in.
  return !isSignIn(run) && restored !== undefined && isSameState(restored, json) ? unchanged(outcome) : { json }
}

export class RunContexts {
  readonly #versions: Pick<ContextVersions, 'read' | 'stage' | 'discard' | 'commitForRun'>
  readonly #usage: Pick<StorageUsage, 'refusal' | 'add'>

  constructor(
    versions: Pick<ContextVersions, 'read' | 'stage' | 'discard' | 'commitForRun'>,
    usage: Pick<StorageUsage, 'refusal' | 'add'>,
  ) {
    this.#versions = versions
    this.#usage = usage
  }

  /** The current state; `undefined` if the context was deleted. @throws if it cannot be decrypted. */
  async read({ accountId, browserContextId }: RunWithContext): Promise<string | undefined> {
    return this.#versions.read(accountId, browserContextId ?? '')
  }

  /** Stores the state as a staged version, which `within` publishes when the attempt is completed. */
  async save(run: RunWithContext, outcome: Outcome, state: Omit<StateAtEnd, 'refusal'>): Promise<SavedContext> {
    const { accountId, runId, persistContext, contextLease } = run
    const refusal = () => this.#usage.refusal(accountId)
    const decided = stateToSave(run, outcome, { ...state, refusal })
    if (!('json' in decided) || !contextLease) return 'json' in decided ? unchanged(outcome) : decided
    const { json } = decided
    const staged = await this.#versions.stage(accountId, contextLease.contextId, json, { runId })
    if (!staged) return unchanged(outcome, warning(contextDeleted))
    this.#usage.add(accountId, Buffer.byteLength(json))
    const within = async (tx: Transaction, next: RunStatus) => {
      // A cancellation may arrive after the workflow has returned.
      if (persistContext !== 'always' && next !== 'succeeded' && !(outcome.kind === 'waiting' && next === 'waiting')) {
        await this.#versions.discard(tx, staged)
        return []
      }
      return (await this.#versions.commitForRun(tx, staged, contextLease)) ? [] : [warning(contextDeleted)]
    }
    return { outcome, reports: [], within }
  }
}

/** A run that waits gets the state again when it goes on. */
function hasSucceeded({ kind }: Outcome): boolean {
  return kind === 'succeeded' || kind === 'waiting'
}

function isSignIn({ signsIn }: RunWithContext): boolean {
  return signsIn === 'signIn' || signsIn === 'byHand'
}

const noBrowser = 'The workflow returned without opening its browser, so it has not signed in.'

const contextDeleted = 'The browser context was deleted during the run: its changes were not saved.'

function problemOf(state: NonNullable<CapturedState>): string | undefined {
  if ('unreadable' in state) return `The browser's storage state could not be read: ${state.unreadable}`
  const bytes = 'tooLarge' in state ? state.tooLarge : Buffer.byteLength(state.json)
  if (bytes <= stateBytesMax) return undefined
  return `The browser has ${bytes} bytes of cookies and storage; at most ${stateBytesMax} can be saved.`
}

/** Why a state that was captured cannot be stored, if there is a reason: the API could not return it. @throws for no JSON. */
export function stateProblem(json: string): string | undefined {
  const [error] = findValueErrors('StorageState', JSON.parse(json))
  return error && `${error.pointer || 'it'} ${error.detail}.`
}

function notSaved(message: string): Outcome {
  return { kind: 'failed', reason: 'contextNotSaved', error: toRunError({ name: 'ContextNotSaved', message }) }
}

function unchanged(outcome: Outcome, ...reports: Report[]): SavedContext {
  return { outcome, reports }
}

function warning(message: string): Report {
  return { at: Date.now(), type: 'log', data: { level: 'warn', message } }
}
