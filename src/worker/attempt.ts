/** One attempt of a run, from its claim to its outcome. */
import type { StorageUsage } from '../domain/accounts/storage-usage.ts'
import { ArtifactError, artifactWritesMax, type NewArtifact } from '../domain/runs/artifacts.ts'
import type { Claim, Claimable } from '../domain/runs/attempts.ts'
import { parseOutput, stepBytesOfRunMax, stepsMax, toRunError } from '../domain/runs/reported-values.ts'
import type { Report } from '../domain/runs/run.ts'
import { secretsAad, stepAad } from '../domain/runs/run.ts'
import type { RunQueue } from '../domain/runs/run-queue.ts'
import type { Outcome, RunStatus } from '../domain/runs/run-state.ts'
import { createRedactor, insertSecrets, type Secrets } from '../domain/workflows/secrets.ts'
import type { Workflows } from '../domain/workflows/workflows.ts'
import type { Encryption } from '../storage/encryption.ts'
import type { Transaction } from '../storage/store.ts'
import { AttemptBrowser, type AttemptBrowserDependencies } from './attempt-browser.ts'
import type { AttemptEnd, AttemptObserver, ObservedStep } from './attempt-observer.ts'
import type { AttemptChannel, ExecutorEvent, ExecutorProcess } from './executor-process.ts'
import { Reporter, retryUntilAvailable } from './reporter.ts'

/** Why an attempt is ended from outside. */
type Interruption = 'timeLimit' | 'cancelled' | 'workerStopped' | 'leaseLost'

const abortMessages: Record<Interruption, string> = {
  timeLimit: "The attempt reached the workflow's time limit.",
  cancelled: 'The run was cancelled.',
  workerStopped: 'The worker is stopping.',
  leaseLost: "The worker lost the run's lease.",
}

type EndEvent = Extract<ExecutorEvent, { type: 'returned' | 'threw' | 'exited' }>
type EventOf<Type extends ExecutorEvent['type']> = Extract<ExecutorEvent, { type: Type }>

export interface AttemptDependencies {
  queue: RunQueue
  encryption: Encryption
  workflows: Workflows
  /** Time between a workflow's AbortSignal and the end of its process. */
  abortGraceSeconds: number
  browser: AttemptBrowserDependencies
  usage: StorageUsage
}

export class Attempt {
  readonly #dependencies: AttemptDependencies
  readonly #claim: Claim
  readonly #executor: ExecutorProcess
  readonly #reporter: Reporter
  readonly #redact: <Value>(value: Value) => Value
  readonly #secrets: Secrets
  readonly #browser: AttemptBrowser
  readonly #observer: Required<AttemptObserver>
  readonly #timers: NodeJS.Timeout[] = []
  #channel: AttemptChannel | undefined
  #artifactWrites = 0
  #isSavingArtifact = false
  /** Steps that this attempt or an earlier one has finished. */
  readonly #stepNames: Set<string>
  #stepBytes = 0
  #interruption: Interruption | undefined
  #end: (outcome: Outcome | 'leaseLost') => void = () => {}
  /** Whether the executor may run another attempt. */
  reusable = false
  /** Set when `execute` has resolved. */
  end: AttemptEnd

  constructor(
    dependencies: AttemptDependencies,
    claim: Claim,
    executor: ExecutorProcess,
    observer: Required<AttemptObserver>,
  ) {
    this.#dependencies = dependencies
    this.#observer = observer
    this.#claim = claim
    this.#executor = executor
    this.#stepNames = new Set(claim.steps.map(({ name }) => name))
    this.#secrets = this.#decryptSecrets()
    this.#redact = createRedactor(this.#secrets)
    this.#browser = new AttemptBrowser(dependencies.browser, claim, this.#secrets)
    // Looked up at each call: the browser replaces its redactor when it learns of cookies.
    const redact = <Value>(value: Value) => this.#browser.redact(value)
    this.#reporter = new Reporter(dependencies.queue, claim, redact, () => this.interrupt('leaseLost'))
  }

