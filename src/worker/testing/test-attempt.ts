/** One attempt of a workflow in the test's process: does what a worker does with the messages of an executor. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { existsSync } from 'node:fs'
import type { BrowserContext, BrowserContextOptions } from 'playwright-core'
import type { ReachedWait } from '../../domain/queue/run-options.ts'
import {
  ArtifactError,
  artifactWritesMax,
  checkArtifact,
  checkArtifactsOfRun,
  type NewArtifact,
  tooManyArtifactWrites,
} from '../../domain/runs/artifact.ts'
import { boundEventData, ReportLimit } from '../../domain/runs/reported-values.ts'
import type { RunEvent } from '../../domain/runs/run.ts'
import type { Outcome } from '../../domain/runs/run-state.ts'
import type { BrowserRunContext } from '../../domain/workflows/define-workflow.ts'
import { createRedactor } from '../../domain/workflows/redactor.ts'
import { insertSecrets, type Secrets } from '../../domain/workflows/secrets.ts'
import type { DeclaredValues, Workflow } from '../../domain/workflows/workflow.ts'
import type { Workflows } from '../../domain/workflows/workflows.ts'
import { abortMessages, toOutcome } from '../attempt/attempt-outcome.ts'
import { loadChromium, type OpenBrowser, openBrowser } from '../browser/connection.ts'
import { type FoundBrowser, findBrowser } from '../browser/find-browser.ts'
import { captureConsole, executeWorkflow } from '../executors/execute-workflow.ts'
import type { AttemptMessage, SessionStart } from '../executors/messages.ts'
import { BrowserOfAttempt } from '../executors/run-browser.ts'
import { RunningAttempt, type SignedOutOf } from '../executors/run-context.ts'
import type { SessionBrowser } from '../executors/run-session.ts'
import type { RunClock } from './fake-clock.ts'
import type { FakeBrowser } from './run-workflow.ts'
import type { TestWaits } from './test-waits.ts'

export interface TestRun {
  workflow: Workflow
  workflows: Workflows
  run: (context: BrowserRunContext<object>) => unknown
  runId: string
  /** With secrets masked. */
  variables: Record<string, unknown>
  secrets: Secrets
  /** Of the account. */
  declared: DeclaredValues
  /** What steps return in place of their functions. */
  fakeSteps: Record<string, unknown>
  browser: 'chromium' | FakeBrowser | undefined
  takeOver: (() => unknown) | undefined
  /** Whether the browser is signed out, by the definition. */
  signedOut: SignedOutOf | undefined
  /** If the browser context has a sign-in. */
  session: SessionStart | undefined
  /** The time step of the last one-time code, which attempts set. */
  lastCodeStep?: number
  /** Signs in when the run finds that it is signed out. */
  signIn: (() => unknown) | undefined
  /** Results as JSON; attempts add theirs. */
  finishedSteps: Map<string, string>
  artifacts: Map<string, NewArtifact>
  events: Pick<RunEvent, 'type' | 'data'>[]
  /** Names of all steps that attempts have reached. */
  reachedSteps: Set<string>
  waits: TestWaits
  clock: RunClock
  /** When it is cancelled, in milliseconds since 1970. */
  cancelAt: number | undefined
}

export interface AttemptResult {
  outcome: Outcome
  /** What `run` threw. */
  cause: unknown
}

/** ABORT_GRACE_SECONDS by default. */
const abortGraceSeconds = 5

/** Executes an attempt in parts, between which the run waits. */
export async function executeAttempt(test: TestRun, attempt: number): Promise<AttemptResult> {
  const { clock, waits, cancelAt = Number.POSITIVE_INFINITY } = test
  let executedSeconds = 0
  for (;;) {
    const startedAt = clock.now()
    const part = new TestAttempt(test, attempt)
    const ended = await part.execute(executedSeconds)
    executedSeconds += (clock.now() - startedAt) / 1000
    if (ended.outcome.kind === 'signedOut' && test.signIn) {
      await test.signIn()
      continue
    }
    if (ended.outcome.kind !== 'waiting') return ended
    const next = Math.min(cancelAt, await waits.nextEnd())
    await clock.skip(Math.max(0, next - clock.now()) / 1000)
    if (next === cancelAt) return { outcome: { kind: 'cancelled' }, cause: undefined }
    part.handOverAnswers()
  }
}

