/** Floods a service from a thread, so that the test's own requests wait for the service only. It ends with the thread. */
import { Agent, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { workerData } from 'node:worker_threads'

export const floods = [
  'workflows that write endless lines and malformed messages',
  'texts that take long to match',
] as const

export interface FloodData {
  flood: (typeof floods)[number]
  executionUrl: string
  key: string
  /** Counts requests, in a shared buffer. */
  sent: Int32Array<SharedArrayBuffer>
}

const data = workerData as FloodData | undefined
const agent = new Agent({ keepAlive: true })

/** Queues a run, and discards the response. Waits a little after a refusal, as a client does. */
async function queue({ executionUrl, key, sent }: FloodData, workflowId: string, variableData: object): Promise<void> {
  Atomics.add(sent, 0, 1)
  const url = `${executionUrl}/v1/execution/queue-remote/${workflowId}`
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const status = await new Promise<number>((resolve) => {
    const put = request(url, { method: 'PUT', agent, headers })
    put.once('error', () => resolve(0))
    put.once('response', (response) => {
      response.resume().once('close', () => resolve(response.statusCode ?? 0))
    })
    put.end(JSON.stringify({ variableData }))
  })
  if ([0, 429, 503].includes(status)) await delay(20)
}

async function repeatedly(count: number, act: (index: number) => Promise<unknown>): Promise<void> {
  const loop = async () => {
    for (let index = 0; ; index += 1) await act(index)
  }
  await Promise.all(Array.from({ length: count }, loop))
}

const ways = ['writeEndlessLine', 'writeToChannel', 'writeEndlessMessage', 'exit', 'closeChannel']

function start(data: FloodData): Promise<void> {
  if (data.flood === 'texts that take long to match')
    return repeatedly(4, () => queue(data, 'match', { text: `${'a-a'.repeat(300_000)}!` }))
  return repeatedly(2, async (index) => {
    await queue(data, 'misbehave', { how: ways[index % ways.length] })
    await delay(50)
  })
}

if (data) void start(data)
