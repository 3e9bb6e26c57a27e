/** How browser contexts stay signed in: sets, reads, starts and deletes their sign-ins. `sign-in-runs.ts` has their runs. */
import type { Logger } from 'pino'
import { findValueErrors } from '../../contract/value-checks.ts'
import type { Encryption } from '../../storage/encryption.ts'
import {
  countWaitingForSession,
  findNeeded,
  resumeForSession,
  unsetSignsIn,
} from '../../storage/runs/sign-in-statements.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import type { SignInKind } from '../../storage/tables/run-tables.ts'
import type {
  ContextSignInEntriesTable,
  ContextSignInsTable,
  SignInCause,
  SignInStatus,
} from '../../storage/tables/tables.ts'
import { type Actor, type ApiKeyUse, recordAudit, toActor } from '../audit-log/audit-log.ts'
import { canonicalJson } from '../canonical-json.ts'
import type { WorkflowRegistry } from '../deployments/deployments.ts'
import { cancelRuns } from '../queue/cancellation.ts'
import { toMemberErrors } from '../queue/queue-problems.ts'
import { doesNotFit, needSignIn, startSignIn } from '../queue/sign-in-runs.ts'
import type { RunError } from '../runs/run-state.ts'
import { extractSecrets, mask, restoreSecrets, type Secrets } from '../workflows/secrets.ts'
import { parseTotpSeed, type TotpSeed, totpSecret } from '../workflows/totp.ts'
import { type ContextRow, findContext } from './browser-contexts.sql.ts'
import { entriesMax, findSignIn, lockSignIn, signInAad } from './sign-ins.sql.ts'

export interface SignIn {
  workflowId: string
  /** With every secret masked. */
  variables: Record<string, unknown>
  hasTotp: boolean
  checkEverySeconds: number | null
  status: SignInStatus
  /** The run that signs in or checks now. */
  runId: string | null
  /** Counted up to 1,000. */
  waitingRuns: number
  signedInAt: number | null
  checkedAt: number | null
  nextCheckAt: number | null
  needsSignInSince: number | null
  error: RunError | null
  createdAt: number
  updatedAt: number
}

/** A check, or a sign-in by a workflow or a person. */
export interface SignInEntry {
  kind: SignInKind
  cause: SignInCause
  runId: string
  causedByRunId: string | null
  /** Who asked for it, or signed in by hand. */
  by: Actor | null
  /** `null` while it is queued or running. */
  outcome: ContextSignInEntriesTable['outcome']
  version: number | null
  error: RunError | null
  startedAt: number
  endedAt: number | null
}

export interface NewSignIn {
  workflowId: string
  variables: Record<string, unknown>
  /** Base32 or an `otpauth:` URI; the mask keeps the stored one. */
  totpSeed?: string | undefined
  checkEverySeconds?: number | null | undefined
}

export type SetResult =
  | { kind: 'set'; signIn: SignIn }
  | { kind: 'noSuchContext' }
  | { kind: 'invalid'; errors: { pointer: string; detail: string }[] }

export type StartResult =
  /** `isNew` is false if a run signs in already. */
  | { kind: 'started'; runId: string; isNew: boolean }
  /** The browser context has no sign-in, or does not exist. */
  | { kind: 'noSignIn' }
  /** The workflow is gone, or no longer accepts the variables. */
  | { kind: 'doesNotFit'; detail: string }

/** A browser context that needs a person. */
export interface NeededSignIn {
  id: string
  name: string
  needsSignInSince: number
  waitingRuns: number
}

interface SignInsDependencies {
  store: Store
  encryption: Encryption
  workflows: WorkflowRegistry
  log: Pick<Logger, 'error'>
}

export class SignIns {
  readonly #dependencies: SignInsDependencies
  readonly #store: Store
  readonly #now: () => number

  constructor(dependencies: SignInsDependencies, now: () => number = Date.now) {
    this.#dependencies = dependencies
    this.#store = dependencies.store
    this.#now = now
  }

