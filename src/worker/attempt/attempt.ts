/** One attempt of a run, from its claim to its outcome. */
import type { StorageUsage } from '../../domain/accounts/storage-usage.ts'
import type { Claim } from '../../domain/queue/attempts.ts'
import type { ReachedWait, WaitResults } from '../../domain/queue/run-options.ts'
import type { CallerSlot, RunQueue, StartedCall } from '../../domain/queue/run-queue.ts'
import { stepBytesOfRunMax, stepsMax, toAttemptError } from '../../domain/runs/reported-values.ts'
import { type Report, secretsAad, stepAad } from '../../domain/runs/run.ts'
import type { Outcome, RetryPolicy, RunStatus, Suspension } from '../../domain/runs/run-state.ts'
import { readStepResult, secretsOfResults, writeStepResult } from '../../domain/runs/step-results.ts'
import { insertSecrets, type Secrets } from '../../domain/workflows/secrets.ts'
import { type TotpSeed, totpSecret } from '../../domain/workflows/totp.ts'
import type { DeclaredValues, Workflow } from '../../domain/workflows/workflow.ts'
import type { ValueEncryption } from '../../storage/encryption.ts'
import type { Transaction } from '../../storage/store.ts'
import type { AttemptChannel, ExecutorEvent } from '../executors/executor-process.ts'
import type { Execution } from '../executors/executors.ts'
import type { SessionStart } from '../executors/messages.ts'
import { isLiveViewEvent } from '../live-view/attempt-live-view.ts'
import { AttemptArtifacts } from './attempt-artifacts.ts'
import { AttemptBrowser, type AttemptBrowserDependencies, AttemptEvidence } from './attempt-browser.ts'
import type { PreparedFiles } from './attempt-files.ts'
import type { AttemptEnd, AttemptObserver, ObservedStep } from './attempt-observer.ts'
import { abortMessages, type Interruption, interruptedOutcome, type LastEvent, toOutcome } from './attempt-outcome.ts'
import { AttemptRedactor, Reporter, retryUntilAvailable } from './reporter.ts'
import { TimeLimit } from './time-limit.ts'

/** `suspended`: the run waits, and the store has it. */
type Ended = Outcome | 'leaseLost' | 'suspended'

type EventOf<Type extends ExecutorEvent['type']> = Extract<ExecutorEvent, { type: Type }>

/** Where an attempt reports: the queue, or the service over HTTP. */
export type AttemptQueue = Pick<RunQueue, 'report' | 'finishStep' | 'wait' | 'useCode' | 'keepArtifact' | 'complete'>

/** For an attempt that waits for the only run that it has called. */
export interface CallerSlots {
  /** `undefined` if the caller has to be suspended. */
  offer(caller: Claim): OfferedSlot | undefined
}

/** The slot of a caller, until the store says whether the called run has started. */
interface OfferedSlot extends CallerSlot {
  /** Executes the called run in the slot, also if the caller has ended since: the run has started in the store. */
  start(called: Claim): BorrowedSlot
  keep(): void
}

interface BorrowedSlot {
  /** Resolves when the attempt of the called run has ended, and its outcome is stored. */
  ended: Promise<unknown>
  /** Resolves when the caller has its slot again. */
  returned: Promise<void>
}

/** For how long the process of a caller is kept for a called run, as for a sleep. */
const calledMillisecondsMax = 2000
/** An attempt that succeeds within this time need not store the outcome of a called run. */
const unstoredMilliseconds = 100

export interface AttemptDependencies {
  queue: AttemptQueue
  slots?: CallerSlots
  encryption: ValueEncryption
  /** Time between a workflow's AbortSignal and the end of its process. */
  abortGraceSeconds: number
  browser: AttemptBrowserDependencies
  usage: Pick<StorageUsage, 'refusal' | 'add'>
}

/** What an attempt gets besides its variables. */
export interface AttemptValues {
  declared: DeclaredValues
  /** Absent if the variables name none. */
  files?: PreparedFiles | undefined
}

