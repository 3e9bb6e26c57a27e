/** A process that generates load: it runs each task that it receives, and sends the result. */
import { setTimeout as delay } from 'node:timers/promises'
import autocannon from 'autocannon'
import { createExecutionClient } from '../src/client/index.ts'

export type Task =
  | { task: 'load'; url: string; apiKeys: string[]; connections: number; seconds: number }
  | { task: 'pace'; urls: string[]; apiKeys: string[]; count: number; intervalMilliseconds: number }

export interface LoadResult {
  accepted: number
  p99: number
}

async function load({ url, apiKeys, connections, seconds }: Extract<Task, { task: 'load' }>): Promise<LoadResult> {
  const request = (apiKey: string) => ({
    method: 'PUT' as const,
    path: '/v1/execution/queue-remote/first-line',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ variableData: { note: 'a run of the benchmark' } }),
  })
  const result = await autocannon({ url, connections, duration: seconds, requests: apiKeys.map(request) })
  if (result.non2xx > 0 || result.errors > 0) throw new Error(`${result.non2xx} rejected, ${result.errors} errors`)
  return { accepted: result['2xx'], p99: result.latency.p99 }
}

/** Measures the milliseconds from each response to the workflow's first line, both by the machine's clock. */
async function pace({ urls, apiKeys, count, intervalMilliseconds }: Extract<Task, { task: 'pace' }>) {
  const latencies: Promise<number>[] = []
  for (let number = 0; number < count; number += 1) {
    const [baseUrl, apiKey] = [urls[number % urls.length] ?? '', apiKeys[number % apiKeys.length] ?? '']
    latencies.push(measureStartLatency(createExecutionClient({ baseUrl, apiKey })))
    await delay(intervalMilliseconds)
  }
  return Promise.all(latencies)
}

async function measureStartLatency(client: ReturnType<typeof createExecutionClient>): Promise<number> {
  const path = { workflowId: 'first-line' }
  const { data: queued } = await client.queueRemoteRun({ params: { path }, body: { variableData: {} } })
  const respondedAt = performance.timeOrigin + performance.now()
  for (;;) {
    // Infrequent, so that polling does not affect the measurement.
    await delay(250)
    const { data } = await client.getRun({ params: { path: { runId: queued?.id ?? '' } } })
    if (data?.status === 'succeeded') return Number(data.output) - respondedAt
  }
}

process.on('message', async (task: Task) => {
  process.send?.(await (task.task === 'load' ? load(task) : pace(task)))
})
process.on('disconnect', () => process.exit())
