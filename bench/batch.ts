/** Measures a batch of 1000 runs, compared with 1000 requests that queue one run each. */
import { createExecutionClient, unwrap } from '../src/client/index.ts'
import { median, print, table } from './figures.ts'
import { createKey, start, stop, withInstallation } from './single-service.ts'

const runs = 1000
const connections = 64
const rounds = 7
/** The runs stay in the queue, so that executing them takes no CPU time. */
const delaySeconds = 3600
const workflowId = 'first-line'
const variableData = { note: 'a run of the benchmark' }

export async function batch(): Promise<void> {
  await withInstallation(async (environment) => {
    const env = { ...environment, RATE_LIMIT_PER_MINUTE: '0', QUEUED_RUNS_MAX: '0' }
    const service = await start(env)
    const client = createExecutionClient({ baseUrl: service.executionUrl, apiKey: await createKey(env) })
    const queueOne = () =>
      client.queueRemoteRun({
        params: { path: { workflowId }, query: { delaySeconds } },
        body: { variableData },
      })
    const body = { runs: Array.from({ length: runs }, () => ({ workflowId, variableData, delaySeconds })) }
    const queueBatch = async () => void unwrap(await client.queueRemoteRunBatch({ body }))
    const queueEach = async () => {
      let left = runs
      const connect = async () => {
        while (left-- > 0) unwrap(await queueOne())
      }
      await Promise.all(Array.from({ length: connections }, connect))
    }
    const subjects = { 'a batch': queueBatch, [`${runs} requests, ${connections} at a time`]: queueEach }
    const milliseconds = new Map<string, number[]>(Object.keys(subjects).map((name) => [name, []]))
    for (let round = 0; round <= rounds; round += 1) {
      for (const [name, queue] of Object.entries(subjects)) {
        const startedAt = performance.now()
        await queue()
        // The first round warms up.
        if (round > 0) milliseconds.get(name)?.push(performance.now() - startedAt)
      }
    }
    await stop(service)
    const rows = [...milliseconds].map(([name, each]) => [
      name,
      `${median(each).toFixed(0)} ms`,
      Math.round((runs / median(each)) * 1000),
    ])
    print(table([[`${runs} runs`, 'time', 'runs/s'], ...rows]))
  })
}
