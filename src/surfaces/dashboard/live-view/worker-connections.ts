/**
 * Where workers send what a watched browser shows: a request for each frame, and one that stays open while someone
 * watches. They need no session, but a token that belongs to the view and the attempt.
 */
import express, { type Request, type RequestHandler, Router } from 'express'
import type { LiveViewHub, Received } from './live-view-hub.ts'

/** A frame has at most 1.5 MB. */
const bodyBytesMax = 2 * 1024 * 1024
/** Shorter than the time after which proxies close a quiet connection. */
const holdMilliseconds = 15_000
/** From the response to one of a worker's waiting requests to the next one. */
const gapMilliseconds = 5000

export function workerConnections(hub: LiveViewHub): Router {
  /** By view and attempt: an earlier attempt's connection may still be open. */
  const gaps = new Map<string, NodeJS.Timeout>()
  const requireToken: RequestHandler = (request, response, next) => {
    const { id, attempt } = read(request)
    const token = /^Bearer ([\w-]+)$/.exec(request.get('Authorization') ?? '')?.[1] ?? ''
    const admitted = Number.isSafeInteger(attempt) && hub.admits(id, attempt, token)
    if (admitted) return next()
    response.status(admitted === undefined ? 410 : 401).end()
  }
  const wait: RequestHandler = async (request, response) => {
    const { id, attempt } = read(request)
    const connection = `${id}/${attempt}`
    clearTimeout(gaps.get(connection))
    gaps.delete(connection)
    const lost = new AbortController()
    response.once('close', () => lost.abort())
    const stopping: AbortSignal[] = [request.app.locals.stopping ?? []].flat()
    const ended = AbortSignal.any([lost.signal, AbortSignal.timeout(holdMilliseconds), ...stopping])
    const next = await hub.nextCommands(id, ended)
    if (lost.signal.aborted) return hub.disconnect(id, attempt)
    const forget = () => {
      gaps.delete(connection)
      hub.disconnect(id, attempt)
    }
    if (!next) return void response.status(410).end()
    gaps.set(connection, setTimeout(forget, gapMilliseconds).unref())
    response.json(next)
  }
  const receive: RequestHandler = (request, response) => {
    hub.receive(read(request).id, parse(request.body))
    response.status(204).end()
  }
  const router = Router()
  const path = '/live-views/:id/attempts/:attempt'
  router.get(path, requireToken, wait)
  router.post(path, requireToken, express.json({ limit: bodyBytesMax }), receive)
  return router
}

function read({ params }: Request): { id: string; attempt: number } {
  return { id: String(params.id), attempt: Number(params.attempt) }
}

const isNumber = (value: unknown) => typeof value === 'number'

/** The worker passes on what a workflow's process has sent. */
function parse(body: unknown): Received {
  const { frame, tabs, control } = Object(body)
  const { data, width, height } = Object(frame)
  const isFrame = /^[A-Za-z0-9+/]+=*$/.test(String(data)) && isNumber(width) && isNumber(height)
  const areTabs = Array.isArray(tabs) && tabs.every((tab) => typeof Object(tab).url === 'string')
  return {
    ...(isFrame && { frame: { data, width, height } }),
    ...(typeof Object(control).phase === 'string' && { control }),
    ...(areTabs && { tabs: tabs.map(({ url, isShown }) => ({ url, isShown: isShown === true })) }),
  }
}
