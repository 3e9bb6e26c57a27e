/** nginx and Caddy with the samples of the guide, in front of two processes of which one is killed again and again. */
import { spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, request as forward, type IncomingMessage } from 'node:http'
import { Agent, type RequestOptions, request } from 'node:https'
import { join } from 'node:path'
import { json, text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import { fileIn } from '../e2e/caller.ts'
import { freePort } from '../support/free-port.ts'
import { type Installation, newInstallation, waitForExit } from '../support/installation.ts'
import { openAdministration, removeDirectory, temporaryDirectory, until } from '../support/service.ts'

const guide = readFileSync('docs/guides/reverse-proxies.md', 'utf8')
/** The first block of a section. */
const blockOf = (section: string) => new RegExp(`^## ${section}\n.*?^\`\`\`\n(.*?)^\`\`\``, 'ms').exec(guide)?.[1] ?? ''

/** Programs that read the sample of the guide; `configure` adds what Debian's packages add, and a certificate. */
const proxies = {
  nginx: {
    sample: blockOf('nginx').replace(/^server \{\n {2}listen 80;.*?^\}/ms, ''),
    configure: (site: string, { port, directory, certificate, key }: Place) =>
      `daemon off; user root; pid ${directory}/pid; error_log ${directory}/errors;
      events {} http { access_log off; client_body_temp_path ${directory}/body; proxy_temp_path ${directory}/proxy;
      fastcgi_temp_path ${directory}/fastcgi; uwsgi_temp_path ${directory}/uwsgi; scgi_temp_path ${directory}/scgi;
      ${site
        .replace('listen 443', `listen 127.0.0.1:${port}`)
        .replace(/ssl_certificate .*;/, `ssl_certificate ${certificate};`)
        .replace(/ssl_certificate_key .*;/, `ssl_certificate_key ${key};`)} }`,
    command: (file: string) => ['nginx', '-c', file],
  },
  caddy: {
    sample: blockOf('Caddy'),
    configure: (site: string, { port, certificate, key }: Place) =>
      `{\n admin off\n auto_https off\n default_bind 127.0.0.1\n https_port ${port}\n}\n${site.replaceAll(
        /^(\w+\.example\.com) \{$/gm,
        `$1 {\n  tls ${certificate} ${key}`,
      )}`,
    command: (file: string) => ['caddy', 'run', '--adapter', 'caddyfile', '--config', file],
  },
}
type ProxyName = keyof typeof proxies

const isInstalled = (name: string) => spawnSync(name, ['-v'], { stdio: 'ignore' }).error === undefined

interface Place {
  port: number
  directory: string
  certificate: string
  key: string
}

/** Of both processes, which differ by their addresses as two machines do. */
const ports = { dashboard: 0, execution: 0, contexts: 0, management: 0 }
const addresses = ['127.0.0.5', '127.0.0.6'] as const

let installation: Installation
let apiKey: string
const directory = temporaryDirectory()
const certificate = join(directory, 'certificate.pem')
const key = join(directory, 'key.pem')

const startAt = (HOST: string) => installation.startOnly('execution', { HOST })

beforeAll(async () => {
  for (const name of Object.keys(ports) as (keyof typeof ports)[]) ports[name] = await freePort()
  const names = [
    '-subj',
    '/CN=test',
    '-addext',
    'subjectAltName=DNS:api.example.com,DNS:runs.example.com,DNS:contexts.example.com',
    '-keyout',
    key,
    '-out',
    certificate,
  ]
  expect(spawnSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...names]).status).toBe(0)
  installation = await newInstallation({
    ...{ EXECUTION_PORT: String(ports.execution), MANAGEMENT_PORT: String(ports.management) },
    ...{ EXECUTION_URL: 'https://api.example.com', PROXY_HOPS: '1', RATE_LIMIT_PER_MINUTE: '0', QUEUED_RUNS_MAX: '0' },
  })
  apiKey = (await installation.createAccount()).key
  await startAt(addresses[0])
})
afterAll(async () => {
  await installation.remove()
  removeDirectory(directory)
})

