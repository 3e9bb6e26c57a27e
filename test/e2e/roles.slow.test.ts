/** Processes with different roles on one store form one service. */
import { type AddressInfo, createServer } from 'node:net'
import { describe, expect, type TestContext, test } from 'vitest'
import { runCommand } from '../support/installation.ts'
import { until } from '../support/service.ts'
import { clientOf, ownInstallation, queue, untilStatus } from './caller.ts'

const statusOf = async (url: string) => (await fetch(url, { redirect: 'manual' })).status

async function takenPort({ onTestFinished }: TestContext): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return String((server.address() as AddressInfo).port)
}

describe.concurrent('--only', () => {
  test('splits the service into processes, several of which may have the same role', async (context) => {
    const installation = await ownInstallation(context)
    const [one, other, contexts, worker] = await Promise.all([
      installation.startOnly('execution'),
      installation.startOnly('execution'),
      installation.startOnly('browser-context,dashboard', { EXECUTION_URL: 'https://api.example.com' }),
      installation.startOnly('worker'),
    ])
    const { key } = await installation.createAccount()
    for (const at of [one, other]) {
      const { run } = await queue(clientOf(at, key), 'greet', { name: 'Ada' })
      await untilStatus(clientOf(at === one ? other : one, key), run, 'succeeded')
    }
    expect(await statusOf(`${contexts.browserContextUrl}/alpha/browser-contexts`)).toBe(401)
    expect(await statusOf(`${contexts.dashboardUrl}/sign-in`)).toBe(200)
    const guide = await (await fetch(`${contexts.dashboardUrl}/docs/quick-start.html`)).text()
    expect(guide).toContain('https://api.example.com')
    for (const { managementUrl } of [one, other, contexts, worker]) {
      expect(await statusOf(`${managementUrl}/livez`)).toBe(200)
      expect(await statusOf(`${managementUrl}/readyz`)).toBe(200)
      expect(await statusOf(`${managementUrl}/metrics`)).toBe(200)
    }
    for (const each of [one, other, contexts, worker]) {
      expect(await each.stop()).toEqual({ code: 0, signal: null })
    }
  })

  test('serves only its roles, and warns about unknown addresses of the others', async (context) => {
    const installation = await ownInstallation(context)
    const DASHBOARD_PORT = await takenPort(context)
    const only = await installation.startOnly('browser-context', {
      DASHBOARD_PORT,
      EXECUTION_PORT: '3901',
      DASHBOARD_URL: 'https://dashboard.example.com',
    })
    const { dashboardUrl, executionUrl, browserContextUrl } = only
    expect({ dashboardUrl, executionUrl }).toEqual({ dashboardUrl: '', executionUrl: '' })
    expect(await statusOf(`${browserContextUrl}/docs/`)).toBe(200)
    expect(only.log.map(({ msg }) => msg)).toContain(
      'EXECUTION_URL is not set, and another process serves the Execution API: links assume http://127.0.0.1:3901',
    )
    expect(only.log.filter(({ msg }) => msg.includes('PROXY_HOPS'))).toEqual([])
    expect(only.output(), 'the link is for those who have the dashboard').not.toContain('/links/')
    expect(
      only.log.some(({ msg }) => msg.includes('worker')),
      'it has no worker',
    ).toBe(false)
  })

  test('a separate worker is ready until it is stopped, and finishes or returns its runs', async (context) => {
    const installation = await ownInstallation(context, { SHUTDOWN_SECONDS: '5' })
    const [api, worker] = await Promise.all([installation.startOnly('execution'), installation.startOnly('worker')])
    const client = clientOf(api, (await installation.createAccount()).key)
    const { run } = await queue(client, 'hold', { file: `${installation.dataDirectory}/never` })
    await untilStatus(client, run, 'running')
    const ended = worker.stop()
    await until('it is not ready', async () => (await statusOf(`${worker.managementUrl}/readyz`)) === 503)
    expect(await ended).toEqual({ code: 0, signal: null })
    await untilStatus(client, run, 'queued')
  })

  test('a worker whose management port is in use ends with one sentence', async (context) => {
    const { settings } = await ownInstallation(context)
    const MANAGEMENT_PORT = await takenPort(context)
    const { code, stderr } = await runCommand(['start', '--only', 'worker'], { ...settings, MANAGEMENT_PORT })
    expect(code).toBe(1)
    expect(stderr).toBe(
      `127.0.0.1:${MANAGEMENT_PORT} is in use by another program: set MANAGEMENT_PORT to another port, or MANAGEMENT_HOST to another address.\n`,
    )
  })

  test('rejects an unknown role and lists the known ones', async () => {
    const { code, stderr } = await runCommand(['start', '--only', 'execution,cron'], {})
    expect(code).toBe(1)
    expect(stderr).toBe('Unknown role "cron" in --only. The roles are execution, browser-context, dashboard, worker.\n')
  })
})