export class Attempt {
  readonly #dependencies: AttemptDependencies
  readonly #claim: Claim
  readonly #execution: Execution
  readonly #reporter: Reporter
  readonly #redactor: AttemptRedactor
  readonly #secrets: Secrets
  readonly #declared: DeclaredValues
  /** By pointer in the variables. */
  readonly #filePaths: PreparedFiles['paths']
  /** Secrets of the account in results of earlier attempts, which may have been replaced since. */
  #earlierSecrets: readonly string[] = []
  readonly #browser: AttemptBrowser
  readonly #observer: Required<AttemptObserver>
  readonly #timeLimit = new TimeLimit()
  #grace: NodeJS.Timeout | undefined
  #channel: AttemptChannel | undefined
  readonly #steps: AttemptSteps
  readonly #artifacts: AttemptArtifacts
  readonly #evidence: AttemptEvidence
  /** Whether the outcome is decided, and waits for the evidence. */
  #isEnding = false
  #hasEnded = false
  /** Whether the store has suspended the run. */
  #isSuspended = false
  /** The step that was running when the attempt was interrupted. */
  #interruptedStep: string | null = null
  #timeLimitSeconds = 0
  #interruption: Interruption | undefined
  #resolve: (outcome: Ended) => void = () => {}
  /** Results of steps that are being stored. */
  readonly #saving = new Set<Promise<void>>()
  /** The last write of waits. Steps and waits are stored one by one, in the order in which the workflow gets them. */
  #waiting: Promise<unknown> = Promise.resolve()
  /** The waits that the run waits for. */
  #awaited: readonly string[] = []
  /** Resolves when no called run has the slot of this attempt. */
  #hasSlot: Promise<void> = Promise.resolve()
  /** A called run whose outcome the workflow has got, until it is stored: before anything that the attempt stores later. */
  #unstored: { name: string; at: number; timer: NodeJS.Timeout } | undefined
  /** Whether the executor may run another attempt. */
  reusable = false
  /** Set when `execute` has resolved. */
  end: AttemptEnd

  constructor(
    dependencies: AttemptDependencies,
    claim: Claim,
    execution: Execution,
    { declared, files }: AttemptValues,
    observer: Required<AttemptObserver>,
  ) {
    this.#dependencies = dependencies
    this.#observer = observer
    this.#claim = claim
    this.#execution = execution
    this.#steps = new AttemptSteps(claim.steps)
    const { secrets, accountId, runId } = claim
    this.#secrets = secrets ? JSON.parse(dependencies.encryption.decrypt(secrets, secretsAad(accountId, runId))) : {}
    this.#declared = declared
    this.#filePaths = files?.paths ?? {}
    this.#redactor = new AttemptRedactor(this.#secrets, declared, files?.ids)
    this.#reporter = new Reporter(dependencies.queue, claim, this.#redactor, () => this.interrupt('leaseLost'))
    const watched = { redactor: this.#redactor, reporter: this.#reporter, timeLimit: this.#timeLimit }
    this.#browser = new AttemptBrowser(dependencies.browser, claim, watched)
    this.#artifacts = new AttemptArtifacts(dependencies, claim, this.#reporter, (text) =>
      this.#redactor.redactSecrets(text),
    )
    this.#evidence = new AttemptEvidence(claim.number, (artifact) => this.#artifacts.saveEvidence(artifact))
  }

