/**
 * Calls of a worker to the service over kept-alive connections. Fetch takes three times as much CPU time for each, which
 * would be most of what a short run costs the worker.
 */
import { Agent, type ClientRequest, type IncomingMessage, request as sendHttp } from 'node:http'
import { request as sendHttps, Agent as TlsAgent } from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { executionV1Operations } from '../../../generated/execution.v1/client.ts'
import type { ExecutionClient } from '../../client/clients.ts'
import { networkFailure, type Problem, problemFrom, timedOut } from '../../client/problem.ts'

/** Operations with a JSON body or none, and a JSON response or none. */
const operations = [
  'registerWorker',
  'claimRuns',
  'getAttemptBrowserContext',
  'renewLeases',
  'getLiveViews',
  'updateLiveView',
  'putRunStep',
  'appendRunEvents',
  'putAttemptArtifact',
  'completeAttempt',
  'suspendAttempt',
  'handBackAttempt',
] as const

export type WorkerCalls = Pick<ExecutionClient, (typeof operations)[number]>

interface CallsOptions {
  baseUrl: string
  apiKey: string
  log: Pick<Logger, 'warn'>
  /** Called when the service refuses the API key: no call will succeed any more. */
  onRefused(error: Problem): void
}

interface Call {
  params: { path: Record<string, string | number>; query?: Record<string, string | number | readonly string[]> }
  body?: unknown
  signal?: AbortSignal | null
  timeoutSeconds?: number
  /** By default without limit: the answer to a report says when the lease is over. */
  retries?: number
}

interface Answer {
  data?: unknown
  error?: Problem
}

const timeoutSeconds = 30
/** Before the first repetition. It doubles each time. */
const pauseSeconds = { min: 0.5, max: 30 }
/** Other refusals are final. Each call of a worker may be repeated. */
const repeatedStatuses = new Set([0, 408, 429, 500, 502, 503, 504])

/** The key was deleted, has expired, lacks the scope, or is restricted to other workflows. */
const refusingStatuses = new Set([401, 403])

export function createWorkerCalls(options: CallsOptions): WorkerCalls {
  const connection = new Connection(options)
  const calls = operations.map((id) => {
    const { method, path } = executionV1Operations.operations[id]
    const log = (error: Problem) => {
      options.log.warn({ operation: id, status: error.status, detail: error.detail }, 'call failed; retrying')
    }
    const send = async (call: Call) => {
      const answer = await connection.send(method, fill(path, call), call)
      if (answer.error && refusingStatuses.has(answer.error.status)) options.onRefused(answer.error)
      return answer
    }
    return [id, (call: Call) => repeat(call, () => send(call), log)]
  })
  return Object.fromEntries(calls) as WorkerCalls
}

function fill(template: string, { params: { path, query = {} } }: Call): string {
  const pairs = Object.entries(query).flatMap(([name, value]) => [value].flat().map((each) => [name, String(each)]))
  const search = pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`
  return template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(path[name]))) + search
}

async function repeat(
  { retries = Number.POSITIVE_INFINITY, signal }: Call,
  send: () => Promise<Answer>,
  log: (error: Problem) => void,
): Promise<Answer> {
  for (let failures = 1; ; failures += 1) {
    const answer = await send()
    const { error } = answer
    if (!error || failures > retries || !repeatedStatuses.has(error.status)) return answer
    if (signal?.aborted) return answer
    log(error)
    const longest = Math.min(pauseSeconds.min * 2 ** (failures - 1), pauseSeconds.max)
    const seconds = (error.retryAfterSeconds ?? 0) + longest * (1 - Math.random() / 2)
    await delay(seconds * 1000)
  }
}

class Connection {
  readonly #url: URL
  readonly #send: typeof sendHttp
  readonly #agent: Agent
  readonly #headers: Record<string, string>

  constructor({ baseUrl, apiKey }: CallsOptions) {
    this.#url = new URL(baseUrl)
    const isTls = this.#url.protocol === 'https:'
    this.#send = isTls ? sendHttps : sendHttp
    this.#agent = isTls ? new TlsAgent({ keepAlive: true }) : new Agent({ keepAlive: true })
    this.#headers = executionV1Operations.credential(apiKey)
  }

  /** Sends the call once. Every failure is an answer. */
  send(
    method: string,
    path: string,
    { body, signal, timeoutSeconds: seconds = timeoutSeconds }: Call,
  ): Promise<Answer> {
    const url = new URL(this.#url.pathname.replace(/\/$/, '') + path, this.#url)
    return new Promise((resolve) => {
      const fail = (cause: unknown) => resolve({ error: networkFailure(method, url.href, cause) })
      if (signal?.aborted) return fail(signal.reason)
      const content = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
      const headers = {
        ...this.#headers,
        ...(content && { 'Content-Type': 'application/json', 'Content-Length': content.length }),
      }
      const request: ClientRequest = this.#send(url, { method, agent: this.#agent, headers, ...(signal && { signal }) })
      const timer = setTimeout(() => {
        resolve({ error: timedOut(`${method} ${url.href} got no response within ${seconds} s.`) })
        request.destroy()
      }, seconds * 1000)
      request.once('close', () => clearTimeout(timer))
      request.on('error', fail)
      request.once('response', (response) => read(response).then(resolve, fail))
      request.end(content)
    })
  }
}

async function read(response: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = []
  await new Promise<void>((resolve, reject) => {
    response.on('data', (chunk: Buffer) => chunks.push(chunk))
    response.once('end', resolve)
    // `close` without `end`, when the connection breaks.
    response.once('error', reject)
  })
  const text = Buffer.concat(chunks).toString()
  const { statusCode: status = 0 } = response
  if (status < 300) return { data: text === '' ? undefined : JSON.parse(text) }
  const headers = new Headers(
    Object.entries(response.headers).map(([name, value]): [string, string] => [name, String(value)]),
  )
  return { error: problemFrom(new Response(null, { status, headers }), parse(text)) }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
