/** Measures the startup time of the service, its idle memory, and how soon a queued run starts. */
import { createExecutionClient } from '../src/client/index.ts'
import { median, percentile, print, table } from './figures.ts'
import { createKey, measureIdleMemory, memoryRows, start, stop, withInstallation } from './single-service.ts'

const starts = 7
const runs = 200

export function starting(): Promise<void> {
  return withInstallation(async (env) => {
    await stop(await start(env)) // Creates the store.
    const ready: number[] = []
    for (let count = 0; count < starts; count += 1) {
      const running = await start(env)
      ready.push(running.readyMilliseconds)
      await stop(running)
    }
    const running = await start(env)
    const latencies = await measureLatencies(running.executionUrl, await createKey(env))
    const memory = await measureIdleMemory(running.child.pid ?? 0)
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
    print(table([['idle memory', 'resident', 'proportional'], ...memoryRows(memory)]))
  })
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
