/**
 * One attempt that follows a script. What it reports is written when the attempt ends or waits, or when `flush` is called:
 * each report has the time of its event.
 */
import type { StorageUsage } from '../domain/accounts/storage-usage.ts'
import type { Claim } from '../domain/queue/attempts.ts'
import type { RunQueue } from '../domain/queue/run-queue.ts'
import { ArtifactError } from '../domain/runs/artifact.ts'
import { boundEventData } from '../domain/runs/reported-values.ts'
import { type Report, stepAad } from '../domain/runs/run.ts'
import type { Workflow } from '../domain/workflows/workflow.ts'
import type { Workflows } from '../domain/workflows/workflows.ts'
import type { Encryption } from '../storage/encryption.ts'
import { type AttemptScript, followAnswer, type ScriptEvent, type ScriptWait, toReachedWait } from './attempt-script.ts'
import type { DecidedOutcome } from './scripted-worker.ts'

export interface AttemptDependencies {
  queue: RunQueue
  usage: StorageUsage
  encryption: Encryption
}

/** An attempt of a snapshot. */
export interface SavedAttempt {
  claim: Claim
  script: AttemptScript
  startedAt: number
  /** Index of the next event. */
  next: number
  decided?: DecidedOutcome | undefined
  endsAt?: number | undefined
  /** Results of steps that are stored; by default those of earlier attempts. */
  position?: number | undefined
  step?: string | null
}

type Timed = Report & { result?: { name: string; value: unknown } | undefined }

export class ScriptedAttempt {
  readonly claim: Claim
  readonly workflows: Workflows
  readonly workflow: Workflow
  readonly #dependencies: AttemptDependencies
  #script: AttemptScript
  readonly #startedAt: number
  #next: number
  #decided: DecidedOutcome | undefined
  #endsAt: number
  #pending: Timed[] = []
  /** The step that runs. */
  #step: string | null
  /** Results of steps that are stored. */
  #position: number

  constructor(dependencies: AttemptDependencies, workflows: Workflows, saved: SavedAttempt) {
    const { claim, script, startedAt, next, decided, endsAt, position = claim.steps.length, step = null } = saved
    this.#dependencies = dependencies
    this.claim = claim
    this.workflows = workflows
    const workflow = workflows.get(claim.workflowId)
    if (!workflow) throw new Error(`The deployment of this run has no workflow ${claim.workflowId}.`)
    this.workflow = workflow
    this.#script = script
    this.#startedAt = startedAt
    this.#next = next
    this.#decided = decided
    this.#endsAt = endsAt ?? this.#endOfScript
    this.#position = position
    this.#step = step
  }

  /** When it ends, or does what cannot be written later. Its other reports are written with the next of these. */
  get due(): number {
    const { events } = this.#script
    for (let index = this.#next; index < events.length; index += 1) {
      const event = events[index] as ScriptEvent
      if (event.type === 'wait' || event.type === 'artifact') return Math.min(this.#endsAt, this.#timeOf(event))
    }
    return this.#endsAt
  }

  /** In whole milliseconds, as the clock and the store have them. */
  #timeOf({ at }: ScriptEvent): number {
    return this.#startedAt + Math.round(at)
  }

  get outcome(): DecidedOutcome {
    if (this.#decided) return this.#decided
    const { timeLimitSeconds: limitSeconds } = this.workflow
    const isTooLong = this.#script.durationMilliseconds > this.#limitMilliseconds
    return isTooLong ? { kind: 'timedOut', limitSeconds, step: this.#step } : this.#script.outcome
  }

  get #limitMilliseconds(): number {
    return Math.max(0, this.workflow.timeLimitSeconds * 1000 - this.claim.executedMilliseconds)
  }

  get #endOfScript(): number {
    return this.#startedAt + Math.round(Math.min(this.#script.durationMilliseconds, this.#limitMilliseconds))
  }

  get decided(): DecidedOutcome | undefined {
    return this.#decided
  }

  decide(outcome: DecidedOutcome): void {
    this.#decided = outcome
  }

  endNow(now: number, outcome: DecidedOutcome): void {
    this.#decided = outcome
    this.#endsAt = now
  }