  /**
   * Executes the attempt and stores its outcome; returns false when the lease was lost before that.
   *
   * @param onReturned called when the executor is not needed any more, before the outcome is stored.
   */
  async execute(onReturned: () => void): Promise<boolean> {
    const workflow = this.#execution.workflows.get(this.#claim.workflowId)
    if (!workflow) throw new Error(`The deployment of this run has no workflow ${this.#claim.workflowId}.`)
    const outcome = await this.#run(workflow)
    this.#timeLimit.clear()
    clearTimeout(this.#grace)
    this.#browser.release()
    onReturned()
    // Of a store that has answered while the attempt ended.
    if (outcome !== 'leaseLost') await this.#waiting
    if (this.#isSuspended || outcome === 'leaseLost') this.#reporter.close()
    if (outcome === 'suspended' || this.#isSuspended) {
      this.end = { kind: 'waiting', ...this.#suspension() }
      return true
    }
    const completed = outcome !== 'leaseLost' && (await this.#complete(outcome, workflow.retry))
    this.end = completed ? outcome : { kind: 'leaseLost' }
    return completed
  }

  /** An attempt that has ended stores its outcome, and does nothing more. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** Ends the attempt: aborts its signal now, and ends its process after the grace period. */
  interrupt(why: Interruption): void {
    // A second cause does not extend the grace period of the first.
    if (this.#hasEnded || this.#interruption) return
    if (why === 'timeLimit' && this.#evidence.isPending) {
      // The attempt has failed. How long it collects evidence is bounded, and does not count.
      return void this.#evidence.finished.then(() => this.interrupt(why))
    }
    this.#interruption = why
    this.#interruptedStep = this.#steps.running
    if (why === 'leaseLost') return this.#endNow('leaseLost')
    // The outcome is decided: a cancelled run need not wait for the evidence.
    if (this.#isEnding) return this.#evidence.finish()
    this.#channel?.abort(abortMessages[why], why === 'timeLimit')
    const end = () => this.#endAfterEvidence(this.#interruptedOutcome(why))
    this.#grace = setTimeout(end, this.#dependencies.abortGraceSeconds * 1000)
  }

  /** Ends the attempt with this outcome, once its evidence is stored or takes too long. */
  #endAfterEvidence(outcome: Outcome | 'leaseLost'): void {
    if (!this.#evidence.isPending) return this.#end(outcome)
    if (this.#isEnding) return
    this.#isEnding = true
    void this.#evidence.finished.then(() => this.#endNow(outcome))
  }

  #end(outcome: Ended): void {
    this.#hasEnded = true
    clearTimeout(this.#unstored?.timer)
    this.#resolve(outcome)
  }

  /** Whether the outcome is decided or about to be: the process gets no more messages. */
  get #isOver(): boolean {
    return this.#hasEnded || this.#isEnding || this.#interruption !== undefined
  }

  readonly #isFutile = () => this.hasEnded

  #endNow(outcome: Outcome | 'leaseLost'): void {
    // The process may still be at work on the evidence.
    if (this.#isEnding && !this.#evidence.hasEnded) this.reusable = false
    this.#end(outcome)
  }

  #run({ timeLimitSeconds, usesBrowser, evidence }: Workflow): Promise<Ended> {
    return new Promise((resolve) => {
      this.#resolve = resolve
      this.#timeLimitSeconds = timeLimitSeconds
      const { workflowId, runId, number: runAttempt, variables, contextLease, persistContext } = this.#claim
      const { encryption } = this.#dependencies
      const decrypt = (name: string, value: Uint8Array) => encryption.decrypt(value, stepAad(runId, name))
      const results = this.#claim.steps.map(({ name, value }) => ({ name, ...readStepResult(decrypt(name, value)) }))
      const steps = results.map(({ name, json }) => ({ name, outcome: json }))
      const secretAnswers = this.#maskAnswers(steps)
      this.#earlierSecrets = secretsOfResults(results)
      this.#redactor.addAnswers(this.#earlierSecrets)
      const accountSecrets = this.#accountSecrets()
      const start = {
        workflowId,
        runId,
        runAttempt,
        variables: insertSecrets(variables, { ...this.#secrets, ...this.#filePaths }),
        steps: Object.fromEntries(steps.map(({ name, outcome }) => [name, outcome])),
        recorded: this.#claim.hasWaits ? this.#claim.steps.map(({ name }) => name) : undefined,
        captureState: contextLease ? persistContext : ('never' as const),
        usesBrowser,
        // Nothing keeps a picture or a trace of a person who enters a password.
        evidence: usesBrowser && this.#claim.signsIn !== 'byHand' ? evidence : ('off' as const),
        declared: this.#declared,
        // Executors mask evidence of browsers.
        session: this.#sessionStart(),
        secrets: usesBrowser ? [...Object.values(this.#secrets), ...accountSecrets, ...secretAnswers] : [],
      }
      this.#channel = this.#execution.executor.start(start, (event) => this.#onEvent(event))
      this.#observer.started()
      const { timeLeftSeconds = timeLimitSeconds - this.#claim.executedMilliseconds / 1000 } = this.#claim
      const leftSeconds = Math.max(0, timeLeftSeconds)
      this.#timeLimit.start(leftSeconds, () => this.interrupt('timeLimit'))
    })
  }

  #sessionStart(): SessionStart | undefined {
    const { hasSignIn, signsIn } = this.#claim
    if (!hasSignIn && signsIn === null) return undefined
    return { kind: signsIn, totp: (this.#secrets[totpSecret] as TotpSeed | undefined) ?? null }
  }

  #onEvent(event: ExecutorEvent): void {
    // Lines that the process has written before may come later.
    if (this.#hasEnded && event.type !== 'log') return
    if (isLiveViewEvent(event)) return this.#browser.show(event)
    switch (event.type) {
      case 'log':
        return this.#reporter.add('log', { level: event.level, message: event.message })
      case 'progress':
        return this.#reporter.add('progress', { percent: event.percent, message: event.message })
      case 'step':
        this.#observeStep(event.name, event.state)
        return this.#reporter.add('step', {
          name: event.name,
          state: event.state,
          ...(event.wait && { wait: event.wait }),
        })
      case 'code':
        return void this.#useCode(event).catch(() => this.interrupt('leaseLost'))
      case 'waits':
        return void this.#wait(event).catch(() => this.interrupt('leaseLost'))
      case 'stepFinished': {
        this.#steps.addFinished(event.name, event.value)
        this.#storeOutcome()
        const saved = this.#saveStep(event, this.#waiting).catch(() => this.interrupt('leaseLost'))
        this.#saving.add(saved)
        return void saved.finally(() => this.#saving.delete(saved))
      }
      case 'artifact':
        return void this.#replyWhenSaved(event.id, this.#artifacts.save(event)).catch(() => this.interrupt('leaseLost'))
      case 'browserRequested': {
        if (!this.#channel) return
        const channel = this.#channel
        const reply = this.#browser.provide(channel)
        this.#observer.browserRequested(reply)
        return void reply.then((message) => channel.reply(message))
      }
      case 'evidenceStarted':
      case 'evidence':
      case 'evidenceEnded':
        return this.#evidence.onMessage(event)
      default:
        if (this.#isEnding) return this.#evidence.finish()
        if (event.type === 'exited') this.#evidence.finish()
        else if (event.type !== 'signedOut') this.#browser.capture(event.state)
        this.#endAfterEvidence(
          this.#interruption ? this.#interruptedOutcome(this.#interruption, event) : this.#outcome(event),
        )
    }
  }

  #observeStep(name: string, state: ObservedStep['state'], at = Date.now()): void {
    this.#observer.step({ name: this.#redactor.redact(name), state, at })
    this.#steps.observe(name, state)
  }

  /** The outcome of an attempt that was not interrupted. */
  #outcome(event: LastEvent): Outcome {
    if ('reusable' in event) this.reusable = event.reusable
    if (event.type === 'suspended') return { kind: 'waiting', ...this.#suspension() }
    const { redactSecrets: output, redact: error } = this.#redactor
    const { contextVersion, signsIn } = this.#claim
    if (event.type === 'signedOut') {
      const { message, stack, step } = event
      const described = toAttemptError(error({ name: 'SignedOut', message, stack, step }))
      return { kind: 'signedOut', ...this.#suspension(), contextVersion, error: described }
    }
    // The workflow has not been called.
    if (event.type === 'returned' && (signsIn === 'check' || signsIn === 'byHand'))
      return { kind: 'succeeded', output: null }
    return toOutcome(event, this.#execution.workflows, this.#claim.workflowId, { output, error }, this.#steps.running)
  }

  /** A stopping worker keeps a result that arrives within the grace period. */
  #interruptedOutcome(why: Interruption, event?: LastEvent): Outcome | 'leaseLost' {
    if (why === 'workerStopped' && event?.type === 'returned') return this.#outcome(event)
    return interruptedOutcome(why, this.#timeLimitSeconds, this.#redactor.redact(this.#interruptedStep))
  }

  async #saveStep({ name, value }: EventOf<'stepFinished'>, waits: Promise<unknown>): Promise<void> {
    const at = Date.now()
    await waits
    await this.#reporter.written()
    if (this.#hasEnded) return
    const { queue, encryption } = this.#dependencies
    const before = this.#reporter.take()
    const finished = this.#reporter.report('step', { name, state: 'finished' }, at)
    const result = writeStepResult(value, this.#accountSecrets())
    const encrypt = () => encryption.encrypt(result, stepAad(this.#claim.runId, name))
    const step = { name, position: this.#steps.nextPosition() }
    const save = () => queue.finishStep(this.#claim, step, encrypt, [...before, finished])
    const saved = await retryUntilAvailable(save, this.#isFutile)
    if (this.#hasEnded) return
    this.#observeStep(name, 'finished', at)
    if (saved) this.#channel?.reply({ type: 'stepSaved', name })
    else this.interrupt('leaseLost')
  }

  /** The code is masked before the workflow gets it. */
  async #useCode({ code, step }: EventOf<'code'>): Promise<void> {
    this.#redactor.addAnswers([code])
    const isNew = await retryUntilAvailable(() => this.#dependencies.queue.useCode(this.#claim, step), this.#isFutile)
    if (isNew === undefined) this.interrupt('leaseLost')
    else this.#channel?.reply({ type: 'codeUsed', isNew })
  }

  async #wait(event: EventOf<'waits'>): Promise<void> {
    this.#storeOutcome()
    // Not for steps that finish later, which are stored after it.
    const earlier = Promise.all([this.#waiting, ...this.#saving])
    const waiting = earlier.then(() => this.#storeWaits(event))
    this.#waiting = waiting.catch(() => {})
    await waiting
  }

  async #storeWaits(event: EventOf<'waits'>): Promise<void> {
    const { reached, names, canSuspend, hasOpenBrowser, reusable } = event
    await this.#reporter.written()
    if (this.#isOver) return
    const { queue, slots } = this.#dependencies
    const before = this.#reporter.take()
    this.#awaited = names
    const suspend = canSuspend && !hasOpenBrowser ? this.#suspension() : undefined
    const slot = suspend && reached.length > 0 ? slots?.offer(this.#claim) : undefined
    const request = { reached: reached.map(this.#maskWait), names, suspend, slot }
    const storing = retryUntilAvailable(() => queue.wait(this.#claim, request, before), this.#isFutile)
    const results = await storing.catch((error: unknown) => {
      slot?.keep()
      throw error
    })
    if (slot && results?.started) {
      const borrowed = slot.start(results.started.claim)
      return void this.#awaitCalled(results.started, borrowed, event).catch(() => this.interrupt('leaseLost'))
    }
    slot?.keep()
    if (!results) return this.interrupt('leaseLost')
    const { isSuspended, started: _, ...reply } = results
    this.#isSuspended = isSuspended
    if (this.#hasEnded) return
    if (isSuspended) {
      this.reusable = reusable
      this.#channel?.leave(reusable)
      return this.#end('suspended')
    }
    if (canSuspend && hasOpenBrowser && reply.ended.length + reply.refused.length === 0)
      this.#channel?.reply({ type: 'suspend' })
    else await this.#handOver(reply)
  }

  async #handOver(reply: Pick<WaitResults, 'ended' | 'refused' | 'deadlines'>): Promise<void> {
    const secrets = this.#maskAnswers(reply.ended)
    for (const { name, outcome } of reply.ended) this.#steps.addWait(name, outcome)
    // A run that the called one has called may still have the slot.
    await this.#hasSlot
    if (!this.#hasEnded) this.#channel?.reply({ type: 'waitsEnded', ...reply, secrets })
  }

  /** Hands over the outcome of a called run that ends soon. Otherwise, the caller is suspended. */
  async #awaitCalled(started: StartedCall, { ended, returned }: BorrowedSlot, event: EventOf<'waits'>): Promise<void> {
    this.#hasSlot = returned
    if (!this.#hasEnded) this.#timeLimit.pause({ isLimited: false })
    let timer: NodeJS.Timeout | undefined
    const isTooLong = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, calledMillisecondsMax)
    })
    await Promise.race([Promise.all([ended, returned]), isTooLong])
    clearTimeout(timer)
    this.#timeLimit.resume()
    const outcome = await retryUntilAvailable(() => started.outcome(), this.#isFutile)
    if (this.#isOver) return
    const [name] = event.names
    if (name === undefined || outcome === undefined || !this.#steps.hasRoom(outcome))
      return this.#wait({ ...event, reached: [] })
    const unstored = setTimeout(() => this.#storeOutcome(), unstoredMilliseconds)
    this.#unstored = { name, at: Date.now(), timer: unstored }
    await this.#handOver({ ended: [{ name, outcome }], refused: [], deadlines: {} })
  }

  /** Stores the outcome that the workflow has got. Until then, a later attempt gets it from the called run again. */
  #storeOutcome(): void {
    if (!this.#unstored) return
    const { name, timer } = this.#unstored
    clearTimeout(timer)
    this.#unstored = undefined
    const request = { reached: [], names: [name], suspend: undefined }
    const store = async () => {
      const write = () => this.#dependencies.queue.wait(this.#claim, request, [])
      if (!(await retryUntilAvailable(write, this.#isFutile))) this.interrupt('leaseLost')
    }
    this.#waiting = this.#waiting.then(store).catch(() => this.interrupt('leaseLost'))
  }

  /** The report that is left of a call, for an attempt that succeeds: the results of its steps are not read any more. */
  #takeUnstored(): Report[] {
    if (!this.#unstored) return []
    const { name, at, timer } = this.#unstored
    clearTimeout(timer)
    this.#unstored = undefined
    return [this.#reporter.report('step', { name, state: 'finished', wait: 'run' }, at)]
  }

  #accountSecrets(): string[] {
    return [...Object.values(this.#declared.secrets), ...this.#earlierSecrets]
  }

  /** Masks secrets in answers, before the workflow gets them. Returns the secrets. */
  #maskAnswers(outcomes: WaitResults['ended']): unknown[] {
    const { workflows } = this.#execution
    const secrets = outcomes.flatMap(({ name, outcome }) => {
      return workflows.secretsOfOutcome(this.#claim.workflowId, name, outcome)
    })
    this.#redactor.addAnswers(secrets)
    return secrets
  }

  #suspension(): Suspension {
    return { executedMilliseconds: this.#timeLimit.usedMilliseconds, names: this.#awaited }
  }

  readonly #maskWait = (wait: ReachedWait): ReachedWait => {
    if (wait.kind === 'run') return { ...wait, variables: this.#redactor.withFileIds(wait.variables) }
    if (wait.kind !== 'answer') return wait
    return { ...wait, title: this.#redactor.redact(wait.title), shown: this.#redactor.redact(wait.shown) }
  }

  async #replyWhenSaved(id: number, saving: ReturnType<AttemptArtifacts['save']>): Promise<void> {
    const result = await saving
    if (result === 'leaseLost') this.interrupt('leaseLost')
    else this.#channel?.reply({ type: 'artifactSaved', id, ...result })
  }

  async #complete(ended: Outcome, retry: RetryPolicy): Promise<boolean> {
    const context = await retryUntilAvailable(() => this.#browser.save(ended))
    const unstored = context.outcome.kind === 'succeeded' ? this.#takeUnstored() : []
    this.#storeOutcome()
    await this.#waiting
    const mask = (list: readonly Report[]) => list.map(({ at, type, data }) => this.#reporter.report(type, data, at))
    await this.#reporter.written()
    const reports = [...unstored, ...this.#reporter.close(), ...mask(context.reports)]
    const { outcome, within } = context
    const masked = within && (async (tx: Transaction, next: RunStatus) => mask(await within(tx, next)))
    const { queue } = this.#dependencies
    return retryUntilAvailable(() => queue.complete(this.#claim, outcome, retry, reports, masked))
  }
}

// The steps of one attempt: which are running, and whether finished ones are within the limits.

class AttemptSteps {
  /** Steps that this attempt or an earlier one has finished. */
  readonly #finished: Set<string>
  readonly #earlierBytes: number
  #bytes = 0
  #position: number
  /** Steps that have started and not ended, the latest last. */
  #running: string[] = []

  constructor(finished: Claim['steps']) {
    this.#finished = new Set(finished.map(({ name }) => name))
    this.#earlierBytes = finished.reduce((sum, { value }) => sum + value.length, 0)
    this.#position = finished.length
  }

  /** The step that has started last and not ended. */
  get running(): string | null {
    return this.#running.at(-1) ?? null
  }

  observe(name: string, state: ObservedStep['state']): void {
    if (state !== 'started') this.#running = this.#running.filter((each) => each !== name)
    else if (this.#running.length < stepsMax) this.#running.push(name)
  }

  /** The position of the next result among those of the run, from 1. */
  nextPosition(): number {
    this.#position += 1
    return this.#position
  }

  /** Whether one more result is certainly within the limits. */
  hasRoom(value: string): boolean {
    const bytes = this.#earlierBytes + this.#bytes + Buffer.byteLength(value)
    return this.#finished.size < stepsMax && bytes <= stepBytesOfRunMax
  }

  /** Adds the outcome of a wait, which is stored as a step's result. */
  addWait(name: string, outcome: string): void {
    this.addFinished(name, outcome)
    this.#position += 1
  }

  /** The executor checks the same limits. A process that writes to its channel itself is ended. */
  addFinished(name: string, value: string): void {
    this.#bytes += Buffer.byteLength(value)
    const isWithinLimits = this.#finished.size < stepsMax && this.#bytes <= stepBytesOfRunMax
    if (this.#finished.has(name) || !isWithinLimits) throw new Error('The step is finished, or exceeds a limit.')
    this.#finished.add(name)
  }
}
