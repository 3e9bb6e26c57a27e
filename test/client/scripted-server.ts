/** An HTTP server that handles one request after another by a script: late, with an error, or not at all. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type OutgoingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { problemBody, problemType } from '../../src/contract/problem.ts'
import { problemTypes } from '../../src/domain/problems.ts'
import type { Test } from '../support/domain.ts'

/** Handles one request. */
export type Act = (response: ServerResponse) => unknown

export interface ReceivedRequest {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: string
}

export interface ScriptedServer {
  url: string
  requests: ReceivedRequest[]
  /** How many responses the client aborted before they were complete. */
  readonly abandoned: number
}

/** Repeats the last act for all further requests. Stops when the test ends. */
export async function startScriptedServer(test: Test, ...acts: Act[]): Promise<ScriptedServer> {
  const requests: ReceivedRequest[] = []
  let abandoned = 0
  const server = createServer(async (request, response) => {
    const act = acts[Math.min(requests.length, acts.length - 1)]
    const { method = '', url: path = '', headers } = request
    const received = { method, path, headers, body: '' }
    requests.push(received)
    response.once('close', () => {
      if (!response.writableFinished) abandoned += 1
    })
    for await (const part of request) received.body += part
    act?.(response)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  test.onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    requests,
    get abandoned() {
      return abandoned
    },
  }
}

export function respond(status: number, body?: unknown, headers: OutgoingHttpHeaders = {}): Act {
  const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)
  return (response) => response.writeHead(status, { 'Content-Length': Buffer.byteLength(text), ...headers }).end(text)
}

/** Responds with a problem in the format of the service. */
export function problem(kind: string, headers: OutgoingHttpHeaders = {}): Act {
  const body = problemBody(problemTypes, { kind, detail: 'Scripted.' }, '3b8f3a52-6f0e-4d57-9e43-5b1f6a0f2c11')
  return respond(problemType(problemTypes, kind).status, body, {
    'Content-Type': 'application/problem+json',
    ...headers,
  })
}

/** Breaks the connection without a response. */
export const drop: Act = (response) => response.destroy()

/** Never responds. */
export const hang: Act = () => {}

export function delayed(milliseconds: number, act: Act): Act {
  return (response) => setTimeout(() => act(response), milliseconds)
}

/** Starts an event stream with these bytes, then runs `next`. */
export function stream(bytes: string | Uint8Array, next: Act): Act {
  return (response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders()
    response.write(bytes, () => next(response))
  }
}

export const end: Act = (response) => response.end()

/** Like Array.fromAsync, which the compiler's library lacks. */
export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}