interface Front {
  send(options: RequestOptions, body?: string): Promise<IncomingMessage>
  stop(): Promise<unknown>
}

async function startProxy(name: ProxyName, change = (sample: string) => sample): Promise<Front> {
  const { sample, configure, command } = proxies[name]
  const place = { port: await freePort(), directory, certificate, key }
  const site = change(sample)
    .replaceAll('10.0.0.5', addresses[0])
    .replaceAll('10.0.0.6', addresses[1])
    .replaceAll(/\b300([0-3])\b/g, (_, index) => String(Object.values(ports)[index]))
  const file = join(directory, name)
  writeFileSync(file, configure(site, place))
  const [program = '', ...args] = command(file)
  const child = spawn(program, args, { env: { PATH: process.env.PATH, HOME: directory }, stdio: 'ignore' })
  const ended = waitForExit(child)
  const agent = new Agent({ keepAlive: true })
  const send = ({ headers, ...options }: RequestOptions, body?: string) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const own = { Host: 'api.example.com', Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' }
      const all = { ...options, headers: { ...own, ...headers }, agent, host: '127.0.0.1', port: place.port }
      const at = { servername: 'api.example.com', ca: readFileSync(certificate), localAddress: '127.0.0.2' }
      request({ ...at, ...all }, resolve)
        .once('error', reject)
        .end(body)
    })
  const isServing = () => send({ path: '/v1/execution/runs?limit=1' }).then(consume, () => 0)
  await until(`${name} serves`, async () => (await isServing()) === 200)
  const stop = () => {
    agent.destroy()
    child.kill('SIGTERM')
    return ended
  }
  return { send, stop }
}

async function consume(response: IncomingMessage): Promise<number> {
  await text(response)
  return response.statusCode ?? 0
}

/** Queues a run with a name of its own. Returns the status; 0 for no response. */
function queue(front: Front, name: string, headers: Record<string, string> = {}): Promise<number> {
  const body = JSON.stringify({ variableData: { name } })
  return front.send({ method: 'PUT', path: '/v1/execution/queue-remote/greet', headers }, body).then(consume, () => 0)
}

async function readStore<Row extends object>(sql: string): Promise<Row[]> {
  const { store, close } = await openAdministration(readConfig(installation.settings))
  return store.read.all<Row>(sql, []).finally(close)
}

/** The addresses from which the service thinks that the key was used. */
async function callersOfKey(): Promise<string[]> {
  const rows = await readStore<{ address: string | null }>('SELECT last_used_by AS address FROM api_keys')
  return rows.flatMap(({ address }) => address ?? [])
}

/** How many runs there are of each name that begins so. */
async function countRuns(prefix: string): Promise<Map<string, number>> {
  const rows = await readStore<{ variables: string }>('SELECT variables FROM runs')
  const names = rows.map(({ variables }) => JSON.parse(variables).name).filter((name) => name?.startsWith(prefix))
  return names.reduce((counts, name) => counts.set(name, (counts.get(name) ?? 0) + 1), new Map<string, number>())
}

/** A process that dies when it has stored a run and not answered yet. Health checks still find it. */
async function startDying() {
  const health = createServer((_, response) => void response.end())
  const dying = createServer((incoming, outgoing) => {
    const { method, url: path, headers } = incoming
    const passed = forward({ host: addresses[0], port: ports.execution, method, path, headers }, (response) => {
      response.resume().once('end', () => {
        if (method === 'PUT') outgoing.destroy()
        else outgoing.end()
      })
    })
    incoming.pipe(passed)
  })
  await Promise.all([
    new Promise<void>((resolve) => void dying.listen(ports.execution, addresses[1], resolve)),
    new Promise<void>((resolve) => void health.listen(ports.management, addresses[1], resolve)),
  ])
  return () => {
    for (const server of [health, dying]) {
      server.closeAllConnections()
      server.close()
    }
  }
}

/** The sample for one machine. */
const alone = (sample: string) => sample.replaceAll(/^ *server 10\.0\.0\.6.*\n| 10\.0\.0\.6:\d+/gm, '')

