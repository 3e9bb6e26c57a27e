/** What a workflow's `run` function is given, in the executor: each member becomes words to the worker. */
import { checkArtifact } from '../domain/runs/artifacts.ts'
import type { ArtifactMediaType, BrowserRunContext, RunContext } from '../domain/workflows/define-workflow.ts'
import type { ChannelMessage, ToExecutor } from './messages.ts'
import { RunBrowser } from './run-browser.ts'

export type Start = Extract<ToExecutor, { type: 'start' }>

/** Continues what waits for the worker to have stored something. */
interface Keeping {
  resolve(): void
  reject(error: Error): void
}

export class RunningAttempt {
  readonly attempt: number
  readonly abort = new AbortController()
  readonly browser: RunBrowser
  readonly #start: Start
  readonly #say: (word: ChannelMessage) => void
  readonly #steps = new Set<string>()
  readonly #keeping = new Map<string | number, Keeping>()
  #artifacts = 0

  constructor(start: Start, say: (word: ChannelMessage) => void) {
    this.attempt = start.attempt
    this.#start = start
    this.#say = say
    this.browser = new RunBrowser(() => say({ type: 'browserWanted' }), this.abort.signal, start.tellsState)
  }

  /** Takes what the worker answers. */
  hear(message: Exclude<ToExecutor, Start>): void {
    switch (message.type) {
      case 'abort':
        return this.abort.abort(new Error(message.reason))
      case 'stepKept':
        return this.#keeping.get(message.name)?.resolve()
      case 'artifactKept': {
        const keeping = this.#keeping.get(message.id)
        if (message.refused === undefined) keeping?.resolve()
        else keeping?.reject(Object.assign(new Error(message.refused), { name: 'ArtifactRefused' }))
        return
      }
      case 'browser':
        return this.browser.given(message.endpoint, message.storageState)
      case 'browserRefused':
        return this.browser.refused(message.message)
    }
  }

  /** @param usesBrowser whether the workflow has asked for a browser in its definition. */
  context(usesBrowser: boolean): BrowserRunContext<object> {
    const { variables, runId, runAttempt } = this.#start
    const context: RunContext<object> = {
      variables,
      runId,
      attempt: runAttempt,
      signal: this.abort.signal,
      log: (message, level = 'info') => this.#say({ type: 'log', level, message: String(message) }),
      progress: (percent, message) => {
        const bounded = Math.min(100, Math.max(0, Number(percent) || 0))
        this.#say({ type: 'progress', percent: bounded, message: message === undefined ? null : String(message) })
      },
      step: (name, fn) => this.#step(name, fn),
      artifact: (name, content, options) => this.#artifact(name, content, options?.mediaType),
    }
    return { ...context, browser: usesBrowser ? () => this.browser.open() : refuseBrowser }
  }

  async #step<Value>(name: string, fn: () => Value | Promise<Value>): Promise<Value> {
    // Neither store gives such a name back as it was.
    if (name.includes('\0') || !name.isWellFormed())
      throw new Error('The name of a step has U+0000 or half of a surrogate pair in it: leave it out.')
    if (this.#steps.has(name))
      throw new Error(`Two steps of this run are named "${name}": their results would be mixed up.`)
    this.#steps.add(name)
    const { steps } = this.#start
    const finished = Object.hasOwn(steps, name) ? steps[name] : undefined
    if (finished !== undefined) {
      this.#say({ type: 'step', name, state: 'reused' })
      return JSON.parse(finished)
    }
    this.abort.signal.throwIfAborted()
    this.#say({ type: 'step', name, state: 'started' })
    const value = await attemptStep(fn).catch((error: unknown) => {
      this.#say({ type: 'step', name, state: 'failed' })
      throw error
    })
    const json = toJson(value, `What step "${name}" returned`)
    const kept = this.#kept(name)
    this.#say({ type: 'stepFinished', name, value: json })
    await kept
    // What a later attempt would get, so that the first does not behave otherwise.
    return JSON.parse(json)
  }

  async #artifact(name: string, content: Uint8Array | string, mediaType: ArtifactMediaType | undefined): Promise<void> {
    const bytes = Buffer.from(typeof content === 'string' ? Buffer.from(content) : content)
    const artifact = { name: String(name), mediaType: mediaType ?? typeOfExtension(String(name)), content: bytes }
    // Here too, so that nothing too large is sent to the worker.
    checkArtifact(artifact)
    this.#artifacts += 1
    const id = this.#artifacts
    const kept = this.#kept(id)
    this.#say({ type: 'artifact', id, ...artifact, content: bytes.toString('base64') })
    await kept
  }

  #kept(key: string | number): Promise<void> {
    return new Promise((resolve, reject) => this.#keeping.set(key, { resolve, reject }))
  }
}

/** For those whom no type has told. */
async function refuseBrowser(): Promise<never> {
  throw new Error('This workflow uses no browser: set `browser: true` in its definition to get one.')
}

const typesByExtension: Record<string, ArtifactMediaType> = {
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

function typeOfExtension(name: string): ArtifactMediaType {
  return typesByExtension[name.slice(name.lastIndexOf('.') + 1).toLowerCase()] ?? 'application/octet-stream'
}

/** Turns what `fn` throws before its first await into a rejection too. */
async function attemptStep<Value>(fn: () => Value | Promise<Value>): Promise<Value> {
  return fn()
}

export function toJson(value: unknown, what: string): string {
  try {
    return JSON.stringify(value ?? null) ?? 'null'
  } catch (error) {
    throw new TypeError(`${what} is not JSON: ${(error as Error).message}`)
  }
}
