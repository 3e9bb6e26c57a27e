/** Requests that queue runs, as they arrive from clients in lockstep, from independent clients, or at a given rate. */
import { fork, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import autocannon from 'autocannon'
import type { LoadResult, Task } from './load-client.ts'

export interface Load {
  url: string
  /** The requests of each connection alternate between them. */
  apiKeys: readonly string[]
  connections: number
  seconds: number
}

/** How many requests were accepted, and in how many seconds. */
export interface Accepted {
  count: number
  seconds: number
}

const path = '/v1/execution/queue-remote/first-line'
const body = JSON.stringify({ variableData: { note: 'a run of the benchmark' } })
const headersOf = (apiKey: string) => ({ authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' })

/** Each connection sends its next request when it has the response. Responses that leave together are answered together. */
export async function inLockstep({ seconds, ...load }: Load): Promise<Accepted> {
  return { count: await runAutocannon({ ...load, duration: seconds }), seconds }
}

export async function queueRuns(load: Omit<Load, 'seconds'>, amount: number): Promise<void> {
  const accepted = await runAutocannon({ ...load, amount })
  if (accepted !== amount) throw new Error(`${amount - accepted} requests failed.`)
}

async function runAutocannon({ apiKeys, ...options }: autocannon.Options & Pick<Load, 'apiKeys'>): Promise<number> {
  const requests = apiKeys.map((apiKey) => ({ method: 'PUT' as const, path, headers: headersOf(apiKey), body }))
  let opened = 0
  const result = await autocannon({
    ...options,
    requests,
    // Not all of them the same key at the same time.
    setupClient(client) {
      const first = (opened++ * 7) % requests.length
      client.setRequests([...requests.slice(first), ...requests.slice(0, first)])
    },
  })
  if (result.non2xx > 0 || result.errors > 0) throw new Error(`${result.non2xx} rejected, ${result.errors} errors`)
  return result['2xx']
}

/** npm has no wrk, so it is used where it is installed. */
export function hasWrk(): boolean {
  return spawnSync('wrk', ['--version']).error === undefined
}

/** As in lockstep, but by wrk, whose connections send each request as soon as they have read a response. */
export async function byWrk({ url, apiKeys, connections, seconds }: Load): Promise<Accepted> {
  const directory = mkdtempSync(join(tmpdir(), 'bench-wrk-'))
  const script = join(directory, 'queue.lua')
  writeFileSync(script, wrkScript(apiKeys))
  const duration = `${Math.max(1, Math.round(seconds))}s`
  const wrk = spawn('wrk', ['-t1', `-c${connections}`, `-d${duration}`, '-s', script, url], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const output = await text(wrk.stdout)
  rmSync(directory, { recursive: true })
  const [, count, failed, microseconds] = (/^result (\d+) (\d+) (\d+)$/m.exec(output) ?? []).map(Number)
  if (!count || !microseconds || failed !== 0) throw new Error(`wrk failed: ${output}`)
  return { count, seconds: microseconds / 1e6 }
}

/** JSON strings of these values are also strings of Lua. */
function wrkScript(apiKeys: readonly string[]): string {
  return `local keys = {${apiKeys.map((key) => JSON.stringify(key)).join(', ')}}
local count = 0
function request()
  count = count + 1
  local headers = {["authorization"] = "Bearer " .. keys[count % #keys + 1], ["content-type"] = "application/json"}
  return wrk.format("PUT", ${JSON.stringify(path)}, headers, ${JSON.stringify(body)})
end
function done(summary)
  local errors = summary.errors
  local failed = errors.status + errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format("result %d %d %d\\n", summary.requests, failed, summary.duration))
end
`
}

/** At `rate` a second on average, as a Poisson process, however long the responses take. */
export async function asPoisson(load: Load, rate: number): Promise<Accepted> {
  const client = fork(new URL('./load-client.ts', import.meta.url).pathname)
  try {
    client.send({ task: 'arrive', ...load, apiKeys: [...load.apiKeys], rate } satisfies Task)
    const [{ accepted }] = (await Promise.race([
      once(client, 'message'),
      once(client, 'exit').then(() => Promise.reject(new Error('The client failed.'))),
    ])) as [Pick<LoadResult, 'accepted'>]
    return { count: accepted, seconds: load.seconds }
  } finally {
    client.kill()
  }
}