describe.each(Object.keys(proxies) as ProxyName[])('%s', (name) => {
  const it = test.skipIf(!isInstalled(name))

  it('passes on streams as they are, waits as callers do, and names the caller', async (context) => {
    const front = await startProxy(name, alone)
    const worker = await installation.startOnly('worker', { EXECUTION_PORT: '0', MANAGEMENT_PORT: '0' })
    context.onTestFinished(async () => void (await Promise.all([front.stop(), worker.killAll()])))
    const { file, release } = fileIn(installation)
    const body = JSON.stringify({ variableData: { file } })
    const queued = await front.send({ method: 'PUT', path: '/v1/execution/queue-remote/hold' }, body)
    const { id } = (await json(queued)) as { id: string }
    const stream = await front.send({
      path: `/v1/execution/runs/${id}/events`,
      headers: { Accept: 'text/event-stream' },
    })
    let events = ''
    for await (const part of stream) {
      events += part
      // The run goes on only because this has arrived.
      if (events.includes('Holding')) release()
    }
    expect(events).toContain('Released')
    const waiting = { Prefer: 'wait=30' }
    expect(await queue(front, `${name}-wait`, waiting)).toBe(200)
    await until('the use of the key is recorded', async () => (await callersOfKey()).length > 0)
    expect(await callersOfKey()).toEqual(['127.0.0.2'])
  })

  it('sends a call whose process died to no other one', async (context) => {
    context.onTestFinished(await startDying())
    const front = await startProxy(name)
    context.onTestFinished(async () => void (await front.stop()))
    const calls = Array.from({ length: 16 }, (_, index) => queue(front, `${name}-dying-${index}`))
    const statuses = await Promise.all(calls)
    expect(new Set(statuses)).toEqual(new Set([202, 502]))
    expect([...(await countRuns(`${name}-dying`)).values()]).toEqual(Array(calls.length).fill(1))
  })

  it('gives each call one run while a process is killed, with and without keys', async (context) => {
    let killed = await startAt(addresses[1])
    const front = await startProxy(name)
    context.onTestFinished(async () => void (await Promise.all([front.stop(), killed.killAll()])))
    const acknowledged: string[] = []
    let isOver = false
    const caller = async (withKey: boolean, index: number) => {
      for (let count = 0; !isOver; count += 1) {
        const run = `${name}-${withKey ? 'key' : 'none'}-${index}-${count}`
        const headers: Record<string, string> = withKey ? { 'Idempotency-Key': randomUUID() } : {}
        let status = await queue(front, run, headers)
        while (withKey && ![200, 202].includes(status)) status = await queue(front, run, headers)
        if (status === 202 || status === 200) acknowledged.push(run)
      }
    }
    const callers = [true, false].flatMap((withKey) => [1, 2, 3, 4].map((index) => caller(withKey, index)))
    const more = (count: number, wanted = acknowledged.length + count) =>
      until(`${count} more calls are acknowledged`, () => acknowledged.length >= wanted)
    for (let kill = 0; kill < 4; kill += 1) {
      await more(100)
      await killed.killAll()
      await more(50)
      killed = await startAt(addresses[1])
    }
    isOver = true
    await Promise.all(callers)
    const counts = await countRuns(`${name}-`)
    expect(acknowledged.filter((run) => counts.get(run) !== 1)).toEqual([])
    expect([...counts].filter(([, count]) => count !== 1)).toEqual([])
  })
})

test.skipIf(!isInstalled('nginx'))(
  'without the lines of the sample, nginx makes two runs of one call',
  async (context) => {
    context.onTestFinished(await startDying())
    const front = await startProxy('nginx', (sample) =>
      sample.replaceAll(/^ *(proxy_next_upstream|proxy_request_buffering) off;$/gm, ''),
    )
    context.onTestFinished(async () => void (await front.stop()))
    await Promise.all([1, 2, 3, 4].map((index) => queue(front, `stock-${index}`)))
    expect([...(await countRuns('stock')).values()]).toContain(2)
  },
)
