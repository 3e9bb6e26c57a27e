/** A real HTTP server that answers one request after the other as it is told: too late, with an error, or not at all. */
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type OutgoingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type ProblemKind, problemBody, problemKinds } from '../../src/contract/problem.ts'
import type { Test } from '../support/store.ts'

/** What the server does with one request. */
export type Act = (response: ServerResponse) => unknown

export interface Received {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: string
}

export interface ScriptedServer {
  url: string
  /** What has been asked for, in order. */
  requests: Received[]
  /** How many answers were given up by the client before they were complete. */
  readonly abandoned: number
}

/** The last act is repeated for all further requests. Stops when the test ends. */
export async function scripted(test: Test, ...acts: Act[]): Promise<ScriptedServer> {
  const requests: Received[] = []
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

export function answer(status: number, body?: unknown, headers: OutgoingHttpHeaders = {}): Act {
  const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)
  return (response) => response.writeHead(status, { 'Content-Length': Buffer.byteLength(text), ...headers }).end(text)
}

/** As the service tells of a problem. */
export function problem(kind: ProblemKind, headers: OutgoingHttpHeaders = {}): Act {
  const body = problemBody({ kind, detail: 'As the test wants it.' }, '3b8f3a52-6f0e-4d57-9e43-5b1f6a0f2c11')
  return answer(problemKinds[kind].status, body, { 'Content-Type': 'application/problem+json', ...headers })
}

/** The connection breaks without an answer. */
export const drop: Act = (response) => response.destroy()

/** The answer never comes. */
export const hang: Act = () => {}

export function late(milliseconds: number, act: Act): Act {
  return (response) => setTimeout(() => act(response), milliseconds)
}

/** Begins an event stream with these bytes, and then does `next`. */
export function stream(bytes: string | Uint8Array, next: Act): Act {
  return (response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders()
    response.write(bytes, () => next(response))
  }
}

/** The stream ends as it should. */
export const end: Act = (response) => response.end()
