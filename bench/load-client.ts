/** A process that generates load: it runs each task that it receives, and sends the result. */
import { setTimeout as delay } from 'node:timers/promises'
import autocannon from 'autocannon'
import { Pool } from 'undici'
import { createExecutionClient } from '../src/client/index.ts'

export type Task =
  | { task: 'load'; url: string; apiKeys: string[]; connections: number; seconds: number }
  | { task: 'arrive'; url: string; apiKeys: string[]; connections: number; seconds: number; rate: number }
  | { task: 'pace'; urls: string[]; apiKeys: string[]; count: number; intervalMilliseconds: number }

export interface LoadResult {
  accepted: number
  p99: number
}

const request = (apiKey: string) => ({
  method: 'PUT' as const,
  path: '/v1/execution/queue-remote/first-line',
  headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
  body: JSON.stringify({ variableData: { note: 'a run of the benchmark' } }),
})

async function load({ url, apiKeys, connections, seconds }: Extract<Task, { task: 'load' }>): Promise<LoadResult> {
  const result = await autocannon({ url, connections, duration: seconds, requests: apiKeys.map(request) })
  if (result.non2xx > 0 || result.errors > 0) throw new Error(`${result.non2xx} rejected, ${result.errors} errors`)
  return { accepted: result['2xx'], p99: result.latency.p99 }
}

/** Sends `rate` requests a second at random times. This takes a whole core, since no timer is precise enough. */
async function arrive(task: Extract<Task, { task: 'arrive' }>): Promise<Pick<LoadResult, 'accepted'>> {
  const { url, apiKeys, connections, seconds, rate } = task
  const pool = new Pool(url, { connections, pipelining: 1 })
  let accepted = 0
  const send = async (apiKey: string) => {
    const { statusCode, body } = await pool.request(request(apiKey))
    await body.dump()
    if (statusCode !== 202) throw new Error(`A request was answered with ${statusCode}.`)
    accepted += 1
  }
  const sent: Promise<void>[] = []
  const startedAt = performance.now()
  for (let dueAt = startedAt; dueAt < startedAt + seconds * 1000; dueAt += randomGap(rate)) {
    while (performance.now() < dueAt) await new Promise((resolve) => setImmediate(resolve))
    sent.push(send(apiKeys[sent.length % apiKeys.length] ?? ''))
  }
  await Promise.all(sent)
  await pool.close()
  return { accepted }
}

/** Milliseconds between two events of a Poisson process. @param rate a second */
const randomGap = (rate: number) => (-Math.log(1 - Math.random()) * 1000) / rate

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
  const { data: queued, response } = await client.queueRemoteRun({ params: { path }, body: { variableData: {} } })
  if (!queued) throw new Error(`A request was answered with ${response.status}.`)
  const respondedAt = performance.timeOrigin + performance.now()
  for (;;) {
    // Infrequent, so that polling does not affect the measurement.
    await delay(250)
    const { data } = await client.getRun({ params: { path: { runId: queued.id } } })
    if (data?.status === 'succeeded') return Number(data.output) - respondedAt
  }
}

const perform = (task: Task) => {
  if (task.task === 'load') return load(task)
  return task.task === 'arrive' ? arrive(task) : pace(task)
}

process.on('message', async (task: Task) => {
  process.send?.(await perform(task))
})
process.on('disconnect', () => process.exit())
