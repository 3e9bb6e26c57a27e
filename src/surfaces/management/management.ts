/** The management address: is the process alive, may it be sent requests, and its metrics. No credential is asked. */
import express, { type Express } from 'express'
import { Registry } from 'prom-client'

export interface Management {
  /** For Prometheus, as text. */
  metrics(): Promise<string>
  /** @throws when the service cannot serve; the reason is not told. */
  ready(): Promise<void>
}

export function managementApp({ metrics, ready }: Management): Express {
  const app = express().disable('x-powered-by').disable('etag')
  app.enable('case sensitive routing').enable('strict routing')
  app.get('/livez', (_request, response) => void response.type('text/plain').send('alive\n'))
  app.get('/readyz', async (_request, response) => {
    const refused = await ready().then(
      () => false,
      () => true,
    )
    response
      .status(refused ? 503 : 200)
      .type('text/plain')
      .send(refused ? 'not ready\n' : 'ready\n')
  })
  app.get('/metrics', async (_request, response) => {
    response.type(Registry.PROMETHEUS_CONTENT_TYPE).send(await metrics())
  })
  app.use((_request, response) => void response.status(404).type('text/plain').send('not found\n'))
  return app
}
