/** The `RunContext` that a workflow's `run` function gets, in the executor: each call becomes a message to the worker. */
import { checkArtifact } from '../../domain/runs/artifact.ts'
import { isLogLevel, nameLengthMax, stepBytesOfRunMax, stepsMax } from '../../domain/runs/reported-values.ts'
import type { ArtifactMediaType, BrowserRunContext, RunContext } from '../../domain/workflows/define-workflow.ts'
import { withCauses } from './error-stack.ts'
import { type AttemptMessage, isName, type ToExecutor } from './messages.ts'
import type { BrowserOfAttempt } from './run-browser.ts'
import { toJson, toText } from './workflow-values.ts'

export type Start = Extract<ToExecutor, { type: 'start' }>

type BrowserConstructor = typeof import('./run-browser.ts').BrowserOfAttempt

export class RunningAttempt {
  readonly attempt: number
  readonly abort = new AbortController()
  /** `undefined` if the workflow's definition asks for none. */
  readonly browser: BrowserOfAttempt | undefined
  readonly #start: Start
  readonly #send: (message: AttemptMessage) => void
  readonly #steps = new Set<string>()
  /** The steps that have thrown, by what they threw. */
  readonly #failedSteps = new Map<unknown, string>()
  /** Steps and artifacts that the worker has not stored yet. */
  readonly #pending = new Map<string | number, PromiseWithResolvers<void>>()
  #artifacts = 0
  #lastArtifact: Promise<void> = Promise.resolve()
  /** Bytes of the results of all steps as JSON, those of earlier attempts included. */
  #stepBytes: number

  constructor(start: Start, send: (message: AttemptMessage) => void, Browser: BrowserConstructor | undefined) {
    this.attempt = start.attempt
    this.#start = start
    this.#stepBytes = Object.values(start.steps).reduce((sum, json) => sum + Buffer.byteLength(json), 0)
    this.#send = send
    this.browser = start.usesBrowser && Browser ? new Browser(start, send, this.abort.signal) : undefined
  }

  onMessage(message: Exclude<ToExecutor, Start | { type: 'load' }>): void {
    switch (message.type) {
      case 'abort':
        // Before the signal closes the browser. Sent even if the workflow ignores the signal.
        if (message.timedOut) this.browser?.sendEvidenceOfTimeout()
        return this.abort.abort(new Error(message.reason))
      case 'stepSaved':
        return this.#pending.get(message.name)?.resolve()
      case 'artifactSaved': {
        const pending = this.#pending.get(message.id)
        if (message.error === undefined) pending?.resolve()
        else pending?.reject(Object.assign(new Error(message.error), { name: 'ArtifactRefused' }))
        return
      }
      default:
        return this.browser?.onMessage(message)
    }
  }

  context(): BrowserRunContext<object> {
    const { variables, runId, runAttempt } = this.#start
    const context: RunContext<object> = {
      variables,
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
    }
    const { browser } = this
    if (!browser) return { ...context, browser: noBrowser, takeOver: noBrowser }
    return {
      ...context,
      browser: (options) => browser.open(options),
      takeOver: (message, options) => browser.takeOver(message, options?.waitMinutes),
    }
  }

  async #step<Value>(name: string, fn: () => Value | Promise<Value>): Promise<Value> {
    this.#addStep(name)
    const { steps } = this.#start
    const finished = Object.hasOwn(steps, name) ? steps[name] : undefined
    if (finished !== undefined) {
      this.#send({ type: 'step', name, state: 'reused' })
      return JSON.parse(finished)
    }
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
    this.#stepBytes += Buffer.byteLength(json)
    if (this.#stepBytes > stepBytesOfRunMax) {
      throw new RangeError(
        `The results of this run's steps have more than ${stepBytesOfRunMax} bytes as JSON with that of step "${name}". Store large results as artifacts.`,
      )
    }
    const saved = this.#untilSaved(name)
    this.#send({ type: 'stepFinished', name, value: json })
    await saved
    await this.browser?.boundary()
    // The value that a later attempt would get, so that the first attempt behaves the same.
    return JSON.parse(json)
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
    if (!isName(name)) {
      throw new TypeError(
        `The name of a step must be a string of at most ${nameLengthMax} characters without U+0000 or half of a surrogate pair.`,
      )
    }
    if (this.#steps.has(name))
      throw new Error(`Two steps of this run are named "${name}". Each step needs its own name.`)
    if (this.#steps.size === stepsMax) throw new RangeError(`A run may have at most ${stepsMax} steps.`)
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

/** For JavaScript authors; in TypeScript the call does not compile. */
async function noBrowser(): Promise<never> {
  throw new Error('This workflow uses no browser: set `browser: true` in its definition to get one.')
}

const mediaTypes: Record<string, ArtifactMediaType> = {
  csv: 'text/csv',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  json: 'application/json',
  pdf: 'application/pdf',
  png: 'image/png',
  txt: 'text/plain',
  webp: 'image/webp',
  zip: 'application/zip',
}

function mediaTypeFor(name: string): ArtifactMediaType {
  return mediaTypes[name.slice(name.lastIndexOf('.') + 1).toLowerCase()] ?? 'application/octet-stream'
}
