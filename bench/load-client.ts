/** One of the processes that make the load, so that no client is what is measured. It does what it is sent. */
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
  if (result.non2xx > 0 || result.errors > 0) throw new Error(`${result.non2xx} refused, ${result.errors} errors`)
  return { accepted: result['2xx'], p99: result.latency.p99 }
}

/** Milliseconds from each answer to the workflow's first line. Both clocks are the machine's. */
async function pace({ urls, apiKeys, count, intervalMilliseconds }: Extract<Task, { task: 'pace' }>) {
  const measured: Promise<number>[] = []
  for (let number = 0; number < count; number += 1) {
    const [baseUrl, apiKey] = [urls[number % urls.length] ?? '', apiKeys[number % apiKeys.length] ?? '']
    measured.push(startLatency(createExecutionClient({ baseUrl, apiKey })))
    await delay(intervalMilliseconds)
  }
  return Promise.all(measured)
}

async function startLatency(client: ReturnType<typeof createExecutionClient>): Promise<number> {
  const path = { workflowId: 'first-line' }
  const { data: queued } = await client.queueRemoteRun({ params: { path }, body: { variableData: {} } })
  const answeredAt = performance.timeOrigin + performance.now()
  for (;;) {
    // Seldom: asking is not to be what is measured.
    await delay(250)
    const { data } = await client.getRun({ params: { path: { runId: queued?.id ?? '' } } })
    if (data?.status === 'succeeded') return Number(data.output) - answeredAt
  }
}

process.on('message', async (task: Task) => {
  process.send?.(await (task.task === 'load' ? load(task) : pace(task)))
})
process.on('disconnect', () => process.exit())