  /** `undefined` if there is no such browser context, or if it has no sign-in. */
  async get(accountId: string, contextId: string): Promise<SignIn | undefined> {
    const { read } = this.#store
    const context = await findContext(read, accountId, contextId)
    const row = context && (await findSignIn(read, accountId, context.id))
    return row && toSignIn(read, row)
  }

  /** The latest checks and sign-ins, newest first, at most 50. */
  async history(accountId: string, contextId: string): Promise<SignInEntry[]> {
    const context = await findContext(this.#store.read, accountId, contextId)
    if (!context) return []
    const entries = this.#store.read.query.selectFrom('context_sign_in_entries').selectAll()
    const rows = entries.where('browser_context_id', '=', context.id).orderBy('id', 'desc').limit(entriesMax)
    return (await rows.execute()).map(toEntry)
  }

  /** The account's browser contexts that need a person, longest first, at most 100. */
  async needed(accountId: string): Promise<NeededSignIn[]> {
    const rows = await this.#store.read.all(findNeeded, [accountId])
    return rows.map(({ since, count, ...context }) => ({ ...context, needsSignInSince: since, waitingRuns: count }))
  }

  /** Sets or replaces the sign-in. One that needs a person is signed in again at once: its password may be new. */
  async set(accountId: string, contextId: string, given: NewSignIn, by: Actor | ApiKeyUse): Promise<SetResult> {
    const { totpSeed } = given
    const totp = totpSeed === undefined || totpSeed === mask ? undefined : await parseTotpSeed(totpSeed)
    if (totpSeed !== undefined && totpSeed !== mask && !totp) return invalid('/totpSeed', invalidSeed)
    const { variables: variableData, ...others } = given
    const errors = findValueErrors('SetSignInRequest', { ...others, variableData })
    if (errors.length > 0) return { kind: 'invalid', errors }
    const result = await this.#store.write(async (tx): Promise<SetResult> => {
      const context = await findContext(tx, accountId, contextId)
      if (!context) return { kind: 'noSuchContext' }
      const before = await lockSignIn(tx, context.id)
      const at = this.#now()
      const changed = this.#change(context, before, given, totp, at)
      if ('errors' in changed) return { kind: 'invalid', errors: changed.errors }
      const { browser_context_id: _, ...columns } = changed.row
      if (before) {
        const row = tx.query.updateTable('context_sign_ins').set(columns)
        await row.where('browser_context_id', '=', context.id).execute()
      } else {
        await tx.query.insertInto('context_sign_ins').values(changed.row).execute()
        await tx.query.updateTable('browser_contexts').set({ has_sign_in: 1 }).where('id', '=', context.id).execute()
      }
      const actor = await toActor(tx, by)
      const { workflow_id: workflowId, check_every_seconds: checkEverySeconds, has_totp } = changed.row
      const details = { workflowId, checkEverySeconds, hasTotp: has_totp === 1 }
      await audit(tx, context, 'browserContext.signInSet', actor, details)
      if (before?.status === 'needsSignIn' && before.run_id === null) {
        await startSignIn(tx, this.#dependencies, changed.row, { kind: 'signIn', cause: 'changed', actor }, at)
      }
      const after = await findSignIn(tx, accountId, context.id)
      return { kind: 'set', signIn: await toSignIn(tx, after ?? changed.row) }
    })
    if (result.kind === 'set') this.#notify()
    return result
  }

