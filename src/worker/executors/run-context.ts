/** The `RunContext` that a workflow's `run` function gets, in the executor: each call becomes a message to the worker. */

import type { Page } from 'playwright-core'
import type { ReachedWait } from '../../domain/queue/run-options.ts'
import { checkArtifact, mediaTypeFor } from '../../domain/runs/artifact.ts'
import { isLogLevel, stepBytesOfRunMax, stepsMax } from '../../domain/runs/reported-values.ts'
import {
  checkFunction,
  checkName,
  readCallOptions,
  readSleepEnd,
  readWaitOptions,
} from '../../domain/workflows/author-arguments.ts'
import {
  type ArtifactMediaType,
  type BrowserRunContext,
  CalledRunFailed,
  type CallOptions,
  type RunContext,
  type SleepTime,
  type WaitForOptions,
} from '../../domain/workflows/define-workflow.ts'
import { withCauses } from '../../storage/error-causes.ts'
import type { AttemptMessage, ToExecutor } from './messages.ts'
import type { BrowserOfAttempt } from './run-browser.ts'
import { RunSession, type SessionBrowser } from './run-session.ts'
import { RunWaits } from './run-waits.ts'
import { toJson, toText } from './workflow-values.ts'

export type Start = Extract<ToExecutor, { type: 'start' }>

interface AttemptOptions {
  /** The names of answers that the workflow waits for. */
  declaredWaits?: readonly string[]
  /** Whether the browser is signed out, by the workflow's definition. */
  signedOut?: SignedOutOf | undefined
  /** In place of the attempt's browser, in tests. */
  sessionBrowser?: SessionBrowser | undefined
  /** Whether the process may execute another attempt now. */
  checkReusable?: () => Promise<boolean>
  now?: () => number
  /** A sleep that ends within this time does not leave the process. */
  stayMilliseconds?: number
}

/** The `signedOut` of a definition. */
export type SignedOutOf = (
  page: Page,
  run: Pick<RunContext<object>, 'variables' | 'secrets' | 'settings' | 'signal'>,
) => Promise<boolean> | boolean

type BrowserConstructor = typeof import('./run-browser.ts').BrowserOfAttempt

export class RunningAttempt {
  readonly attempt: number
  readonly abort = new AbortController()
  /** `undefined` if the workflow's definition asks for none. */
  readonly browser: BrowserOfAttempt | undefined
  /** `undefined` if the browser context has no sign-in. */
  readonly session: RunSession | undefined
  readonly #start: Start
  readonly #send: (message: AttemptMessage) => void
  readonly #steps = new Set<string>()
  /** The steps that have thrown, by what they threw. */
  readonly #failedSteps = new Map<unknown, string>()
  /** Steps and artifacts that the worker has not stored yet. */
  readonly #pending = new Map<string | number, PromiseWithResolvers<void>>()
  #artifacts = 0
  #lastArtifact: Promise<void> = Promise.resolve()
  /** A one-time code that the worker has not answered yet: the session asks for one at a time. */
  #code: PromiseWithResolvers<boolean> | undefined
  /** Bytes of the results of all steps as JSON, those of earlier attempts included. */
  #stepBytes: number
  readonly #waits: RunWaits
  readonly #declaredWaits: ReadonlySet<string>
  /** Steps that execute. */
  #executing = 0
  readonly #checkReusable: () => Promise<boolean>
  readonly #now: () => number

