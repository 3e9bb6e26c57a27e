/** Measures what recording evidence costs a run that succeeds, on sites that respond at once and after a while. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { createExecutionClient } from '../src/client/index.ts'
import { median, print, table } from './figures.ts'
import { createKey, start, stop } from './single-service.ts'

const rounds = 15
/** How long the site takes to respond. */
const latencies = [0, 100, 300]

const form = `<!doctype html><form method="post"><input id="user"><input id="password" type="password">
  <button>Sign in</button></form>${'<p>Text of a <b>page</b></p>'.repeat(200)}`

export async function measureEvidence(env: NodeJS.ProcessEnv): Promise<void> {
  const apiKey = await createKey(env)
  const running = await start(env)
  const client = createExecutionClient({ baseUrl: running.executionUrl, apiKey })
  const rows: string[][] = []
  for (const latency of latencies) {
    const site = createServer(async (_request, response) => {
      await delay(latency)
      response.setHeader('Content-Type', 'text/html').end(form)
    })
    await once(site.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`
    const samples: Record<string, number[]> = { 'sign-in': [], 'sign-in-recorded': [] }
    // They alternate, so that other load on the machine affects both. The first round is warm-up.
    for (let round = 0; round <= rounds; round += 1) {
      for (const [workflowId, values] of Object.entries(samples)) {
        const startedAt = performance.now()
        const params = { path: { workflowId }, header: { Prefer: 'wait=60' } }
        const { data } = await client.queueRemoteRun({ params, body: { variableData: { url } } })
        if (data?.status !== 'succeeded') throw new Error(`A run is ${data?.status}.`)
        if (round > 0) values.push(performance.now() - startedAt)
      }
    }
    site.closeAllConnections()
    site.close()
    const [off = 0, recorded = 0] = Object.values(samples).map(median)
    const milliseconds = (value: number) => `${value.toFixed(0)} ms`
    rows.push([milliseconds(latency), milliseconds(off), milliseconds(recorded), (recorded / off).toFixed(2)])
  }
  await stop(running)
  print(
    table([
      ['a run that signs in five times; response time of the site', 'evidence off', 'onFailure', 'ratio'],
      ...rows,
    ]),
  )
}
