/** Measures how long a request of one account takes while another reads the descriptions of workflows with large schemas. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import autocannon from 'autocannon'
import type { BenchOptions } from './bench-options.ts'
import { median, percentile, print, table } from './figures.ts'
import { start, stop, withInstallation } from './single-service.ts'

const workflows = 19
const schemaBytes = 60_000
const connections = 8
const main = new URL('../src/main.ts', import.meta.url).pathname

type Load = Pick<autocannon.Options, 'headers' | 'method' | 'body'> & { path: string }

const listTools: Load = {
  path: '/mcp',
  method: 'POST',
  headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
}
const loads: Record<string, Load | undefined> = {
  'no other account': undefined,
  '`tools/list`': listTools,
  '`tools/list`, compressed': { ...listTools, headers: { ...listTools.headers, 'accept-encoding': 'gzip' } },
  '`getWorkflowsDocument`': { path: '/v1/execution/openapi.json' },
  'the page of a workflow': { path: '/docs/workflows/large-3' },
  'the list of workflows': { path: '/docs/workflows/' },
  'the search index': { path: '/docs/workflows.js' },
}

export async function largeSchemas({ seconds }: BenchOptions): Promise<void> {
  await withInstallation(async (env) => {
    const directory = mkdtempSync(join(tmpdir(), 'bench-workflows-'))
    writeWorkflows(directory)
    const settings = { ...env, WORKFLOWS_DIR: directory, RATE_LIMIT_PER_MINUTE: '0' }
    const service = await start(settings)
    const [reader, neighbour] = [await createAccount(settings), await createAccount(settings)]
    const rows: string[][] = []
    for (const [name, load] of Object.entries(loads)) {
      const reading = load && readMany(service.executionUrl, reader, load, seconds)
      // The first response is made, which later ones are not.
      if (load) await delay(1000)
      const times = await measureNeighbour(service.executionUrl, neighbour, seconds)
      const result = await reading
      if (result && (result.non2xx > 0 || result.errors > 0))
        throw new Error(`${name}: ${result.non2xx} ${result.errors}`)
      const rate = result ? `${Math.round(result['2xx'] / result.duration)}/s` : ''
      rows.push([name, rate, `${median(times).toFixed(1)} ms`, `${percentile(times, 99).toFixed(1)} ms`])
    }
    await stop(service)
    rmSync(directory, { recursive: true })
    print(table([[`${connections} connections read`, 'responses', 'neighbour, median', 'p99'], ...rows]))
  })
}

function writeWorkflows(directory: string): void {
  const member = (index: number) => ({ type: 'string', description: `The value of field ${index} in an import.` })
  const names = Array.from({ length: schemaBytes / 90 }, (_, index) => `field${index}`)
  const properties = Object.fromEntries(names.map((name, index) => [name, member(index)]))
  const schema = JSON.stringify({ type: 'object', additionalProperties: false, properties })
  for (let index = 0; index < workflows; index += 1) {
    const members = `id: 'large-${index}', version: '1.0.0', title: 'Large ${index}', variables: schema, output: schema`
    const source = `import { defineWorkflow } from 'execution-service/workflow'
const schema = ${schema} as const
export default defineWorkflow({ ${members}, run: () => ({}) })
`
    writeFileSync(join(directory, `large-${index}.ts`), source)
  }
}

/** Returns the value of a key of a new account. */
async function createAccount(env: NodeJS.ProcessEnv): Promise<string> {
  const run = (...args: string[]) => promisify(execFile)(process.execPath, [main, ...args, '--json'], { env })
  const { id } = JSON.parse((await run('accounts', 'create', '--name', crypto.randomUUID())).stdout)
  return JSON.parse((await run('keys', 'create', '--name', 'bench', '--account', id)).stdout).value
}

/** In a thread: reading large responses would delay the measurement. */
function readMany(url: string, key: string, { path, headers, ...load }: Load, seconds: number) {
  const options = { ...load, headers: { ...headers, authorization: `Bearer ${key}` }, connections, workers: 1 }
  return autocannon({ url: `${url}${path}`, duration: seconds + 1, ...options })
}

async function measureNeighbour(url: string, key: string, seconds: number): Promise<number[]> {
  const headers = { authorization: `Bearer ${key}` }
  const times: number[] = []
  const end = performance.now() + seconds * 1000
  while (performance.now() < end) {
    const startedAt = performance.now()
    await (await fetch(`${url}/v1/execution/runs?limit=1`, { headers })).text()
    times.push(performance.now() - startedAt)
    await delay(5)
  }
  return times
}