  /** The row to store, or what is wrong with it. */
  #change(
    { id, account_id }: ContextRow,
    before: ContextSignInsTable | undefined,
    given: NewSignIn,
    totp: TotpSeed | undefined,
    at: number,
  ): { row: ContextSignInsTable } | { errors: { pointer: string; detail: string }[] } {
    const { encryption, workflows: registry } = this.#dependencies
    const { workflowId, variables, totpSeed, checkEverySeconds = null } = given
    const workflows = registry.current(account_id)
    const workflow = workflows.get(workflowId)
    if (!workflow) return { errors: toMemberErrors({ kind: 'noSuchWorkflow' }) }
    if (!workflow.signsIn) return invalid('/workflowId', 'names a workflow whose definition does not say signsIn: true')
    if (checkEverySeconds !== null && !workflow.checksSession)
      return invalid('/checkEverySeconds', 'requires a workflow with signedOut; this one has none')
    const aad = signInAad(account_id, id)
    const stored: Secrets = before?.secrets ? JSON.parse(encryption.decrypt(before.secrets, aad)) : {}
    const { [totpSecret]: storedTotp, ...storedSecrets } = stored
    const keepsSecrets = before?.workflow_id === workflowId
    const { value, restored } = restoreSecrets(variables as never, keepsSecrets ? storedSecrets : {})
    const checked = workflows.checkVariables(workflowId, structuredClone(value) as Record<string, unknown>, {})
    if ('errors' in checked) return { errors: toMemberErrors({ kind: 'variablesInvalid', errors: checked.errors }) }
    const { masked, secrets } = extractSecrets(value, Object.keys(checked.secrets))
    const seed = totpSeed === mask ? storedTotp : totp
    if (totpSeed === mask && seed === undefined) return invalid('/totpSeed', 'masks a seed, and none is stored')
    const all: Secrets = { ...secrets, ...(seed !== undefined && { [totpSecret]: seed }) }
    const showsSame = keepsSecrets && canonicalJson(masked) === canonicalJson(JSON.parse(before.variables))
    const kept = [...restored.map((pointer) => `/variableData${pointer}`), ...(totpSeed === mask ? ['/totpSeed'] : [])]
    // Else who may set it could have the stored secrets sent to another host.
    if (!showsSame && kept.length > 0)
      return { errors: kept.map((pointer) => ({ pointer, detail: keepsOnlyUnchanged })) }
    const isSame = showsSame && canonicalJson(all) === canonicalJson(stored)
    const needsPerson = before?.status === 'needsSignIn'
    return {
      row: {
        browser_context_id: id,
        account_id,
        workflow_id: workflowId,
        status: needsPerson ? 'unknown' : (before?.status ?? 'unknown'),
        run_id: before?.run_id ?? null,
        check_every_seconds: checkEverySeconds,
        next_check_at: checkEverySeconds === null || before?.run_id ? null : at + checkEverySeconds * 1000,
        checked_at: before?.checked_at ?? null,
        signed_in_at: before?.signed_in_at ?? null,
        signed_in_version: before?.signed_in_version ?? 0,
        fruitless: 0,
        needs_sign_in_since: null,
        has_totp: seed === undefined ? 0 : 1,
        totp_step: canonicalJson(seed ?? null) === canonicalJson(storedTotp ?? null) ? (before?.totp_step ?? 0) : 0,
        created_at: before?.created_at ?? at,
        updated_at: isSame ? before.updated_at : at,
        error: null,
        variables: JSON.stringify(masked),
        secrets: Object.keys(all).length > 0 ? encryption.encrypt(JSON.stringify(all), aad) : null,
      },
    }
  }

  /** Erases the sign-in and its history. Runs that wait for it go on. Returns whether it existed. */
  async delete(accountId: string, contextId: string, by: Actor | ApiKeyUse): Promise<boolean> {
    const isDeleted = await this.#store.write(async (tx) => {
      const context = await findContext(tx, accountId, contextId)
      const row = context && (await lockSignIn(tx, context.id))
      if (!context || !row) return false
      const at = this.#now()
      await eraseSignIn(tx, row, at)
      await tx.query.updateTable('browser_contexts').set({ has_sign_in: 0 }).where('id', '=', context.id).execute()
      await audit(tx, context, 'browserContext.signInDeleted', await toActor(tx, by))
      return true
    })
    if (isDeleted) this.#notify('cancellations')
    return isDeleted
  }

  /** Queues a run that signs in, unless one does already. */
  async signInNow(accountId: string, contextId: string, by: Actor | ApiKeyUse): Promise<StartResult> {
    return this.#start(accountId, contextId, 'signIn', by)
  }

  /**
   * Queues a run in whose browser a person signs in: it opens the page of the workflow's `signedOut`, and waits until
   * someone has taken it over in its live view, and has returned control. That is "Done": it stores the version, and all
   * runs that wait go on. `cancel` ends it without one.
   */
  async startByHand(accountId: string, contextId: string, by: Actor): Promise<StartResult> {
    return this.#start(accountId, contextId, 'byHand', by)
  }

  async #start(
    accountId: string,
    contextId: string,
    kind: 'signIn' | 'byHand',
    by: Actor | ApiKeyUse,
  ): Promise<StartResult> {
    let withdrawn = false
    const result = await this.#store.write(async (tx): Promise<StartResult> => {
      withdrawn = false
      const context = await findContext(tx, accountId, contextId)
      const row = context && (await lockSignIn(tx, context.id))
      if (!context || !row) return { kind: 'noSignIn' }
      const entry = row.run_id === null ? undefined : await findKind(tx, row.run_id)
      // A check ends soon, and leads to a sign-in if it is needed.
      if (row.run_id !== null && (kind === 'signIn' || entry !== 'check'))
        return { kind: 'started', runId: row.run_id, isNew: false }
      const at = this.#now()
      const actor = await toActor(tx, by)
      if (row.run_id !== null) {
        await withdraw(tx, row, row.run_id, at)
        withdrawn = true
      }
      const request = { kind, cause: 'requested', actor } as const
      const started = await startSignIn(tx, this.#dependencies, row, request, at)
      if (started.kind === 'refused') return { kind: 'doesNotFit', detail: started.detail }
      const action = kind === 'signIn' ? 'browserContext.signInRequested' : 'browserContext.signInByHandStarted'
      await audit(tx, context, action, actor, { runId: started.runId })
      return { kind: 'started', runId: started.runId, isNew: true }
    })
    if (withdrawn) this.#notify('cancellations')
    else if (result.kind === 'started') this.#notify()
    return result
  }

  /** Cancels the run that signs in or checks. Returns whether there was one. */
  async cancel(accountId: string, contextId: string, by: Actor): Promise<boolean> {
    const isCancelled = await this.#store.write(async (tx) => {
      const context = await findContext(tx, accountId, contextId)
      const row = context && (await findSignIn(tx, accountId, context.id))
      if (!context || !row?.run_id) return false
      const userId = by.kind === 'user' ? by.id : null
      await cancelRuns(tx, accountId, [row.run_id], { userId }, this.#now())
      await audit(tx, context, 'browserContext.signInCancelled', by, { runId: row.run_id })
      return true
    })
    if (isCancelled) this.#notify('cancellations')
    return isCancelled
  }

  /** Queues checks that are due. Returns whether any was. A browser context that a run uses is checked when it is free. */
  async checkDue(): Promise<boolean> {
    const now = this.#now()
    const rows = this.#store.read.query.selectFrom('context_sign_ins').select('browser_context_id')
    const due = await rows.where('next_check_at', '<=', now).orderBy('next_check_at').limit(100).execute()
    for (const { browser_context_id: id } of due) {
      try {
        await this.#store.write((tx) => this.#check(tx, id, now))
      } catch (error) {
        // One that cannot be read must not stop the others, nor the rest of maintenance.
        this.#dependencies.log.error({ err: error, browserContextId: id }, 'session check not queued')
        await this.#store.write((tx) => postponeCheck(tx, id, now + failedCheckMilliseconds))
      }
    }
    if (due.length > 0) this.#notify()
    return due.length > 0
  }

  async #check(tx: Transaction, contextId: string, now: number): Promise<void> {
    const row = await lockSignIn(tx, contextId)
    if (!row || row.next_check_at === null || row.next_check_at > now || row.run_id !== null) return
    const contexts = tx.query.selectFrom('browser_contexts').select(['held_by_run_id', 'version'])
    const context = await contexts.where('id', '=', contextId).executeTakeFirst()
    const everyMilliseconds = (row.check_every_seconds ?? 60) * 1000
    if (!context || context.held_by_run_id !== null)
      return postponeCheck(tx, contextId, now + Math.min(everyMilliseconds, 60_000))
    const request = { kind: context.version === 0 ? 'signIn' : 'check', cause: 'checkDue' } as const
    const started = await startSignIn(tx, this.#dependencies, row, request, now)
    if (started.kind === 'refused') await needSignIn(tx, contextId, doesNotFit(started.detail), now)
  }

  /** @param others `cancellations` if a run that a worker may execute was cancelled. */
  #notify(...others: 'cancellations'[]): void {
    for (const topic of others) this.#store.notify(topic)
    this.#store.notify('queue')
    this.#store.notify('runs')
    this.#store.notify('maintenance')
  }
}

