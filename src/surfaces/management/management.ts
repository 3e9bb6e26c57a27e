/** The management app: liveness, readiness and metrics, without authentication. */
import express, { type Express, type RequestHandler } from 'express'
import { Registry } from 'prom-client'
import type { Config } from '../../config/config.ts'

export interface Management {
  /** In Prometheus' text format. */
  metrics(): Promise<string>
  /** @throws if the process cannot serve requests. The response does not include the reason. */
  ready(): Promise<void>
  checkHost?: RequestHandler
  /** Further ones, of a simulator. */
  routes?: RequestHandler | undefined
}

export function managementAddress({ HOST, MANAGEMENT_HOST = HOST, MANAGEMENT_PORT: port }: Config) {
  return { host: MANAGEMENT_HOST, port, name: 'MANAGEMENT_PORT', hostName: 'MANAGEMENT_HOST' }
}

export function managementApp({ metrics, ready, checkHost, routes }: Management): Express {
  const app = express().disable('x-powered-by').disable('etag')
  app.enable('case sensitive routing').enable('strict routing')
  if (checkHost) app.use(checkHost)
  app.use((_request, response, next) => {
    response.set('X-Content-Type-Options', 'nosniff')
    next()
  })
  app.get('/livez', (_request, response) => void response.type('text/plain').send('alive\n'))
  app.get('/readyz', async (_request, response) => {
    const isReady = await ready().then(
      () => true,
      () => false,
    )
    response
      .status(isReady ? 200 : 503)
      .type('text/plain')
      .send(isReady ? 'ready\n' : 'not ready\n')
  })
  app.get('/metrics', async (_request, response) => {
    response.type(Registry.PROMETHEUS_CONTENT_TYPE).send(await metrics())
  })
  if (routes) app.use(routes)
  app.use((_request, response) => void response.status(404).type('text/plain').send('not found\n'))
  return app
}
