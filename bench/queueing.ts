/** How many runs are queued durably in a second, and what each costs, beside servers that check nothing. */
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

interface Subject {
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
  const subjects = await Promise.all(kinds.map(open))
  try {
    for (const subject of subjects) await load(subject, 32, 2)
    for (const connections of connectionCounts) print(await compare(subjects, connections))
  } finally {
    for (const { child, directory } of subjects) {
      child.kill()
      rmSync(directory, { recursive: true, force: true })
    }
  }
}

async function open(kind: string): Promise<Subject> {
  const directory = mkdtempSync(join(tmpdir(), 'bench-'))
  const child = fork(new URL('./subject.ts', import.meta.url).pathname, [kind, directory])
  const [{ port, key }] = await once(child, 'message')
  return { kind, child, directory, port, key }
}

/** Subjects take turns in each round, so that what else the machine does hits all of them alike. */
async function compare(subjects: Subject[], connections: number): Promise<string> {
  const samples = new Map<string, Sample[]>(subjects.map(({ kind }) => [kind, []]))
  for (let round = 0; round < rounds; round += 1) {
    for (const subject of subjects) samples.get(subject.kind)?.push(await load(subject, connections, seconds))
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
    'CPU each',
    'p99',
  ]
  return table([head, ...rows])
}

async function load({ port, key, child }: Subject, connections: number, duration: number): Promise<Sample> {
  const before = await cpu(child)
  const result = await autocannon({
    url: `http://127.0.0.1:${port}/v1/execution/queue-remote/first-line`,
    method: 'PUT',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ variableData: { note: 'a run of the benchmark' } }),
    connections,
    duration,
  })
  if (result.non2xx > 0 || result.errors > 0) throw new Error(`${result.non2xx} refused, ${result.errors} errors`)
  const used = (await cpu(child)) - before
  return { rate: result.requests.average, cpuMicroseconds: used / result.requests.total, p99: result.latency.p99 }
}

async function cpu(child: ChildProcess): Promise<number> {
  child.send('cpu')
  const [{ cpu }] = await once(child, 'message')
  return cpu.user + cpu.system
}