  constructor(
    start: Start,
    send: (message: AttemptMessage) => void,
    Browser: BrowserConstructor | undefined,
    {
      declaredWaits = [],
      signedOut,
      sessionBrowser,
      checkReusable = async () => false,
      now = Date.now,
      stayMilliseconds = 2000,
    }: AttemptOptions = {},
  ) {
    this.attempt = start.attempt
    this.#start = start
    this.#stepBytes = Object.values(start.steps).reduce((sum, json) => sum + Buffer.byteLength(json), 0)
    this.#send = send
    this.#declaredWaits = new Set(declaredWaits)
    this.#checkReusable = checkReusable
    this.#waits = new RunWaits({
      recorded: start.recorded ?? [],
      send,
      isBusy: () => this.#executing > 0 || this.#pending.size > 0 || (this.browser?.isAwaited ?? false),
      hasOpenBrowser: () => this.browser?.isOpen ?? false,
      staysForAnswers: () => this.session?.staysForAnswers ?? false,
      checkReusable,
      now,
      stayMilliseconds,
    })
    this.#now = now
    this.browser = start.usesBrowser && Browser ? new Browser(start, send, this.abort.signal) : undefined
    this.session = this.#createSession(signedOut, sessionBrowser ?? this.browser)
  }

  #createSession(signedOut: SignedOutOf | undefined, browser: SessionBrowser | undefined): RunSession | undefined {
    const { session, variables, declared } = this.#start
    if (!session || !browser) return undefined
    const { signal } = this.abort
    return new RunSession(session, {
      browser,
      signedOut: signedOut && ((page) => signedOut(page, { variables, ...declared, signal })),
      signal,
      warn: (message) => this.#send({ type: 'log', level: 'warn', message }),
      useCode: (code, step) => this.#useCode(code, step),
      now: this.#now,
    })
  }

  /** The workflow gets the code when the worker masks it, and has stored that it is used. */
  #useCode(code: string, step: number): Promise<boolean> {
    this.#start.secrets.push(code)
    this.#code = Promise.withResolvers()
    this.#send({ type: 'code', code, step })
    return this.#code.promise
  }

  onMessage(message: Exclude<ToExecutor, Start | { type: 'load' }>): void {
    switch (message.type) {
      case 'abort':
        // Before the signal closes the browser. Sent even if the workflow ignores the signal.
        if (message.timedOut) this.browser?.sendEvidenceOfTimeout()
        this.abort.abort(new Error(message.reason))
        this.#code?.reject(new Error(message.reason))
        return this.#waits.abort(new Error(message.reason))
      case 'stepSaved':
        return this.#take(message.name)?.resolve()
      case 'codeUsed':
        return this.#code?.resolve(message.isNew)
      case 'waitsEnded':
        this.#start.secrets.push(...message.secrets)
        return this.#waits.onReply(message)
      case 'suspend':
        return void this.#suspend()
      case 'artifactSaved': {
        const pending = this.#take(message.id)
        if (message.error === undefined) pending?.resolve()
        else pending?.reject(Object.assign(new Error(message.error), { name: 'ArtifactRefused' }))
        return
      }
      default:
        return this.browser?.onMessage(message)
    }
  }

  context(): BrowserRunContext<object> {
    const { variables, runId, runAttempt, declared } = this.#start
    const context: RunContext<object> = {
      variables,
      ...declared,
      runId,
      attempt: runAttempt,
      signal: this.abort.signal,
      log: (message, level) => {
        this.#send({ type: 'log', level: isLogLevel(level) ? level : 'info', message: toText(message) })
      },
      progress: (percent, message) => {
        const bounded = Math.min(100, Math.max(0, Number(percent) || 0))
        this.#send({ type: 'progress', percent: bounded, message: message === undefined ? null : toText(message) })
      },
      step: (name, fn) => this.#step(name, fn),
      artifact: (name, content, options) => this.#artifact(name, content, options?.mediaType),
      sleep: (name, time) => this.#sleep(name, time),
      waitFor: (name, options) => this.#waitFor(name, options),
      call: ((name: string, workflowId: string, variables?: object, options?: CallOptions) =>
        this.#call(name, workflowId, variables, options)) as RunContext<object>['call'],
    }
    const { browser, session } = this
    if (!browser) return { ...context, browser: noBrowser, takeOver: noBrowser, totp: noBrowser }
    return {
      ...context,
      browser: (options) => (session ?? browser).open(options),
      totp: async () => {
        if (!session) throw new Error('totp() is for runs that sign a browser context in.')
        return session.code()
      },
      takeOver: (message, options) => browser.takeOver(message, options?.waitMinutes),
    }
  }

  async #step<Value>(name: string, fn: () => Value | Promise<Value>): Promise<Value> {
    checkName('step', name)
    checkFunction(name, fn)
    this.#addStep(name)
    const { steps } = this.#start
    const finished = Object.hasOwn(steps, name) ? steps[name] : undefined
    if (finished !== undefined) {
      if (this.#start.recorded) await this.#waits.inOrder(name)
      this.#send({ type: 'step', name, state: 'reused' })
      return JSON.parse(finished)
    }
    this.#executing += 1
    try {
      return await this.#execute(name, fn)
    } finally {
      this.#executing -= 1
      this.#waits.check()
    }
  }

  async #execute<Value>(name: string, fn: () => Value | Promise<Value>): Promise<Value> {
    this.abort.signal.throwIfAborted()
    await this.browser?.boundary()
    this.#send({ type: 'step', name, state: 'started' })
    // The async wrapper turns a synchronous throw into a rejection.
    const value = await (async () => fn())().catch((error: unknown) => {
      this.#send({ type: 'step', name, state: 'failed' })
      // A step inside another one is closer to the cause.
      if (!this.#failedSteps.has(error)) this.#failedSteps.set(error, name)
      throw error
    })
    const json = toJson(value, `The result of step "${name}"`)
    this.#addBytes(name, json)
    const saved = this.#untilSaved(name)
    this.#send({ type: 'stepFinished', name, value: json })
    await saved
    await this.browser?.boundary()
    // The value that a later attempt would get, so that the first attempt behaves the same.
    return JSON.parse(json)
  }

  #addBytes(name: string, json: string): void {
    this.#stepBytes += Buffer.byteLength(json)
    if (this.#stepBytes > stepBytesOfRunMax) {
      throw new RangeError(
        `The results of this run's steps and waits have more than ${stepBytesOfRunMax} bytes as JSON with that of "${name}". Store large results as artifacts.`,
      )
    }
  }

  /** Resolves with the outcome of a wait: that of an earlier part, or when the worker hands it over. */
  async #wait<Outcome>(request: ReachedWait): Promise<Outcome> {
    const { name } = request
    const { steps } = this.#start
    this.#addStep(name)
    const recorded = Object.hasOwn(steps, name) ? steps[name] : undefined
    if (recorded !== undefined) {
      await this.#waits.inOrder(name)
      this.#send({ type: 'step', name, state: 'reused', wait: request.kind })
      return JSON.parse(recorded)
    }
    this.abort.signal.throwIfAborted()
    const outcome = await this.#waits.wait(request)
    this.#addBytes(name, outcome)
    return JSON.parse(outcome)
  }

  async #sleep(name: string, time: SleepTime): Promise<void> {
    checkName('sleep', name)
    const deadline = readSleepEnd(name, time, this.#now())
    await this.#wait({ name, kind: 'sleep', deadline, isTime: 'until' in time })
  }

  async #waitFor(name: string, given: WaitForOptions = {}): Promise<never> {
    checkName('waitFor', name)
    if (!this.#declaredWaits.has(name))
      throw new TypeError(`The workflow declares no wait "${name}": name it in the \`waits\` of its definition.`)
    const { title, show, deadline } = readWaitOptions(name, given, this.#now())
    const shown = show && JSON.parse(toJson(show, `What wait "${name}" shows`))
    return this.#wait({ name, kind: 'answer', deadline, title: title && toText(title), shown })
  }

  async #call(name: string, workflowId: string, variables: object = {}, given: CallOptions = {}): Promise<unknown> {
    checkName('call', name)
    const { options, detached: isDetached } = readCallOptions(name, workflowId, variables, given)
    const json = toJson(variables, `The variables of call "${name}"`)
    const called = { workflowId, variables: JSON.parse(json), options, isDetached }
    const outcome = await this.#wait<CallOutcome>({ name, kind: 'run', ...called })
    if (outcome.ok) return outcome.output
    throw new CalledRunFailed(name, outcome)
  }

  /** Waits that the function has left open must not suspend a run whose outcome is decided. */
  stopWaiting(): void {
    this.#waits.suspend()
  }

  async #suspend(): Promise<void> {
    this.#waits.suspend()
    await this.browser?.boundary()
    const state = await this.browser?.end(true)
    this.#send({ type: 'suspended', reusable: await this.#checkReusable(), state })
    await this.browser?.sendEvidence()
  }

  #take(key: string | number): PromiseWithResolvers<void> | undefined {
    const pending = this.#pending.get(key)
    this.#pending.delete(key)
    this.#waits.check()
    return pending
  }

  /** The step that threw the error, or a cause of it. */
  failedStep(error: unknown): string | null {
    for (const cause of withCauses(error)) {
      const step = this.#failedSteps.get(cause)
      if (step !== undefined) return step
    }
    return null
  }

  #addStep(name: string): void {
    if (this.#steps.has(name))
      throw new Error(`Two steps or waits of this run are named "${name}". Each needs its own name.`)
    if (this.#steps.size === stepsMax) throw new RangeError(`A run may have at most ${stepsMax} steps and waits.`)
    this.#steps.add(name)
  }

  async #artifact(name: string, content: Uint8Array | string, mediaType: ArtifactMediaType | undefined): Promise<void> {
    const bytes = Buffer.from(typeof content === 'string' ? Buffer.from(content) : content)
    const artifact = { name: String(name), mediaType: mediaType ?? mediaTypeFor(String(name)), content: bytes }
    // The worker checks it again. This check avoids sending an artifact that is too large.
    checkArtifact(artifact)
    this.#artifacts += 1
    const id = this.#artifacts
    const save = () => {
      const saved = this.#untilSaved(id)
      this.#send({ type: 'artifact', id, ...artifact, content: bytes.toString('base64') })
      return saved
    }
    // One at a time bounds the memory of the worker.
    const saved = this.#lastArtifact.then(save)
    this.#lastArtifact = saved.catch(() => {})
    await saved
  }

  #untilSaved(key: string | number): Promise<void> {
    const pending = Promise.withResolvers<void>()
    this.#pending.set(key, pending)
    return pending.promise
  }
}

type CallOutcome =
  | { ok: true; output: unknown }
  | { ok: false; runId: string; status: string; error: { name: string; message: string } | null }

/** For JavaScript authors; in TypeScript the call does not compile. */
async function noBrowser(): Promise<never> {
  throw new Error('This workflow uses no browser: set `browser: true` in its definition to get one.')
}
