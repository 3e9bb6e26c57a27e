/**
 * A key's value and a secret variable never appear in a file of the data directory, a log line, a response or a metric,
 * except where they must.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { findCanaries } from '../support/canaries.ts'
import { newInstallation, type ServiceProcess } from '../support/installation.ts'
import { removeDirectory, type Storage, temporaryDirectory, usesPostgres } from '../support/service-storage.ts'
import { type RawRequest, sendRaw } from './raw-http.ts'

/** A service and a worker that log at every level. */
async function startTalkativeService() {
  const installation = await newInstallation({ LOG_LEVEL: 'trace' })
  onTestFinished(installation.remove)
  return { ...installation, service: await installation.start() }
}

/** Everything that the service has written, or returns without an API key. */
async function everywhere(
  contents: Storage['contents'],
  service: ServiceProcess,
): Promise<[string, Buffer | string][]> {
  const metrics = await sendRaw(service.managementUrl, { method: 'GET', path: '/metrics' })
  return [...(await contents()), ['the log', service.output()], ['the metrics', metrics.text]]
}

test("a key's value appears only in the response that creates it", async () => {
  const { contents, service, runCommand: command } = await startTalkativeService()
  const { value, id } = JSON.parse((await command('keys', 'create', '--name', 'canary', '--json')).stdout)

  const responses: string[] = []
  const call = async (url: string, request: RawRequest) => {
    const { status, headers, text } = await sendRaw(url, request)
    responses.push(JSON.stringify([status, headers, text]))
    return status
  }
  const bearer = ['Authorization', `Bearer ${value}`]
  const json = ['Content-Type', 'application/json']
  const execution = (method: string, path: string, headers: string[] = bearer, body?: string) =>
    call(service.executionUrl, { method, path, headers, ...(body !== undefined && { body }) })

  expect(await execution('GET', '/v1/execution/runs')).toBe(200)
  expect(await execution('GET', '/alpha/browser-contexts')).toBe(404)
  expect(await execution('GET', '/v1/execution/runs', ['x-service-api-key', value])).toBe(401)
  expect(await execution('GET', '/v1/execution/runs', [...bearer, ...bearer])).toBe(401)
  expect(await execution('GET', '/v1/execution/runs', ['Authorization', `Basic ${btoa(value)}`])).toBe(401)
  expect(await execution('GET', `/v1/execution/runs?access_token=${value}`)).toBe(400)
  expect(await execution('GET', `/v1/execution/runs?cursor=${value}`)).toBe(400)
  expect(await execution('GET', `/v1/execution/runs/${value}`)).toBe(404)
  expect(await execution('GET', `/v1/execution/workflows/${value}`)).toBe(404)
  expect(await execution('GET', `/${value}`)).toBe(404)
  expect(await execution('DELETE', '/v1/execution/runs', [...bearer, 'Accept', value])).toBe(405)
  const queue = '/v1/execution/queue-remote/greet'
  expect(
    await execution(
      'PUT',
      queue,
      [...bearer, ...json],
      `{"variableData":{"name":7,"${value}":"${value}"}}`.slice(0, -1),
    ),
  ).toBe(400)
  expect(await execution('PUT', queue, [...bearer, 'Content-Type', value], '{}')).toBe(415)
  expect(
    await execution('PUT', queue, [...bearer, ...json, 'Idempotency-Key', 'a b'], '{"variableData":{"name":"Ada"}}'),
  ).toBe(400)
  expect(
    await execution('PUT', queue, [...bearer, ...json, 'Prefer', 'wait=30'], '{"variableData":{"name":"Ada"}}'),
  ).toBe(200)
  expect(
    await call(service.browserContextUrl, {
      method: 'POST',
      path: '/alpha/browser-contexts',
      headers: ['x-service-api-key', value],
    }),
  ).toBe(201)
  const printed = [await command('keys', 'list'), await command('keys', 'list', '--json')]
  expect(findCanaries(await everywhere(contents, service), [value])).toEqual([])
  // The stored prefix shows that the search finds what is there.
  expect(findCanaries(await contents(), [value.slice(0, 8)])).not.toEqual([])

  printed.push(await command('keys', 'delete', id))
  expect(await execution('GET', '/v1/execution/runs')).toBe(401)
  expect(findCanaries(await everywhere(contents, service), [value])).toEqual([])
  await service.stop()
  expect(findCanaries([...(await contents()), ['the log', service.output()]], [value])).toEqual([])
  const outputs = [...responses, ...printed.map(({ stdout, stderr }) => stdout + stderr)]
  expect(outputs.filter((text) => findCanaries([['', text]], [value]).length > 0)).toEqual([])
})