  /**
   * Executes the attempt and stores its outcome; returns false when the lease was lost before that.
   *
   * @param onReturned called when the executor is not needed any more, before the outcome is stored.
   */
  async execute(onReturned: () => void): Promise<boolean> {
    const workflow = this.#dependencies.workflows.get(this.#claim.workflowId)
    if (!workflow) throw new Error(`A run of workflow ${this.#claim.workflowId} was claimed without its definition.`)
    const outcome = await this.#run(workflow.timeLimitSeconds)
    for (const timer of this.#timers) clearTimeout(timer)
    this.#browser.release()
    onReturned()
    const completed = outcome !== 'leaseLost' && (await this.#complete(outcome, workflow.retry))
    this.end = completed ? outcome : { kind: 'leaseLost' }
    return completed
  }

  /** Ends the attempt: aborts its signal now, and ends its process after the grace period. */
  interrupt(why: Interruption): void {
    // A second cause does not extend the grace period of the first.
    if (this.#interruption) return
    this.#interruption = why
    if (why === 'leaseLost') return this.#end('leaseLost')
    this.#channel?.abort(abortMessages[why])
    const grace = () => this.#end(this.#interruptedOutcome(why))
    this.#timers.push(setTimeout(grace, this.#dependencies.abortGraceSeconds * 1000))
  }

  #run(timeLimitSeconds: number): Promise<Outcome | 'leaseLost'> {
    return new Promise((resolve) => {
      this.#end = resolve
      const { workflowId, runId, attempt: runAttempt, variables, contextLease, persistContext } = this.#claim
      const steps = this.#claim.steps.map(({ name, value }) => [name, this.#decryptStep(name, value)])
      const start = {
        workflowId,
        runId,
        runAttempt,
        variables: insertSecrets(variables, this.#secrets),
        steps: Object.fromEntries(steps),
        captureState: contextLease ? persistContext : ('never' as const),
      }
      this.#channel = this.#executor.start(start, (event) => this.#onEvent(event))
      this.#observer.started()
      this.#timers.push(setTimeout(() => this.interrupt('timeLimit'), timeLimitSeconds * 1000))
    })
  }

  #onEvent(event: ExecutorEvent): void {
    switch (event.type) {
      case 'log':
        return this.#reporter.add('log', { level: event.level, message: event.message })
      case 'progress':
        return this.#reporter.add('progress', { percent: event.percent, message: event.message })
      case 'step':
        this.#observeStep(event.name, event.state)
        return this.#reporter.add('step', { name: event.name, state: event.state })
      case 'stepFinished':
        this.#countStep(event)
        return void this.#saveStep(event).catch(() => this.interrupt('leaseLost'))
      case 'artifact':
        if (this.#isSavingArtifact) throw new Error('The executor sends one artifact at a time.')
        this.#isSavingArtifact = true
        return void this.#saveArtifact(event).catch(() => this.interrupt('leaseLost'))
      case 'browserRequested': {
        const reply = this.#browser.provide()
        this.#observer.browserRequested(reply)
        return void reply.then((message) => this.#channel?.reply(message))
      }
      default:
        if (event.type !== 'exited') this.#browser.capture(event.state)
        this.#end(this.#interruption ? this.#interruptedOutcome(this.#interruption, event) : this.#outcome(event))
    }
  }

  #observeStep(name: string, state: ObservedStep['state'], at = Date.now()): void {
    this.#observer.step({ name: this.#browser.redact(name), state, at })
  }

  /** The executor checks the same. A process that writes to its channel itself is ended. */
  #countStep({ name, value }: EventOf<'stepFinished'>): void {
    this.#stepBytes += Buffer.byteLength(value)
    const isWithinLimits = this.#stepNames.size < stepsMax && this.#stepBytes <= stepBytesOfRunMax
    if (this.#stepNames.has(name) || !isWithinLimits) throw new Error('The step is finished, or exceeds a limit.')
    this.#stepNames.add(name)
  }

  /** The outcome of an attempt that was not interrupted. */
  #outcome(event: EndEvent): Outcome {
    if (event.type === 'threw') return this.#failed(event.reason, event.name, event.message)
    if (event.type === 'exited') return this.#failed('workflowExited', event.name, event.message)
    this.reusable = event.reusable
    try {
      const checked = this.#dependencies.workflows.checkOutput(this.#claim.workflowId, parseOutput(event.output))
      if ('masked' in checked) return { kind: 'succeeded', output: this.#redact(checked.masked) }
      const errors = checked.errors.map(({ pointer, detail }) => `${pointer || 'the output'} ${detail}`).join('; ')
      return this.#failed('outputInvalid', 'OutputInvalid', `The output does not match its schema: ${errors}`)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      return this.#failed('outputInvalid', 'OutputInvalid', error.message)
    }
  }

  #failed(reason: 'workflowFailed' | 'workflowExited' | 'outputInvalid', name: string, message: string): Outcome {
    return { kind: 'failed', reason, error: toRunError(this.#browser.redact({ name, message })) }
  }

  /** A stopping worker keeps a result that arrives within the grace period. */
  #interruptedOutcome(why: Interruption, event?: EndEvent): Outcome | 'leaseLost' {
    if (why === 'leaseLost') return 'leaseLost'
    if (why === 'timeLimit') return { kind: 'timedOut' }
    if (why === 'cancelled') return { kind: 'cancelled' }
    return event?.type === 'returned' ? this.#outcome(event) : { kind: 'workerStopped' }
  }

  async #saveStep({ name, value }: EventOf<'stepFinished'>): Promise<void> {
    const at = Date.now()
    const { queue, encryption } = this.#dependencies
    const before = await this.#reporter.take()
    const finished = this.#reporter.report('step', { name, state: 'finished' }, at)
    const encrypt = () => encryption.encrypt(value, stepAad(this.#claim.runId, name))
    const saved = await retryUntilAvailable(() => queue.finishStep(this.#claim, name, encrypt, [...before, finished]))
    this.#observeStep(name, 'finished', at)
    if (saved) this.#channel?.reply({ type: 'stepSaved', name })
    else this.interrupt('leaseLost')
  }

  async #saveArtifact(event: EventOf<'artifact'>): Promise<void> {
    const error = await this.#tryToSaveArtifact(event)
    this.#isSavingArtifact = false
    if (error !== 'leaseLost') this.#channel?.reply({ type: 'artifactSaved', id: event.id, ...error })
    else this.interrupt('leaseLost')
  }

  async #tryToSaveArtifact(event: EventOf<'artifact'>): Promise<'leaseLost' | { error?: string }> {
    const { name, mediaType, content } = event
    this.#artifactWrites += 1
    if (this.#artifactWrites > artifactWritesMax) {
      return { error: `An attempt may write artifacts ${artifactWritesMax} times, including replacements.` }
    }
    const { queue, usage } = this.#dependencies
    const { accountId } = this.#claim
    const refusal = usage.refusal(accountId)
    if (refusal) return { error: `${refusal} The artifact was not stored.` }
    const bytes = Buffer.from(content, 'base64')
    const artifact = { name: this.#redact(name), mediaType: mediaType as NewArtifact['mediaType'], content: bytes }
    const report = this.#reporter.report('artifact', { name: artifact.name, mediaType, sizeBytes: bytes.length })
    const before = await this.#reporter.take()
    try {
      const saved = await retryUntilAvailable(() => queue.keepArtifact(this.#claim, artifact, [...before, report]))
      if (saved) usage.add(accountId, bytes.length)
      return saved ? {} : 'leaseLost'
    } catch (error) {
      if (!(error instanceof ArtifactError)) throw error
      const reported = await retryUntilAvailable(() => queue.report(this.#claim, before))
      return reported ? { error: error.message } : 'leaseLost'
    }
  }

  async #complete(ended: Outcome, retry: Claimable['retry']): Promise<boolean> {
    const context = await retryUntilAvailable(() => this.#browser.save(ended))
    const mask = (list: readonly Report[]) => list.map(({ at, type, data }) => this.#reporter.report(type, data, at))
    const reports = [...(await this.#reporter.take()), ...mask(context.reports)]
    const { outcome, within } = context
    const masked = within && (async (tx: Transaction, next: RunStatus) => mask(await within(tx, next)))
    const { queue } = this.#dependencies
    return retryUntilAvailable(() => queue.complete(this.#claim, outcome, retry, reports, masked))
  }

  #decryptSecrets(): Secrets {
    const { secrets, accountId, runId } = this.#claim
    return secrets ? JSON.parse(this.#dependencies.encryption.decrypt(secrets, secretsAad(accountId, runId))) : {}
  }

  #decryptStep(name: string, value: Uint8Array): string {
    return this.#dependencies.encryption.decrypt(value, stepAad(this.#claim.runId, name))
  }
}
