/** The requests of a browser context, as the network events of a Playwright trace without headers and bodies. */
import type { BrowserContext, Request, Response } from 'playwright-core'
import type { Json } from './trace-secrets.ts'

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

export class RecordedRequests {
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
