/** How soon the service is ready, what it needs while idle, and how soon a queued run starts. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { createExecutionV1Client } from '../generated/execution.v1/client.ts'
import { median, percentile, print, table } from './figures.ts'

const main = new URL('../src/main.ts', import.meta.url).pathname
const starts = 7
const runs = 200

interface Running {
  child: ChildProcess
  baseUrl: string
  readyMilliseconds: number
}

export async function starting(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'bench-'))
  const env = {
    ...process.env,
    DATA_DIR: directory,
    WORKFLOWS_DIR: new URL('./workflows', import.meta.url).pathname,
    EXECUTION_PORT: '0',
    BROWSER_CONTEXT_PORT: '0',
    MANAGEMENT_PORT: '0',
  }
  try {
    await stop(await start(env)) // Makes the store.
    const ready: number[] = []
    for (let count = 0; count < starts; count += 1) {
      const running = await start(env)
      ready.push(running.readyMilliseconds)
      await stop(running)
    }
    const running = await start(env)
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [main, 'keys', 'create', '--name', 'bench', '--json'],
      { env },
    )
    const latencies = await measureLatencies(running.baseUrl, JSON.parse(stdout).value)
    await new Promise((resolve) => setTimeout(resolve, 5000))
    const memory = memoryOf(running.child.pid ?? 0)
    await stop(running)
    print(
      table([
        ['', 'median', 'p99'],
        [
          'from start to ready, on an existing store',
          `${median(ready).toFixed(0)} ms`,
          `${percentile(ready, 99).toFixed(0)} ms`,
        ],
        [
          "from the 202 to the workflow's first line",
          `${median(latencies).toFixed(1)} ms`,
          `${percentile(latencies, 99).toFixed(1)} ms`,
        ],
      ]),
    )
    print(table([['idle memory', 'resident', 'proportional'], ...memory]))
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

async function start(env: NodeJS.ProcessEnv): Promise<Running> {
  const startedAt = performance.now()
  const child = spawn(process.execPath, [main, 'start'], {
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const baseUrl = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.includes('"service ready"')) resolve(JSON.parse(line).execution)
    })
    child.once('exit', () => reject(new Error('The service ended before it was ready.')))
  })
  return { child, baseUrl, readyMilliseconds: performance.now() - startedAt }
}

async function stop({ child }: Running): Promise<void> {
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  await ended
}

/** One run after the other: each finds a free worker. Both clocks are the machine's. */
async function measureLatencies(baseUrl: string, apiKey: string): Promise<number[]> {
  const client = createExecutionV1Client({ baseUrl, apiKey })
  const latencies: number[] = []
  for (let count = 0; count < runs; count += 1) {
    const queued = await client.queueRemoteRun({
      params: { path: { workflowId: 'first-line' } },
      body: { variableData: {} },
    })
    const answeredAt = performance.timeOrigin + performance.now()
    const runId = queued.data?.id ?? ''
    for (;;) {
      const { data } = await client.getRun({ params: { path: { runId } } })
      if (data?.status !== 'succeeded') continue
      latencies.push(Number(data.output) - answeredAt)
      break
    }
  }
  return latencies
}

/** Of the process and all below it. Resident counts what processes share each time; proportional divides it. */
function memoryOf(root: number): string[][] {
  const parents = new Map(
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .flatMap((pid) => {
        try {
          return [
            [Number(pid), Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[1])] as const,
          ]
        } catch {
          return []
        }
      }),
  )
  const isBelow = (pid: number): boolean => pid === root || (parents.has(pid) && isBelow(parents.get(pid) ?? 0))
  const rows = [...parents.keys()].filter(isBelow).map((pid) => {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
    const kilobytes = (name: string) => Number(rollup.match(new RegExp(`^${name}:\\s+(\\d+)`, 'm'))?.[1])
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(1)
    const name = command.find((word) => word.endsWith('.ts'))?.replace(/.*\/src\//, '') ?? ''
    return {
      name: `${name} ${command.at(-2)?.startsWith('/') ? '' : command.at(-2)}`.trim(),
      rss: kilobytes('Rss'),
      pss: kilobytes('Pss'),
    }
  })
  const megabytes = (value: number) => `${(value / 1024).toFixed(0)} MB`
  const sum = (member: 'rss' | 'pss') => megabytes(rows.reduce((total, row) => total + row[member], 0))
  return [
    ...rows.map(({ name, rss, pss }) => [name, megabytes(rss), megabytes(pss)]),
    ['together', sum('rss'), sum('pss')],
  ]
}
