/**
 * A worker whose attempts follow scripts: it claims runs from the queue and reports as workers do, but executes no code.
 * It does nothing by itself; `work` does what is due.
 */
import type { DeclaredValuesReader } from '../domain/account-values/declared-values.ts'
import type { StorageUsage } from '../domain/accounts/storage-usage.ts'
import type { Deployments } from '../domain/deployments/deployments.ts'
import type { Claim } from '../domain/queue/attempts.ts'
import { toSuccess } from '../domain/queue/outcomes.ts'
import type { RunQueue } from '../domain/queue/run-queue.ts'
import type { Workers } from '../domain/queue/workers.ts'
import { stepAad } from '../domain/runs/run.ts'
import { noRetry } from '../domain/runs/run-state.ts'
import { readStepResult } from '../domain/runs/step-results.ts'
import type { Workflow } from '../domain/workflows/workflow.ts'
import type { Workflows } from '../domain/workflows/workflows.ts'
import type { Encryption } from '../storage/encryption.ts'
import { type AttemptScript, resumeScript, type ScriptOutcome } from './attempt-script.ts'
import { type SavedAttempt, ScriptedAttempt } from './scripted-attempt.ts'

export interface ScriptRequest {
  workflow: Workflow
  variables: Record<string, unknown>
  attempt: number
  runId: string
  seed: string
}

/** Decides what attempts do. */
export interface Scripts {
  scriptOf(request: ScriptRequest): AttemptScript
}

/** An outcome that was decided by hand, for the attempt that runs now, or else for the next one. */
export type DecidedOutcome = ScriptOutcome & {
  /** Whether the run fails without another attempt. */
  isFinal?: boolean
}

export interface ScriptedWorkerDependencies {
  queue: RunQueue
  workers: Workers
  deployments: Deployments
  declaredValues: DeclaredValuesReader
  usage: StorageUsage
  encryption: Encryption
  now(): number
  scripts(): Scripts
}

export interface WorkerSettings {
  id: string
  seed: string
  slots: number
  /** Until a run whose worker is lost is found. */
  leaseSeconds: number
}

export interface SavedWorker {
  attempts: SavedAttempt[]
  decided: [string, DecidedOutcome][]
}

/** Leases are renewed only for a loss: no other worker takes these runs. */
const longLeaseSeconds = 100 * 365 * 24 * 3600

/** Of runs that may have ended before they started. */
const decidedMax = 10_000

/** The time that a claim takes grows with the number of runs that it may claim. */
const claimedAtOnce = 16

export class ScriptedWorker {
  readonly #dependencies: ScriptedWorkerDependencies
  readonly #settings: WorkerSettings
  readonly #attempts = new Map<string, ScriptedAttempt>()
  /** By the ID of the run. */
  readonly #decided = new Map<string, DecidedOutcome>()

  constructor(dependencies: ScriptedWorkerDependencies, settings: WorkerSettings) {
    this.#dependencies = dependencies
    this.#settings = settings
  }

  /** Appears among the workers. */
  async start(): Promise<void> {
    const { workers, now } = this.#dependencies
    const { id, slots } = this.#settings
    // The document allows no worker without a slot.
    await workers.announce({ id, host: 'simulator', slots: Math.max(1, slots), startedAt: now() }, longLeaseSeconds)
  }

