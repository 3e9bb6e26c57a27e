/** Records an attempt's browser, in the executor: a Playwright trace in parts, and the pages as they are at the end. */
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { BrowserContext, Locator, Page, Request, Response } from 'playwright-core'
import { traceBytesMax } from '../../domain/runs/artifact.ts'
import type { EvidencePolicy } from '../../domain/workflows/define-workflow.ts'
import { maskedLengthMin, stringsIn } from '../../domain/workflows/redactor.ts'
import { type Json, passwordFields } from './trace-secrets.ts'

interface PageEvidence {
  url: string
  title: string
  /** JPEG. */
  screenshot: Uint8Array | undefined
}

/** With secrets: nothing of it leaves the process before `buildEvidence` has masked them. */
export interface RawEvidence {
  /** When the workflow had ended: later calls are the recorder's own. Wall-clock time. */
  collectedAt: number
  pages: PageEvidence[]
  /** Archives as Playwright writes them, oldest first. */
  trace: Uint8Array[]
  /** Events of requests, at wall-clock times, if the trace has none. */
  requests: Json[]
  /** The storage state, then values of session storage. Undefined if they could not be read, so that they cannot be masked. */
  stored: unknown[] | undefined
}

/**
 * What the trace has of each action: its call, or also the DOM before and after it and the network, or also pictures of
 * each change. A decision record has the costs.
 */
export type RecordingLevel = 'calls' | 'dom' | 'pictures'

/** The first attempt records what costs a run almost nothing; an attempt that follows a failed one records the DOM. */
export function recordingLevel(policy: EvidencePolicy, attempt: number, signsIn: boolean): RecordingLevel | undefined {
  if (policy === 'off') return undefined
  // Nothing is covered in the pictures of a trace, which would show codes while they are typed.
  if (policy === 'always') return signsIn ? 'dom' : 'pictures'
  return attempt > 1 ? 'dom' : 'calls'
}

/** The last pages that were opened. */
const pagesMax = 5
const pageMillisecondsMax = 4000
const domMillisecondsMax = 1500
const traceMillisecondsMax = 3000
const storageMillisecondsMax = 3000
/** Each part is a separate archive, so that the oldest can be dropped. */
const partMilliseconds = 60_000

export class EvidenceRecorder {
  readonly #context: BrowserContext
  readonly #level: RecordingLevel
  /** Playwright records the network together with the DOM only. */
  readonly #requests: RecordedRequests | undefined
  readonly #parts: { file: FileHandle; bytes: number }[] = []
  #timer: NodeJS.Timeout | undefined
  #isRecording = false
  /** Starting and ending parts happens one after the other. */
  #queue: Promise<void> = Promise.resolve()
  #collected: Promise<RawEvidence> | undefined
  readonly #start: BrowserContext['tracing']['start']
  readonly #stop: BrowserContext['tracing']['stop']

  private constructor(context: BrowserContext, level: RecordingLevel) {
    this.#context = context
    this.#start = context.tracing.start.bind(context.tracing)
    this.#stop = context.tracing.stop.bind(context.tracing)
    this.#level = level
    this.#requests = level === 'calls' ? new RecordedRequests(context) : undefined
  }

  /** Starts to record. If that fails, the attempt continues without evidence. */
  static async start(context: BrowserContext, level: RecordingLevel): Promise<EvidenceRecorder | undefined> {
    const recorder = new EvidenceRecorder(context, level)
    try {
      await recorder.#startPart()
    } catch {
      recorder.#requests?.stop()
      return undefined
    }
    recorder.#letWorkflowTrace()
    recorder.#timer = setInterval(() => recorder.#enqueue(() => recorder.#nextPart()), partMilliseconds).unref()
    return recorder
  }

  /** Collects once; later calls return the same. Takes at most about 9 s. @param secrets are covered in screenshots. */
  collect(secrets: readonly unknown[] = []): Promise<RawEvidence> {
    this.#collected ??= this.#collect(toShown(secrets))
    return this.#collected
  }

  /** Resolves when `collect` has ended, if it was called. */
  get collecting(): Promise<void> {
    return Promise.resolve(this.#collected).then(
      () => {},
      () => {},
    )
  }

