/** Measures the CPU and time of a start beside a plain server, the idle memory, and how soon a queued run starts. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createExecutionClient } from '../src/client/index.ts'
import { median, percentile, print, table } from './figures.ts'
import {
  cpuMilliseconds,
  createKey,
  measureIdleMemory,
  memoryRows,
  start,
  stop,
  withInstallation,
} from './single-service.ts'

const starts = 7
const runs = 200

export function starting(): Promise<void> {
  return withInstallation(async (env) => {
    await stop(await start(env)) // Creates the store.
    const ready: number[] = []
    const cpu = { service: [] as number[], stock: [] as number[] }
    for (let count = 0; count < starts; count += 1) {
      const running = await start(env)
      ready.push(running.readyMilliseconds)
      cpu.service.push(cpuMilliseconds(running.child.pid ?? 0))
      await stop(running)
      cpu.stock.push(await measureStockServer())
    }
    const running = await start(env)
    const latencies = await measureLatencies(running.executionUrl, await createKey(env))
    const memory = await measureIdleMemory(running.child.pid ?? 0)
    await stop(running)
    const ratio = (kind: keyof typeof cpu) => (median(cpu[kind]) / median(cpu.stock)).toFixed(2)
    const cpuRow = (name: string, kind: keyof typeof cpu) => [
      name,
      `${median(cpu[kind]).toFixed(0)} ms`,
      `${Math.min(...cpu[kind]).toFixed(0)} ms`,
      ratio(kind),
    ]
    print(
      table([
        ['CPU of the process', 'median', 'minimum', '÷ Express'],
        cpuRow('service, until `service ready`', 'service'),
        cpuRow('Express with stock validation, until both documents are loaded', 'stock'),
      ]),
    )
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
    print(table([['idle memory', 'resident', 'proportional'], ...memoryRows(memory)]))
  })
}

async function measureStockServer(): Promise<number> {
  const child = fork(new URL('./stock-server.ts', import.meta.url).pathname)
  const ended = once(child, 'exit')
  const [milliseconds] = await once(child, 'message')
  await ended
  return milliseconds
}

/** Queues one run after another, so that each finds a free slot. Both times are by the machine's clock. */
async function measureLatencies(baseUrl: string, apiKey: string): Promise<number[]> {
  const client = createExecutionClient({ baseUrl, apiKey })
  const latencies: number[] = []
  for (let count = 0; count < runs; count += 1) {
    const queued = await client.queueRemoteRun({
      params: { path: { workflowId: 'first-line' } },
      body: { variableData: {} },
    })
    const respondedAt = performance.timeOrigin + performance.now()
    const runId = queued.data?.id ?? ''
    for (;;) {
      const { data } = await client.getRun({ params: { path: { runId } } })
      if (data?.status !== 'succeeded') continue
      latencies.push(Number(data.output) - respondedAt)
      break
    }
  }
  return latencies
}
