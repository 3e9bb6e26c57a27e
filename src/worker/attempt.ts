/** One attempt of a run, from its claim to its outcome. */
import { ArtifactError, artifactWritesMax, type NewArtifact } from '../domain/runs/artifacts.ts'
import type { Report } from '../domain/runs/attempt-reports.ts'
import type { Claim, Claimable } from '../domain/runs/claim.ts'
import { secretsAad, stepAad } from '../domain/runs/encrypted-columns.ts'
import type { RunQueue } from '../domain/runs/run-queue.ts'
import type { Outcome, RunStatus } from '../domain/runs/run-state.ts'
import { createRedactor, insertSecrets, type Secrets } from '../domain/workflows/secrets.ts'
import type { Workflows } from '../domain/workflows/workflows.ts'
import type { Encryption } from '../storage/encryption.ts'
import type { Transaction } from '../storage/store.ts'
import { AttemptBrowser, type AttemptBrowserDependencies } from './attempt-browser.ts'
import type { ExecutorEvent, ExecutorMessage, ExecutorProcess } from './executor-process.ts'
import { Reporter, untilAvailable } from './reporter.ts'
import type { AttemptEnd, AttemptWatch, WatchedStep } from './watch.ts'

/** Why an attempt is made to end. */
type Interruption = 'timeLimit' | 'cancelled' | 'workerStopped' | 'leaseLost'

const abortMessages: Record<Interruption, string> = {
  timeLimit: "The attempt has reached the workflow's time limit.",
  cancelled: 'The run was cancelled.',
  workerStopped: 'The worker is stopping.',
  leaseLost: 'The worker has lost the run to another.',
}

export interface AttemptDependencies {
  queue: RunQueue
  encryption: Encryption
  workflows: Workflows
  /** How long a workflow has, after its AbortSignal, before its process is ended. */
  abortGraceSeconds: number
  browser: AttemptBrowserDependencies
}

export class Attempt {
  readonly #parts: AttemptDependencies
  readonly #claim: Claim
  readonly #executor: ExecutorProcess
  readonly #reporter: Reporter
  readonly #redact: <Value>(value: Value) => Value
  readonly #secrets: Secrets
  readonly #browser: AttemptBrowser
  readonly #watch: Required<AttemptWatch>
  readonly #timers: NodeJS.Timeout[] = []
  #spoken: ExecutorMessage | undefined
  #artifactWrites = 0
  #interruption: Interruption | undefined
  #end: (outcome: Outcome | 'lost') => void = () => {}
  /** Whether the executor may serve another attempt. */
  reusable = false
  /** Once it is written down; or that it will not be. */
  end: AttemptEnd

  constructor(parts: AttemptDependencies, claim: Claim, executor: ExecutorProcess, watch: Required<AttemptWatch>) {
    this.#parts = parts
    this.#watch = watch
    this.#claim = claim
    this.#executor = executor
    this.#secrets = this.#openSecrets()
    this.#redact = createRedactor(this.#secrets)
    this.#browser = new AttemptBrowser(parts.browser, claim, this.#secrets)
    const redact = <Value>(value: Value) => this.#browser.redact(value)
    this.#reporter = new Reporter(parts.queue, claim, redact, () => this.interrupt('leaseLost'))
  }

  /** Executes the attempt and writes down how it ended; returns false when that was not possible, the lease being lost. */
  async execute(): Promise<boolean> {
    const workflow = this.#parts.workflows.get(this.#claim.workflowId)
    if (!workflow) throw new Error(`A run of workflow ${this.#claim.workflowId} was claimed without its definition.`)
    const outcome = await this.#outcome(workflow.timeLimitSeconds)
    for (const timer of this.#timers) clearTimeout(timer)
    this.#browser.release()
    const settled = outcome !== 'lost' && (await this.#settle(outcome, workflow.retry))
    this.end = settled ? outcome : { kind: 'leaseLost' }
    return settled
  }

  /** Makes the attempt end: its AbortSignal first, its process after the time of grace. */
  interrupt(why: Interruption): void {
    // A later cause does not prolong the grace of the first.
    if (this.#interruption) return
    this.#interruption = why
    if (why === 'leaseLost') return this.#end('lost')
    this.#spoken?.abort(abortMessages[why])
    const grace = () => this.#end(this.#interrupted(why))
    this.#timers.push(setTimeout(grace, this.#parts.abortGraceSeconds * 1000))
  }

  #outcome(timeLimitSeconds: number): Promise<Outcome | 'lost'> {
    return new Promise((resolve) => {
      this.#end = resolve
      const steps = this.#claim.steps.map(({ name, value }) => [name, this.#openStep(name, value)])
      const start = {
        workflowId: this.#claim.workflowId,
        runId: this.#claim.runId,
        runAttempt: this.#claim.attempt,
        variables: insertSecrets(this.#claim.variables, this.#secrets),
        steps: Object.fromEntries(steps),
        tellsState: this.#claim.hold ? this.#claim.persistContext : ('never' as const),
      }
      this.#spoken = this.#executor.start(start, (heard) => this.#hear(heard))
      this.#watch.started()
      this.#timers.push(setTimeout(() => this.interrupt('timeLimit'), timeLimitSeconds * 1000))
    })
  }

  #hear(heard: ExecutorEvent): void {
    switch (heard.type) {
      case 'log':
        return this.#reporter.add(heard.at, 'log', { level: heard.level, message: heard.message })
      case 'progress':
        return this.#reporter.add(heard.at, 'progress', { percent: heard.percent, message: heard.message })
      case 'step':
        this.#watchStep(heard.name, heard.state, heard.at)
        return this.#reporter.add(heard.at, 'step', { name: heard.name, state: heard.state })
      case 'stepFinished':
        return void this.#keepStep(heard).catch(() => this.interrupt('leaseLost'))
      case 'artifact':
        return void this.#keepArtifact(heard).catch(() => this.interrupt('leaseLost'))
      case 'browserWanted': {
        const answered = this.#browser.provide()
        this.#watch.browserWanted(answered)
        return void answered.then((answer) => this.#spoken?.answer(answer))
      }
      default:
        if (heard.type !== 'exited') this.#browser.take(heard.state)
        this.#end(this.#interruption ? this.#interrupted(this.#interruption, heard) : this.#finished(heard))
    }
  }

  #watchStep(name: string, state: WatchedStep['state'], at: number): void {
    this.#watch.step({ name: this.#browser.redact(name), state, at })
  }

  /** The outcome of an attempt that ended by itself. */
  #finished(heard: Extract<ExecutorEvent, { type: 'returned' | 'threw' | 'exited' }>): Outcome {
    if (heard.type === 'threw') {
      const error = this.#browser.redact({ name: heard.name, message: heard.message })
      return { kind: 'failed', reason: 'workflowFailed', error }
    }
    if (heard.type === 'exited') {
      const error = { name: 'ProcessExit', message: `The workflow's process ended (${heard.how}).` }
      return { kind: 'failed', reason: 'workflowExited', error }
    }
    this.reusable = heard.reusable
    const checked = this.#parts.workflows.checkOutput(this.#claim.workflowId, JSON.parse(heard.output))
    if ('masked' in checked) return { kind: 'succeeded', output: this.#redact(checked.masked) }
    const message = checked.errors.map(({ pointer, detail }) => `${pointer || 'the output'} ${detail}`).join('; ')
    const error = this.#browser.redact({
      name: 'OutputInvalid',
      message: `The output does not fit its schema: ${message}`,
    })
    return { kind: 'failed', reason: 'outputInvalid', error }
  }