/** The attempt whose code writes to the console. */
const writing = new AsyncLocalStorage<TestAttempt>()

class TestAttempt {
  readonly #test: TestRun
  readonly #attempt: number
  #redact: <Value>(value: Value) => Value
  readonly #limit = new ReportLimit()
  readonly #running: RunningAttempt
  #cause: unknown
  #artifactWrites = 0
  /** One-time codes that the workflow has got. */
  readonly #codes: string[] = []
  #openGiven: BrowserRunContext<object>['browser'] | undefined
  #hasEnded = false
  readonly #suspended = Promise.withResolvers<Outcome>()

  constructor(test: TestRun, attempt: number) {
    this.#test = test
    this.#attempt = attempt
    this.#redact = this.#createRedactor()
    const start = {
      type: 'start',
      attempt,
      workflowId: test.workflow.id,
      runId: test.runId,
      runAttempt: attempt,
      variables: insertSecrets(test.variables, test.secrets),
      declared: test.declared,
      steps: Object.fromEntries(test.finishedSteps),
      recorded: test.waits.isEmpty ? undefined : [...test.finishedSteps.keys()],
      captureState: 'never',
      evidence: 'off',
      secrets: [] as unknown[],
      usesBrowser: test.workflow.usesBrowser,
      session: test.session,
    } as const
    this.#running = new RunningAttempt(start, (message) => this.#onMessage(message), BrowserOfAttempt, {
      declaredWaits: Object.keys(test.workflow.waits ?? {}),
      signedOut: test.signedOut,
      sessionBrowser: this.#givenBrowser(),
      now: () => test.clock.now(),
      // Each wait executes the code before it again, as a long one does.
      stayMilliseconds: 0,
    })
  }

  /** Masks secret variables, secrets of the account, and secrets in the answers that have come. */
  #createRedactor() {
    const { secrets, declared, waits, session } = this.#test
    const known = { ...secrets, declared: Object.values(declared.secrets), answers: waits.secrets }
    return createRedactor({ ...known, session: [session?.totp?.seed, ...this.#codes] })
  }

  /** The test's replacement of a browser, if it gives one. */
  #givenBrowser(): SessionBrowser | undefined {
    const { workflow, browser } = this.#test
    if (!workflow.usesBrowser || browser === undefined || browser === 'chromium') return undefined
    let opened: ReturnType<typeof openFake> | undefined
    this.#openGiven = async (options = {}) => {
      this.#running.abort.signal.throwIfAborted()
      opened ??= openFake(browser, options)
      return opened
    }
    return {
      open: this.#openGiven,
      takeOver: (message) => this.#takeOver(message),
      crashed: false,
      get isOpen() {
        return opened !== undefined
      },
    }
  }

  /** @param executedSeconds by earlier parts of the attempt. */
  async execute(executedSeconds: number): Promise<AttemptResult> {
    const { workflow, workflows, cancelAt, clock } = this.#test
    const interruption = Promise.withResolvers<Outcome>()
    const timers: NodeJS.Timeout[] = []
    let interrupted: Outcome | undefined
    const interruptAfter = (seconds: number, why: 'timeLimit' | 'cancelled', outcome: Outcome) => {
      const interrupt = () => {
        if (interrupted) return
        interrupted = outcome
        this.#running.onMessage({ type: 'abort', attempt: this.#attempt, reason: abortMessages[why], timedOut: false })
        timers.push(setTimeout(() => interruption.resolve(outcome), abortGraceSeconds * 1000))
      }
      timers.push(setTimeout(interrupt, seconds * 1000))
    }
    interruptAfter(Math.max(0, workflow.timeLimitSeconds - executedSeconds), 'timeLimit', { kind: 'timedOut' })
    if (cancelAt !== undefined) interruptAfter((cancelAt - clock.now()) / 1000, 'cancelled', { kind: 'cancelled' })
    const restoreConsole = captureConsole((level, toMessage) => {
      const attempt = writing.getStore()
      if (attempt) attempt.#add('log', { level, message: toMessage() })
      return attempt !== undefined
    })
    const executed = executeWorkflow(
      this.#running,
      () => writing.run(this, () => this.#run()),
      async () => true,
      process.cwd(),
    )
    const ended = executed.then((event) => {
      const redact = { output: this.#redact, error: this.#redact }
      if (event.type !== 'signedOut') return interrupted ?? toOutcome(event, workflows, workflow.id, redact, null)
      const error = this.#redact({ name: 'SignedOut', message: event.message })
      return interrupted ?? { kind: 'signedOut' as const, executedMilliseconds: 0, contextVersion: undefined, error }
    })
    try {
      const outcome = await Promise.race([ended, interruption.promise, this.#suspended.promise])
      return { outcome: interrupted ?? outcome, cause: this.#cause }
    } finally {
      this.#hasEnded = true
      for (const timer of timers) clearTimeout(timer)
      restoreConsole()
    }
  }

  async #run(): Promise<unknown> {
    const { workflow, run, fakeSteps } = this.#test
    const context = this.#running.context()
    const step = <Value>(name: string, fn: () => Value | Promise<Value>) => {
      this.#test.reachedSteps.add(String(name))
      const isFake = Object.hasOwn(fakeSteps, name)
      return context.step(name, isFake ? () => resultOf(fakeSteps[name]) as Value : fn)
    }
    const browser = this.#running.session ? context.browser : this.#openGiven
    try {
      const takeOver = (message: string) => this.#takeOver(message)
      const person = workflow.usesBrowser ? { takeOver } : {}
      return await run({ ...context, step, ...person, ...(browser && { browser }) })
    } catch (error) {
      this.#cause = error
      throw error
    }
  }

  #onMessage(message: AttemptMessage): void {
    if (this.#hasEnded) return
    this.#test.clock.onProgress()
    switch (message.type) {
      case 'log':
        return this.#add('log', { level: message.level, message: message.message })
      case 'progress':
        return this.#add('progress', { percent: message.percent, message: message.message })
      case 'step':
        return this.#add('step', {
          name: message.name,
          state: message.state,
          ...(message.wait && { wait: message.wait }),
        })
      case 'stepFinished':
        this.#test.finishedSteps.set(message.name, message.value)
        this.#report('step', { name: message.name, state: 'finished' })
        return this.#running.onMessage({ type: 'stepSaved', attempt: this.#attempt, name: message.name })
      case 'code': {
        this.#codes.push(message.code)
        this.#redact = this.#createRedactor()
        const isNew = message.step > (this.#test.lastCodeStep ?? 0)
        if (isNew) this.#test.lastCodeStep = message.step
        return this.#running.onMessage({ type: 'codeUsed', attempt: this.#attempt, isNew })
      }
      case 'waits':
        return queueMicrotask(() => this.#onWaits(message))
      case 'suspended':
        return this.#suspended.resolve({ kind: 'waiting', executedMilliseconds: 0, names: [] })
      case 'artifact':
        return this.#running.onMessage({
          type: 'artifactSaved',
          attempt: this.#attempt,
          id: message.id,
          ...this.#saveArtifact(message),
        })
      case 'browserRequested':
        if (this.#test.browser === 'chromium') return this.#running.browser?.provideOpened(launchChromium)
        return this.#running.onMessage({ type: 'browserUnavailable', attempt: this.#attempt, message: noTestBrowser })
    }
  }

  /** Ends the part unless a wait has ended, or something else executes. */
  #onWaits({ reached, names, canSuspend }: Extract<AttemptMessage, { type: 'waits' }>): void {
    if (this.#hasEnded) return
    const { waits } = this.#test
    const attempt = this.#attempt
    const refused: { name: string; errorName: string; message: string }[] = []
    for (const request of reached.map(this.#maskWait)) {
      const { name, kind } = request
      const { isNew, error: message } = waits.reach(request)
      if (isNew) this.#report('step', { name, state: 'started', wait: kind })
      if (message !== undefined) refused.push({ name, errorName: 'WaitMismatch', message })
    }
    const ended = this.#handOver(names)
    if (canSuspend && ended.length + refused.length === 0) return this.#running.onMessage({ type: 'suspend', attempt })
    const sleeps = reached.filter(({ kind }) => kind === 'sleep')
    const deadlines = Object.fromEntries(sleeps.map(({ name }) => [name, waits.deadlineOf(name)]))
    this.#running.onMessage({ type: 'waitsEnded', attempt, ended, refused, deadlines, secrets: [] })
  }

  /** Answers to a run that is suspended: what stores one hands it over, before the next part begins. */
  handOverAnswers(): void {
    this.#handOver(this.#test.waits.answered())
  }

  #handOver(names: readonly string[]) {
    const { waits, finishedSteps } = this.#test
    const ended = waits.take(names)
    this.#redact = this.#createRedactor()
    for (const { name, kind, outcome } of ended) {
      finishedSteps.set(name, outcome)
      this.#report('step', { name, state: 'finished', wait: kind })
    }
    return ended
  }

  readonly #maskWait = (wait: ReachedWait): ReachedWait =>
    wait.kind === 'answer' ? { ...wait, title: this.#redact(wait.title), shown: this.#redact(wait.shown) } : wait

  /** Does what the test has in place of a person. */
  async #takeOver(message: string): Promise<boolean> {
    const { takeOver } = this.#test
    this.#add('log', { level: 'info', message: `Waiting for someone to take over the browser: ${message}` })
    await takeOver?.()
    return takeOver !== undefined
  }

  #saveArtifact({ name, mediaType, content }: Extract<AttemptMessage, { type: 'artifact' }>): { error?: string } {
    this.#artifactWrites += 1
    if (this.#artifactWrites > artifactWritesMax) {
      return { error: tooManyArtifactWrites }
    }
    const bytes = Buffer.from(content, 'base64')
    const artifact = { name: this.#redact(name), mediaType: mediaType as NewArtifact['mediaType'], content: bytes }
    const others = [...this.#test.artifacts.values()].filter((other) => other.name !== artifact.name)
    try {
      checkArtifact(artifact)
      const length = others.reduce((sum, other) => sum + other.content.length, bytes.length)
      checkArtifactsOfRun({ count: others.length, bytes: length })
    } catch (error) {
      if (error instanceof ArtifactError) return { error: error.message }
      throw error
    }
    this.#test.artifacts.set(artifact.name, artifact)
    this.#report('artifact', { name: artifact.name, mediaType, sizeBytes: bytes.length })
    return {}
  }

  #add(type: RunEvent['type'], data: Record<string, unknown>): void {
    const bounded = this.#limit.next(type, data)
    if (bounded) this.#report(bounded.type, bounded.data)
  }

  #report(type: RunEvent['type'], data: Record<string, unknown>): void {
    // Masked before it is truncated, as workers do.
    this.#test.events.push({ type, data: { attempt: this.#attempt, ...boundEventData(type, this.#redact(data)) } })
  }
}

function resultOf(fake: unknown): unknown {
  return typeof fake === 'function' ? fake() : fake
}

// The browser of a workflow under test: a new Chromium, or the replacement that the test gives.

const noTestBrowser =
  "The workflow asks for a browser, and its test gives none: set the option `browser` of runWorkflow to 'chromium' or to a browser context."

/** Starts a Chromium, which ends when the context is closed. @throws {Error} that says what to install. */
async function launchChromium(options: BrowserContextOptions): Promise<OpenBrowser> {
  const chromium = await loadChromium()
  const { executable, environment } = await findForTest(chromium.executablePath())
  const server = await chromium.launchServer({
    executablePath: executable,
    env: { ...process.env, ...environment },
    headless: true,
    // The sandbox does not work as root, and needs rights that machines which run tests often lack.
    chromiumSandbox: false,
    host: '127.0.0.1',
  })
  try {
    const opened = await openBrowser({ url: server.wsEndpoint() }, undefined, options)
    return { ...opened, close: () => opened.close().finally(() => server.close()) }
  } catch (error) {
    await server.close()
    throw error
  }
}

/** @param downloaded where `npx playwright-core@VERSION install chromium` puts its browser. */
async function findForTest(downloaded: string): Promise<Pick<FoundBrowser, 'executable' | 'environment'>> {
  const { BROWSER_PATH } = process.env
  try {
    return await findBrowser(BROWSER_PATH, process.env)
  } catch (error) {
    if (BROWSER_PATH || !existsSync(downloaded)) throw error
    return { executable: downloaded, environment: {} }
  }
}

async function openFake(fake: FakeBrowser, options: BrowserContextOptions): Promise<BrowserContext> {
  return (typeof fake === 'function' ? await fake(options) : fake) as BrowserContext
}