const invalidSeed =
  'is neither a seed in Base32 nor an otpauth: URI for TOTP with 6 to 8 digits and a period of 15 to 300 seconds'

const keepsOnlyUnchanged =
  'is a mask, but the workflow or a variable that is not secret has changed: give the value again'

function invalid(pointer: string, detail: string) {
  return { kind: 'invalid' as const, errors: [{ pointer, detail }] }
}

/** When a check that could not be queued is tried again. */
const failedCheckMilliseconds = 300_000

async function postponeCheck({ query }: Transaction, contextId: string, until: number): Promise<void> {
  const rows = query.updateTable('context_sign_ins').set({ next_check_at: until })
  await rows.where('browser_context_id', '=', contextId).where('next_check_at', 'is not', null).execute()
}

async function findKind({ query }: Transaction, runId: string): Promise<SignInKind | undefined> {
  const row = query.selectFrom('context_sign_in_entries').select('kind').where('run_id', '=', runId)
  return (await row.executeTakeFirst())?.kind
}

/** Ends the run that signs in or checks, as a run like any other. */
async function withdraw(tx: Transaction, row: ContextSignInsTable, runId: string, at: number): Promise<void> {
  await cancelRuns(tx, row.account_id, [runId], {}, at)
  await tx.all(unsetSignsIn, [runId])
  const ended = { outcome: 'cancelled' as const, ended_at: at }
  await tx.query.updateTable('context_sign_in_entries').set(ended).where('run_id', '=', runId).execute()
  row.run_id = null
}