  /** When an attempt is next due. */
  get due(): number {
    let due = Number.POSITIVE_INFINITY
    for (const attempt of this.#attempts.values()) due = Math.min(due, attempt.due)
    return due
  }

  get attempts(): number {
    return this.#attempts.size
  }

  /** Claims runs while there are slots. */
  async claim(): Promise<void> {
    const { queue, deployments } = this.#dependencies
    const { id, slots } = this.#settings
    for (;;) {
      const wanted = Math.min(claimedAtOnce, slots - this.#attempts.size)
      const claims = wanted > 0 ? await queue.claim(id, deployments.claimable(), wanted, longLeaseSeconds) : []
      for (const claim of claims)
        await this.#begin(claim).catch((error: Error) =>
          queue.handBack(claim, `The simulator cannot start the run: ${error.message}`),
        )
      if (claims.length < claimedAtOnce) return
    }
  }

  /** Does what is due now. */
  async work(): Promise<void> {
    const now = this.#dependencies.now()
    const due = [...this.#attempts.values()].filter((attempt) => attempt.due <= now)
    // Attempts that are due at different times end in this order.
    due.sort((a, b) => a.due - b.due)
    for (const attempt of due) await this.#continue(attempt)
  }

  /** Writes what attempts have reported until now, for readers. */
  async flush(): Promise<void> {
    const now = this.#dependencies.now()
    for (const attempt of this.#attempts.values()) if (!(await attempt.flush(now))) this.#forget(attempt)
  }

  /** Ends the attempts whose runs were cancelled. */
  async interruptCancelled(): Promise<void> {
    if (this.#attempts.size === 0) return
    for (const { runId } of await this.#dependencies.queue.cancelRequested(this.#settings.id)) {
      const attempt = this.#attempts.get(runId)
      if (!attempt) continue
      this.#forget(attempt)
      await attempt.flush(this.#dependencies.now())
      await this.#dependencies.queue.complete(attempt.claim, { kind: 'cancelled' }, noRetry, attempt.takeReports())
    }
  }

  /** The run's attempt ends at once; if none runs, the next one ends like this. */
  async decide(runId: string, outcome: DecidedOutcome): Promise<void> {
    const attempt = this.#attempts.get(runId)
    if (!attempt) return this.#keepDecided(runId, outcome)
    attempt.endNow(this.#dependencies.now(), outcome)
    await this.work()
  }

  #keepDecided(runId: string, outcome: DecidedOutcome): void {
    this.#decided.set(runId, outcome)
    const [oldest] = this.#decided.keys()
    if (this.#decided.size > decidedMax && oldest !== undefined) this.#decided.delete(oldest)
  }

  save(): SavedWorker {
    return { attempts: [...this.#attempts.values()].map((attempt) => attempt.save()), decided: [...this.#decided] }
  }

  async restore({ attempts, decided }: SavedWorker): Promise<void> {
    for (const saved of attempts) {
      const workflows = await this.#workflowsOf(saved.claim)
      if (workflows) this.#attempts.set(saved.claim.runId, new ScriptedAttempt(this.#dependencies, workflows, saved))
    }
    for (const [runId, outcome] of decided) this.#decided.set(runId, outcome)
  }

  async #begin(claim: Claim): Promise<void> {
    const { queue, declaredValues, scripts, now } = this.#dependencies
    const { workflowId, runId, number, variables } = claim
    const workflows = await this.#workflowsOf(claim)
    const workflow = workflows?.get(workflowId)
    if (!workflows || !workflow) {
      await queue.handBack(claim, `The deployment of this run has no workflow ${workflowId}.`)
      return
    }
    const values = await declaredValues.read(claim, workflows)
    if (values.kind === 'missing') return void (await queue.waitForValue(claim, values.wait))
    const { seed } = this.#settings
    const request = { workflow, variables: structuredClone(variables), attempt: number, runId, seed }
    const script = resumeScript(scripts().scriptOf(request), this.#resultsOf(claim))
    const attempt = new ScriptedAttempt(this.#dependencies, workflows, { claim, script, startedAt: now(), next: 0 })
    const decided = this.#decided.get(runId)
    if (decided) attempt.decide(decided)
    this.#decided.delete(runId)
    this.#attempts.set(runId, attempt)
  }

  async #continue(attempt: ScriptedAttempt): Promise<void> {
    const { queue, now } = this.#dependencies
    const { claim } = attempt
    const state = await attempt.advance(now())
    if (state === 'running') return
    this.#forget(attempt)
    if (state !== 'ended') {
      // The next part of the attempt ends like this.
      if (attempt.decided) this.#keepDecided(claim.runId, attempt.decided)
      return
    }
    const { outcome, workflows, workflow } = attempt
    if (outcome.kind === 'workerLost') {
      await attempt.flush(now())
      await queue.renew(claim.workerId, [claim], this.#settings.leaseSeconds)
      return
    }
    const redact = <Value>(value: Value) => value
    const ended =
      outcome.kind === 'succeeded'
        ? toSuccess(outcome.output, workflows, claim.workflowId, { output: redact, error: redact })
        : outcome
    // Results of steps are erased when a run succeeds.
    if (ended.kind !== 'succeeded') await attempt.flush(now())
    await queue.complete(claim, ended, outcome.isFinal ? noRetry : workflow.retry, attempt.takeReports())
  }

  #forget({ claim }: ScriptedAttempt): void {
    if (this.#attempts.get(claim.runId)?.claim.attempt === claim.attempt) this.#attempts.delete(claim.runId)
  }

  async #workflowsOf({ accountId, deploymentId }: Claim): Promise<Workflows | undefined> {
    const { deployments } = this.#dependencies
    return deploymentId === null ? deployments.current(accountId) : deployments.findWorkflows(deploymentId)
  }

  #resultsOf({ runId, steps }: Claim): Map<string, string> {
    const { encryption } = this.#dependencies
    return new Map(
      steps.map(({ name, value }) => [name, readStepResult(encryption.decrypt(value, stepAad(runId, name))).json]),
    )
  }
}
