/** Measures what recording evidence costs a run that succeeds, on sites that respond at once and after a while. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { createExecutionClient } from '../src/client/index.ts'
import { median, print, table } from './figures.ts'
import { cpuSeconds } from './separate-processes.ts'
import { createKey, start, stop } from './single-service.ts'

const rounds = 15
const policies = [
  { workflowId: 'sign-in', evidence: 'off' },
  { workflowId: 'sign-in-recorded', evidence: 'onFailure' },
  { workflowId: 'sign-in-always', evidence: 'always' },
] as const
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
    const samples = new Map(policies.map((policy) => [policy, { milliseconds: [] as number[], cpu: [] as number[] }]))
    // They alternate, so that other load on the machine affects all. The first round is warm-up.
    for (let round = 0; round <= rounds; round += 1) {
      for (const [{ workflowId }, { milliseconds, cpu }] of samples) {
        const before = cpuSeconds([running.child.pid ?? 0])
        const startedAt = performance.now()
        const params = { path: { workflowId }, header: { Prefer: 'wait=60' } }
        const { data } = await client.queueRemoteRun({ params, body: { variableData: { url } } })
        if (data?.status !== 'succeeded') throw new Error(`A run is ${data?.status}.`)
        if (round === 0) continue
        milliseconds.push(performance.now() - startedAt)
        cpu.push(cpuSeconds([running.child.pid ?? 0]) - before)
      }
    }
    site.closeAllConnections()
    site.close()
    const baseline = samples.get(policies[0])
    for (const [{ evidence }, { milliseconds, cpu }] of samples) {
      const ratio = (values: number[], of: number[] = []) => (median(values) / median(of)).toFixed(2)
      rows.push([
        `${latency} ms`,
        evidence,
        `${median(milliseconds).toFixed(0)} ms`,
        ratio(milliseconds, baseline?.milliseconds),
        ratio(cpu, baseline?.cpu),
      ])
    }
  }
  await stop(running)
  const head = 'a run that signs in five times; response time of the site'
  print(table([[head, 'evidence', 'median', 'time ÷ off', 'CPU time ÷ off'], ...rows]))
}