  /** The outcome of an attempt that was made to end; a stopping worker keeps a result that came in time. */
  #interrupted(
    why: Interruption,
    heard?: Extract<ExecutorEvent, { type: 'returned' | 'threw' | 'exited' }>,
  ): Outcome | 'lost' {
    if (why === 'leaseLost') return 'lost'
    if (why === 'timeLimit') return { kind: 'timedOut' }
    if (why === 'cancelled') return { kind: 'cancelled' }
    return heard?.type === 'returned' ? this.#finished(heard) : { kind: 'workerStopped' }
  }

  async #keepStep({ name, value, at }: { name: string; value: string; at: number }): Promise<void> {
    const { queue, encryption } = this.#parts
    const before = await this.#reporter.take()
    const finished = this.#reporter.report(at, 'step', { name, state: 'finished' })
    const seal = () => encryption.encrypt(value, stepAad(this.#claim.runId, name))
    const kept = await untilAvailable(() => queue.finishStep(this.#claim, name, seal, [...before, finished]))
    this.#watchStep(name, 'finished', at)
    if (kept) this.#spoken?.answer({ type: 'stepKept', name })
    else this.interrupt('leaseLost')
  }

  async #keepArtifact({
    id,
    name,
    mediaType,
    content,
    at,
  }: Extract<ExecutorEvent, { type: 'artifact' }>): Promise<void> {
    this.#artifactWrites += 1
    if (this.#artifactWrites > artifactWritesMax) {
      const refused = `An attempt may write artifacts ${artifactWritesMax} times, also where one replaces another.`
      return this.#spoken?.answer({ type: 'artifactKept', id, refused })
    }
    const { queue } = this.#parts
    const bytes = Buffer.from(content, 'base64')
    const artifact = { name: this.#redact(name), mediaType: mediaType as NewArtifact['mediaType'], content: bytes }
    const told = this.#reporter.report(at, 'artifact', { name: artifact.name, mediaType, sizeBytes: bytes.length })
    const before = await this.#reporter.take()
    try {
      const kept = await untilAvailable(() => queue.keepArtifact(this.#claim, artifact, [...before, told]))
      if (kept) this.#spoken?.answer({ type: 'artifactKept', id })
      else this.interrupt('leaseLost')
    } catch (error) {
      if (!(error instanceof ArtifactError)) throw error
      if (!(await untilAvailable(() => queue.report(this.#claim, before)))) return this.interrupt('leaseLost')
      this.#spoken?.answer({ type: 'artifactKept', id, refused: error.message })
    }
  }

  async #settle(ended: Outcome, retry: Claimable['retry']): Promise<boolean> {
    const saved = await untilAvailable(() => this.#browser.save(ended))
    const tell = (told: readonly Report[]) => told.map(({ at, type, data }) => this.#reporter.report(at, type, data))
    const reports = [...(await this.#reporter.take()), ...tell(saved.reports)]
    const alongside = async (tx: Transaction, next: RunStatus) => tell(await saved.alongside(tx, next))
    return untilAvailable(() => this.#parts.queue.complete(this.#claim, saved.outcome, retry, reports, alongside))
  }

  #openSecrets(): Secrets {
    const { secrets, accountId, runId } = this.#claim
    return secrets ? JSON.parse(this.#parts.encryption.decrypt(secrets, secretsAad(accountId, runId))) : {}
  }

  #openStep(name: string, value: Uint8Array): string {
    return this.#parts.encryption.decrypt(value, stepAad(this.#claim.runId, name))
  }
}