  save(): SavedAttempt {
    const { claim } = this
    return {
      ...{ claim, script: this.#script, startedAt: this.#startedAt, next: this.#next },
      ...{ decided: this.#decided, endsAt: this.#endsAt, position: this.#position, step: this.#step },
    }
  }

  /** Does what is due. `left`: the run waits, or another attempt has its lease. */
  async advance(now: number): Promise<'running' | 'ended' | 'left'> {
    for (;;) {
      const event = this.#takeDue(now)
      if (event === undefined) return this.#endsAt <= now ? 'ended' : 'running'
      if (event.type === 'artifact') {
        if (!(await this.#keepArtifact(event.artifact, this.#timeOf(event)))) return 'left'
      } else if (event.type === 'wait') {
        const state = await this.#wait(event.wait, now)
        if (state !== 'goesOn') return state
      }
    }
  }

  /** Reports that are not written yet. */
  takeReports(): Report[] {
    return this.#pending.splice(0).map(({ at, type, data }) => ({ at, type, data }))
  }

  /** Writes reports until now. Returns whether the attempt still has its lease. */
  async flush(now: number): Promise<boolean> {
    this.#collect(now)
    const { queue, encryption } = this.#dependencies
    const { claim } = this
    let before: Report[] = []
    for (const { result, ...report } of this.#pending.splice(0)) {
      before.push(report)
      if (!result) continue
      const { name, value } = result
      const aad = stepAad(claim.runId, name)
      this.#position += 1
      const encrypt = () => encryption.encrypt(JSON.stringify(value), aad)
      if (!(await queue.finishStep(claim, { name, position: this.#position }, encrypt, before))) return false
      before = []
    }
    return before.length === 0 || queue.report(claim, before)
  }

  /** Collects reports until the next event that does more, and returns that if it is due. */
  #takeDue(now: number): Extract<ScriptEvent, { type: 'wait' | 'artifact' }> | undefined {
    this.#collect(Math.min(now, this.#endsAt))
    const event = this.#script.events[this.#next]
    if (!event || this.#timeOf(event) > Math.min(now, this.#endsAt)) return undefined
    if (event.type !== 'wait' && event.type !== 'artifact') return undefined
    this.#next += 1
    return event
  }

  #collect(until: number): void {
    const { events } = this.#script
    for (; this.#next < events.length; this.#next += 1) {
      const event = events[this.#next] as ScriptEvent
      const at = this.#timeOf(event)
      if (at > until || event.type === 'wait' || event.type === 'artifact') return
      this.#pending.push(this.#toReport(event, at))
    }
  }

  #toReport(event: Exclude<ScriptEvent, { type: 'wait' | 'artifact' }>, at: number): Timed {
    switch (event.type) {
      case 'log':
        return this.#report('log', { level: event.level, message: event.message }, at)
      case 'progress':
        return this.#report('progress', { percent: event.percent, message: event.message }, at)
      case 'step': {
        const { name, state, wait } = event
        this.#step = state === 'started' ? name : null
        return this.#report('step', { name, state, ...(wait && { wait }) }, at)
      }
      case 'stepFinished': {
        const { name, value } = event
        this.#step = null
        return { ...this.#report('step', { name, state: 'finished' }, at), result: { name, value } }
      }
    }
  }

  #report(type: Report['type'], data: Record<string, unknown>, at: number): Report {
    return { at, type, data: { attempt: this.claim.number, ...boundEventData(type, data) } }
  }

  async #keepArtifact(artifact: Extract<ScriptEvent, { type: 'artifact' }>['artifact'], at: number): Promise<boolean> {
    const { queue, usage } = this.#dependencies
    const { name, mediaType, content, kind } = artifact
    const sizeBytes = content.length
    if (!(await this.flush(at))) return false
    const report = kind === 'evidence' ? [] : [this.#report('artifact', { name, mediaType, sizeBytes }, at)]
    try {
      if (!(await queue.keepArtifact(this.claim, artifact, report))) return false
      usage.add(this.claim.accountId, sizeBytes)
      return true
    } catch (error) {
      if (!(error instanceof ArtifactError)) throw error
      return queue.report(this.claim, [this.#report('log', { level: 'error', message: error.message }, at)])
    }
  }

  /** Continues as the script says for this answer to the wait that the run has reached. */
  #follow(json: string): void {
    this.#script = followAnswer(this.#script, this.#next - 1, json)
    if (!this.#decided) this.#endsAt = this.#endOfScript
  }

  async #wait(wait: ScriptWait, now: number): Promise<'goesOn' | 'left' | 'ended'> {
    const { queue } = this.#dependencies
    const { name } = wait
    if (!(await this.flush(now))) return 'left'
    const executedMilliseconds = now - this.#startedAt
    const request = {
      reached: [toReachedWait(wait, now)],
      names: [name],
      suspend: { executedMilliseconds, names: [name] },
    }
    const results = await queue.wait(this.claim, request, [])
    if (!results || results.isSuspended) return 'left'
    const [refused] = results.refused
    if (!refused) {
      this.#position += 1
      // An answer that came before the run has reached its wait.
      for (const { outcome } of results.ended) this.#follow(outcome)
      return 'goesOn'
    }
    const { errorName, message } = refused
    this.endNow(now, {
      kind: 'failed',
      reason: 'workflowFailed',
      error: { name: errorName, message, stack: null, step: null },
    })
    return 'ended'
  }
}
