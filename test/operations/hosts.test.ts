/** The host names by which pages are reached (DNS rebinding), and the headers that each response has. */
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from '../support/service.ts'

let service: TestService
beforeAll(async () => {
  const settings = {
    DASHBOARD_URL: 'https://runs.example.com/',
    EXECUTION_URL: 'https://api.example.com',
    BROWSER_CONTEXT_URL: 'http://contexts.example.com:8080',
    ALLOWED_HOSTS: 'metrics.internal, Other.Example.com',
    MANAGEMENT_HOST: '127.0.0.2',
  }
  service = await startTestService({ worker: false, settings })
})
afterAll(() => service.stop())

type Place = keyof typeof paths

/** A path of each surface that is served without credentials, and without building the docs. */
const paths = {
  dashboard: '/sign-in',
  'dashboard docs': '/docs',
  execution: '/docs',
  'browser-context': '/docs',
  management: '/livez',
} as const

async function get(place: Place, host: string | undefined, path: string = paths[place]) {
  const listening = service.listening.get(place.split(' ')[0] as 'dashboard') ?? service.managementUrl
  const headers = host === undefined ? [] : ['Host', host]
  const sent = request(`${listening}${path}`, { agent: false, setHost: false, headers })
  const response = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
    sent.once('response', resolve).once('error', reject).end()
  })
  return { status: response.statusCode, headers: response.headers, text: await text(response) }
}

describe.each(Object.keys(paths) as Place[])('%s', (place) => {
  test.each([
    'evil.example',
    'evil.example:3000',
    'runs.example.com.evil.example',
    '127.0.0.1.evil.example',
    'a b',
    '',
  ])('refuses the host "%s" with 421, and says what to set', async (host) => {
    const response = await get(place, host)
    // Node itself refuses a Host that is not one.
    if (response.status === 400) return
    expect(response).toMatchObject({
      status: 421,
      text: expect.stringMatching(/^This service is not known by the host name .+ ALLOWED_HOSTS\.\n$/),
      headers: { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' },
    })
  })

  test.each([
    'runs.example.com',
    'API.example.com:443',
    'contexts.example.com.',
    'metrics.internal:3003',
    'other.example.com',
    'localhost:3000',
    'app.localhost',
    // A health check of a container or of Kubernetes.
    '10.1.2.3:3003',
    '[fd00::1]:3003',
    'api',
  ])('accepts the host "%s"', async (host) => {
    expect([200, 308]).toContain((await get(place, host)).status)
  })
})

test('an operation accepts any host: it needs a key', async () => {
  expect((await get('execution', 'evil.example', '/v1/execution/runs')).status).toBe(401)
})

test('every response says that its type is not to be guessed, and behind https asks for https', async () => {
  const secure = expect.stringMatching(/^max-age=31536000/)
  for (const [place, path, transport] of [
    ['dashboard', '/sign-in', secure],
    ['dashboard', '/assets/missing', secure],
    ['dashboard', '/docs', secure],
    ['execution', '/docs', secure],
    ['execution', '/v1/execution/runs', secure],
    ['execution', '/nowhere', secure],
    ['browser-context', '/alpha/browser-contexts', undefined],
    ['management', '/metrics', undefined],
    ['management', '/nowhere', undefined],
  ] as const) {
    const { headers } = await get(place, 'localhost', path)
    expect([path, headers['x-content-type-options']]).toEqual([path, 'nosniff'])
    expect([path, headers['strict-transport-security']]).toEqual([path, transport])
  }
})

test('the management address may be another one', () => {
  expect(new URL(service.managementUrl).hostname).toBe('127.0.0.2')
  expect(new URL(service.listening.get('dashboard') ?? '').hostname).toBe('127.0.0.1')
})