/** Erases the sign-in with its history, and lets the runs that wait for it go on. */
export async function eraseSignIn(tx: Transaction, row: ContextSignInsTable, at: number): Promise<void> {
  const { browser_context_id: contextId } = row
  if (row.run_id !== null) await withdraw(tx, row, row.run_id, at)
  await tx.query.deleteFrom('context_sign_in_entries').where('browser_context_id', '=', contextId).execute()
  await tx.query.deleteFrom('context_sign_ins').where('browser_context_id', '=', contextId).execute()
  await resumeForSession(tx, contextId, at)
}

async function toSignIn(tx: Transaction, row: ContextSignInsTable): Promise<SignIn> {
  const [waiting] = await tx.all(countWaitingForSession, [row.browser_context_id])
  return {
    workflowId: row.workflow_id,
    variables: JSON.parse(row.variables),
    hasTotp: row.has_totp === 1,
    checkEverySeconds: row.check_every_seconds,
    status: row.status,
    runId: row.run_id,
    waitingRuns: waiting?.count ?? 0,
    signedInAt: row.signed_in_at,
    checkedAt: row.checked_at,
    nextCheckAt: row.next_check_at,
    needsSignInSince: row.needs_sign_in_since,
    error: row.error === null ? null : JSON.parse(row.error),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

function toEntry(row: ContextSignInEntriesTable): SignInEntry {
  return {
    kind: row.kind,
    cause: row.cause,
    runId: row.run_id,
    causedByRunId: row.caused_by_run_id,
    by: row.actor === null ? null : JSON.parse(row.actor),
    outcome: row.outcome,
    version: row.version,
    error: row.error === null ? null : JSON.parse(row.error),
    startedAt: row.started_at,
    endedAt: row.ended_at,
  }
}

type SignInAction = `browserContext.signIn${'Set' | 'Deleted' | 'Requested' | 'ByHandStarted' | 'Cancelled'}`

async function audit(
  tx: Transaction,
  { id, account_id, name }: ContextRow,
  action: SignInAction,
  by: Actor,
  details: Record<string, unknown> = {},
): Promise<void> {
  await recordAudit(tx, account_id, { action, by, subject: { id, name }, details })
}
