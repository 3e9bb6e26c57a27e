/** Measures the rate and cost of queueing runs durably, compared with servers without validation and authentication. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import autocannon from 'autocannon'
import { median, print, table } from './figures.ts'

const kinds = ['node:http', 'Express', 'service', 'service, 50 more operations']
const connectionCounts = [1, 32, 64]
const rounds = 5
const seconds = 3

interface Server {
  kind: string
  child: ChildProcess
  directory: string
  port: number
  key: string
}

interface Sample {
  rate: number
  cpuMicroseconds: number
  p99: number
}

export async function queueing(): Promise<void> {
  const servers = await Promise.all(kinds.map(open))
  try {
    for (const server of servers) await load(server, 32, 2)
    for (const connections of connectionCounts) print(await compare(servers, connections))
  } finally {
    for (const { child, directory } of servers) {
      child.kill()
      rmSync(directory, { recursive: true, force: true })
    }
  }
}

async function open(kind: string): Promise<Server> {
  const directory = mkdtempSync(join(tmpdir(), 'bench-'))
  const child = fork(new URL('./queueing-server.ts', import.meta.url).pathname, [kind, directory])
  const [{ port, key }] = await once(child, 'message')
  return { kind, child, directory, port, key }
}

/** Alternates the servers in each round, so that other load on the machine affects all of them. */
async function compare(servers: Server[], connections: number): Promise<string> {
  const samples = new Map<string, Sample[]>(servers.map(({ kind }) => [kind, []]))
  for (let round = 0; round < rounds; round += 1) {
    for (const server of servers) samples.get(server.kind)?.push(await load(server, connections, seconds))
  }
  const figure = (kind: string, member: keyof Sample) =>
    median((samples.get(kind) ?? []).map((sample) => sample[member]))
  const ratio = (kind: string, to: string) => (figure(kind, 'rate') / figure(to, 'rate')).toFixed(2)
  const rows = kinds.map((kind) => [
    kind,
    Math.round(figure(kind, 'rate')),
    ratio(kind, 'node:http'),
    ratio(kind, 'Express'),
    `${Math.round(figure(kind, 'cpuMicroseconds'))} µs`,
    `${figure(kind, 'p99').toFixed(0)} ms`,
  ])
  const head = [
    `${connections} connection${connections > 1 ? 's' : ''}`,
    '202/s',
    '÷ node:http',
    '÷ Express',
    'CPU per request',
    'p99',
  ]
  return table([head, ...rows])
}

async function load({ port, key, child }: Server, connections: number, duration: number): Promise<Sample> {
  const before = await cpu(child)
  const result = await autocannon({
    url: `http://127.0.0.1:${port}/v1/execution/queue-remote/first-line`,
    method: 'PUT',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ variableData: { note: 'a run of the benchmark' } }),
    connections,
    duration,
  })
  if (result.non2xx > 0 || result.errors > 0) throw new Error(`${result.non2xx} rejected, ${result.errors} errors`)
  const used = (await cpu(child)) - before
  return { rate: result.requests.average, cpuMicroseconds: used / result.requests.total, p99: result.latency.p99 }
}

async function cpu(child: ChildProcess): Promise<number> {
  child.send('cpu')
  const [{ cpu }] = await once(child, 'message')
  return cpu.user + cpu.system
}