  /** Stops recording and forgets what was recorded. Call it when the browser is closed. */
  async discard(): Promise<void> {
    clearInterval(this.#timer)
    await this.collecting
    for (const { file } of this.#parts.splice(0)) await file.close()
  }

  async #collect(secrets: readonly string[]): Promise<RawEvidence> {
    clearInterval(this.#timer)
    const collectedAt = Date.now()
    this.#requests?.stop()
    if (this.#level === 'calls')
      await within(
        domMillisecondsMax,
        this.#enqueue(() => this.#startLastPart()),
        undefined,
      )
    const open = this.#context.pages().slice(-pagesMax)
    // The trace records the screenshot as an action, with the DOM of the page.
    const pages = await Promise.all(open.map((page) => describePage(page, secrets)))
    const ending = this.#enqueue(() => this.#endPart())
    const [stored] = await Promise.all([
      within(storageMillisecondsMax, readStored(this.#context), undefined),
      within(traceMillisecondsMax, ending, undefined),
    ])
    const trace = await Promise.all(this.#parts.map(({ file, bytes }) => readAll(file, bytes)))
    return { collectedAt, pages, trace, requests: this.#requests?.toEvents() ?? [], stored }
  }

  #enqueue(act: () => Promise<void>): Promise<void> {
    this.#queue = this.#queue.then(act).catch(() => {})
    return this.#queue
  }

  async #startPart(): Promise<void> {
    await this.#start({ snapshots: this.#level !== 'calls', screenshots: this.#level === 'pictures' })
    this.#isRecording = true
  }

  /** Records the DOM of the pages as they are at the end. */
  async #startLastPart(): Promise<void> {
    if (!this.#isRecording) return
    await this.#endPart()
    await this.#start({ snapshots: true })
    this.#isRecording = true
  }

  async #nextPart(): Promise<void> {
    if (!this.#isRecording || this.#collected) return
    await this.#endPart()
    await this.#startPart()
  }

  async #endPart(): Promise<void> {
    if (!this.#isRecording) return
    this.#isRecording = false
    const directory = await mkdtemp(join(tmpdir(), 'trace-'))
    try {
      const path = join(directory, 'trace.zip')
      await this.#stop({ path })
      const file = await open(path)
      this.#parts.push({ file, bytes: (await file.stat()).size })
    } finally {
      // The open file remains readable.
      await rm(directory, { recursive: true })
    }
    const sum = () => this.#parts.reduce((total, { bytes }) => total + bytes, 0)
    while (this.#parts.length > 1 && sum() > traceBytesMax) await this.#parts.shift()?.file.close()
  }

  /** A context has one trace at a time: a workflow that records its own ends this one. */
  #letWorkflowTrace(): void {
    this.#context.tracing.start = async (options) => {
      await this.#enqueue(async () => {
        if (!this.#isRecording) return
        this.#isRecording = false
        await this.#stop()
      })
      clearInterval(this.#timer)
      return this.#start(options)
    }
  }
}

/** Each makes a screenshot slower. */
const coveredMax = 50

/** The secrets that a page can show. */
function toShown(secrets: readonly unknown[]): string[] {
  const texts = secrets.flatMap(stringsIn).filter(({ length }) => length >= maskedLengthMin)
  return [...new Set(texts)].slice(-coveredMax)
}

async function describePage(page: Page, secrets: readonly string[]): Promise<PageEvidence> {
  const [title, screenshot] = await Promise.all([
    within(pageMillisecondsMax, page.title(), ''),
    within(
      pageMillisecondsMax,
      findCovered(page, secrets).then((mask) =>
        page.screenshot({ type: 'jpeg', quality: 80, timeout: pageMillisecondsMax, mask }),
      ),
      undefined,
    ),
  ])
  return { url: page.url(), title, screenshot }
}

/** Password fields, whose text sites can show, and elements that have a secret as their text or value. */
async function findCovered(page: Page, secrets: readonly string[]): Promise<Locator[]> {
  const covered = page.frames().map(async (frame) => {
    const fields = frame.locator('input, textarea')
    const read = () =>
      fields.evaluateAll(valuesOf).catch((error: unknown) => {
        // It is in no picture any more. Otherwise, there is no picture.
        if (frame.isDetached()) return []
        throw error
      })
    const values = secrets.length === 0 ? [] : await read()
    const shown = [...values.entries()].filter(([, value]) => secrets.some((secret) => value.includes(secret)))
    return [
      frame.locator(passwordFields),
      ...shown.map(([index]) => fields.nth(index)),
      ...secrets.map((secret) => frame.getByText(secret)),
    ]
  })
  return (await Promise.all(covered)).flat()
}

/** Runs in the page. */
function valuesOf(fields: readonly unknown[]): string[] {
  return fields.map((field) => String((field as { value: string }).value))
}

/** Cookies, local storage and IndexedDB of all origins, and session storage of the open pages. */
async function readStored(context: BrowserContext): Promise<unknown[]> {
  // Also in frames, whose origins may differ.
  const frames = context.pages().flatMap((page) => page.frames())
  const sessions = frames.map((frame) => frame.evaluate(sessionValues).catch(() => []))
  return Promise.all([context.storageState({ indexedDB: true }), ...sessions])
}

/** Runs in the page. Some documents, such as `data:` URLs, have no storage. */
function sessionValues(): string[] {
  try {
    return Object.values((globalThis as unknown as { sessionStorage: Record<string, string> }).sessionStorage)
  } catch {
    return []
  }
}

/** Resolves with `otherwise` if the promise rejects or takes longer. */
async function within<Value, Otherwise>(
  milliseconds: number,
  promise: Promise<Value>,
  otherwise: Otherwise,
): Promise<Value | Otherwise> {
  const timeout = new AbortController()
  const late = delay(milliseconds, otherwise, { signal: timeout.signal }).catch(() => otherwise)
  try {
    return await Promise.race([promise.catch(() => otherwise), late])
  } finally {
    timeout.abort()
  }
}

async function readAll(file: FileHandle, bytes: number): Promise<Uint8Array> {
  const content = new Uint8Array(bytes)
  await file.read(content, 0, bytes, 0)
  return content
}

// The requests of a browser context, as the network events of a Playwright trace without headers and bodies.

/** The last requests. */
const requestsMax = 1000
/** Longer addresses are kept without their query. */
const urlLengthMax = 4096
/** Sites decide how long these are. */
const headerLengthMax = 256

interface RecordedRequest {
  method: string
  url: string
  resourceType: string
  mediaType: string
  /** Wall-clock time in milliseconds. */
  startedAt: number
  /** Milliseconds until the headers of the response; -1 without one. */
  duration: number
  status: number
  statusText: string
  failure: string | undefined
}

class RecordedRequests {
  readonly #context: BrowserContext
  readonly #recorded: RecordedRequest[] = []
  readonly #byRequest = new WeakMap<Request, RecordedRequest>()
  readonly #onResponse = (response: Response) => this.#add(response.request(), response)
  readonly #onFailed = (request: Request) => this.#fail(request)

  /** Records until `stop`. */
  constructor(context: BrowserContext) {
    this.#context = context
    context.on('response', this.#onResponse)
    context.on('requestfailed', this.#onFailed)
  }

  stop(): void {
    this.#context.off('response', this.#onResponse)
    this.#context.off('requestfailed', this.#onFailed)
  }

  /** Events as Playwright's tracing writes them. Their times are wall-clock times. */
  toEvents(): Json[] {
    return this.#recorded.slice(-requestsMax).map((each) => ({ type: 'resource-snapshot', snapshot: toEntry(each) }))
  }

  #add(request: Request, response?: Response): RecordedRequest {
    const { startTime, responseStart } = request.timing()
    const url = request.url()
    const recorded = {
      method: request.method(),
      url: url.length > urlLengthMax ? url.replace(/[?#].*$/s, '').slice(0, urlLengthMax) : url,
      resourceType: request.resourceType(),
      mediaType: (response?.headers()['content-type'] ?? 'x-unknown').slice(0, headerLengthMax),
      startedAt: startTime > 0 ? startTime : Date.now(),
      duration: responseStart,
      status: response?.status() ?? -1,
      statusText: (response?.statusText() ?? '').slice(0, headerLengthMax),
      failure: undefined,
    }
    this.#recorded.push(recorded)
    if (this.#recorded.length >= 2 * requestsMax) this.#recorded.splice(0, requestsMax)
    this.#byRequest.set(request, recorded)
    return recorded
  }

  /** A request may fail after the headers of its response. */
  #fail(request: Request): void {
    const recorded = this.#byRequest.get(request) ?? this.#add(request)
    recorded.failure = request.failure()?.errorText ?? 'failed'
  }
}

/** An entry of an HTTP Archive, with the members that Playwright adds. */
function toEntry(recorded: RecordedRequest): Json {
  const { method, url, status, statusText, mediaType, startedAt, duration, failure, resourceType } = recorded
  const unknownSizes = { headersSize: -1, bodySize: -1 }
  const queryString = URL.canParse(url) ? [...new URL(url).searchParams].map(([name, value]) => ({ name, value })) : []
  const none = { httpVersion: '', cookies: [], headers: [], ...unknownSizes }
  return {
    startedDateTime: new Date(startedAt).toISOString(),
    time: duration,
    request: { method, url, queryString, ...none },
    response: {
      status,
      statusText,
      content: { size: -1, mimeType: mediaType },
      redirectURL: '',
      ...none,
      ...(failure !== undefined && { _failureText: failure }),
    },
    cache: {},
    timings: { send: -1, wait: duration, receive: -1 },
    _resourceType: resourceType,
    _monotonicTime: startedAt,
  }
}
