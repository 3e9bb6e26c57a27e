/** A stopping service serves requests while /readyz returns 503. */
import { Agent, get, type IncomingMessage } from 'node:http'
import { expect, test } from 'vitest'
import { until } from '../support/service.ts'
import { clientOf, fileIn, ownInstallation, queue, untilStatus } from './caller.ts'

test('a stopping service serves for DRAIN_SECONDS after /readyz returns 503, and closes connections', async (context) => {
  const installation = await ownInstallation(context, { DRAIN_SECONDS: '10' })
  const service = await installation.start('service ready')
  const { key } = await installation.createAccount()
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  context.onTestFinished(() => agent.destroy())
  const ask = () =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const url = `${service.executionUrl}/v1/execution/runs`
      get(url, { agent, headers: { authorization: `Bearer ${key}` } }, (response) => resolve(response.resume())).on(
        'error',
        reject,
      )
    })
  expect((await ask()).headers.connection).toBe('keep-alive')
  const { file, release } = fileIn(installation)
  const held = await queue(clientOf(service, key), 'hold', { file })
  await untilStatus(clientOf(service, key), held.run, 'running')
  const ended = service.stop()
  await until('it is not ready', async () => (await fetch(`${service.managementUrl}/readyz`)).status === 503)
  const drained = await ask()
  expect(drained.statusCode).toBe(200)
  expect(drained.headers.connection).toBe('close')
  const { response } = await queue(clientOf(service, key), 'greet', { name: 'Ada' })
  expect(response.status).toBe(202)
  // The worker's metrics, which are available while it has a run.
  expect(await (await fetch(`${service.managementUrl}/metrics`)).text()).toContain('process="worker"')
  release()
  expect(await ended).toEqual({ code: 0, signal: null })
})