test('a secret variable reaches its workflow and appears nowhere else', async () => {
  const { contents, service, createAccount } = await startTalkativeService()
  const { key } = await createAccount()
  const token = 'canary "one" \\ ä'
  const other = 'canary-two-7f3a'
  const secrets = [token, other]

  const responses: string[] = []
  const call = async (method: string, path: string, body?: unknown, headers: string[] = []) => {
    const all = ['Authorization', `Bearer ${key}`, 'Content-Type', 'application/json', ...headers]
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const response = await sendRaw(service.executionUrl, {
      method,
      path,
      headers: all,
      ...(body !== undefined && { body: text }),
    })
    responses.push(response.text)
    return response
  }
  const betray = (fails: boolean) => ({ variableData: { token, nested: { token: other }, fails } })
  const queue = '/v1/execution/queue-remote/betray'
  const wait = ['Prefer', 'wait=30']

  const succeeded = JSON.parse((await call('PUT', queue, betray(false), wait)).text)
  expect(succeeded.status).toBe('succeeded')
  const message = 'The secrets are ******** and ********.'
  expect(succeeded.output).toEqual({ said: message, [message]: [message] })
  const failed = JSON.parse((await call('PUT', queue, betray(true), wait)).text)
  expect(failed).toMatchObject({ status: 'failed', error: { message: message } })
  for (const { id } of [succeeded, failed]) {
    expect((await call('GET', `/v1/execution/runs/${id}/events`)).text).toContain(message)
    await call('GET', `/v1/execution/runs/${id}`)
  }

  const later = JSON.parse(
    (await call('PUT', `${queue}?delaySeconds=3600`, betray(false), ['Idempotency-Key', 'once'])).text,
  )
  expect((await call('PUT', `${queue}?delaySeconds=60`, betray(false), ['Idempotency-Key', 'once'])).status).toBe(409)
  expect(findCanaries(await everywhere(contents, service), secrets)).toEqual([])
  await call('POST', `/v1/execution/runs/${later.id}/cancel`)

  expect((await call('PUT', queue, { variableData: { token: [token], fails: other } })).status).toBe(400)
  expect(
    (await call('PUT', queue, { variableData: { ...betray(true).variableData, token: 7, colour: token } })).status,
  ).toBe(400)
  expect((await call('PUT', queue, JSON.stringify(betray(true)).slice(0, -1))).status).toBe(400)
  expect((await call('PUT', queue, token)).status).toBe(400)
  expect((await call('PUT', '/v1/execution/queue-remote/no-such-workflow', betray(true))).status).toBe(404)
  await call('GET', '/v1/execution/runs')

  expect(findCanaries(await everywhere(contents, service), secrets)).toEqual([])
  await service.stop()
  expect(findCanaries([...(await contents()), ['the log', service.output()]], secrets)).toEqual([])
  expect(responses.filter((text) => findCanaries([['', text]], secrets).length > 0)).toEqual([])
})

test('a secret of an account reaches its workflow and appears nowhere else, backups included', async () => {
  const WORKFLOWS_DIR = fileURLToPath(new URL('declaring-workflows', import.meta.url))
  const installation = await newInstallation({ LOG_LEVEL: 'trace', WORKFLOWS_DIR })
  onTestFinished(installation.remove)
  const service = await installation.start()
  const { key } = await installation.createAccount()
  const secret = 'canary-5b1f0d8a6de21c0a'
  const responses: string[] = []
  const call = async (method: string, path: string, body?: unknown) => {
    const headers = ['Authorization', `Bearer ${key}`, 'Content-Type', 'application/json', 'Prefer', 'wait=30']
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const response = await sendRaw(service.executionUrl, { method, path, headers, ...sent })
    responses.push(JSON.stringify([response.status, response.headers, response.text]))
    return response
  }
  expect((await call('PUT', '/v1/execution/secrets/SHOP_TOKEN', { value: secret })).status).toBe(200)
  expect((await call('PUT', '/v1/execution/settings/SHOP_URL', { value: 'https://shop.example.com' })).status).toBe(200)
  for (const fails of [false, true]) {
    const run = JSON.parse((await call('PUT', '/v1/execution/queue-remote/shop', { variableData: { fails } })).text)
    expect(run.status).toBe(fails ? 'failed' : 'succeeded')
    expect((await call('GET', `/v1/execution/runs/${run.id}/events`)).text).toContain('The token is ********.')
  }
  expect((await call('PUT', '/v1/execution/secrets/SHOP_TOKEN', { value: secret, colour: secret })).status).toBe(400)
  await call('GET', '/v1/execution/secrets')
  await call('GET', '/v1/execution/openapi.json')
  const everything = await everywhere(installation.contents, service)
  expect(findCanaries(everything, [secret])).toEqual([])
  if (!usesPostgres) {
    const directory = temporaryDirectory()
    onTestFinished(() => removeDirectory(directory))
    const file = join(directory, 'backup.db')
    expect((await installation.runCommand('backup', file)).code).toBe(0)
    const backup = readFileSync(file)
    expect(findCanaries([['the backup', backup]], [secret])).toEqual([])
    // What is there is found.
    expect(findCanaries([['the backup', backup]], ['SHOP_TOKEN'])).not.toEqual([])
  }
  expect((await call('DELETE', '/v1/execution/secrets/SHOP_TOKEN')).status).toBe(204)
  await service.stop()
  expect(findCanaries([...(await installation.contents()), ['the log', service.output()]], [secret])).toEqual([])
  expect(responses.filter((text) => findCanaries([['', text]], [secret]).length > 0)).toEqual([])
})
