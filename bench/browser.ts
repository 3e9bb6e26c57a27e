/** Measures browser contexts by the size of their storage state, and how soon a run's page is open. */
import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { createBrowserContextClient, createExecutionClient } from '../src/client/index.ts'
import { Accounts } from '../src/domain/accounts/accounts.ts'
import { BrowserContexts } from '../src/domain/browser-contexts/browser-contexts.ts'
import { ContextVersions } from '../src/domain/browser-contexts/context-versions.ts'
import { Cursors } from '../src/storage/cursors.ts'
import { Encryption, FixedKeys, keyBytes } from '../src/storage/encryption.ts'
import { openSqliteStore } from '../src/storage/sqlite/sqlite-store.ts'
import { BrowserHost } from '../src/worker/browser/browser-host.ts'
import { openBrowser } from '../src/worker/browser/connection.ts'
import { measureEvidence } from './evidence.ts'
import { median, print, table } from './figures.ts'
import {
  createKey,
  measureIdleMemory,
  memoryRows,
  type Running,
  start,
  stop,
  withInstallation,
} from './single-service.ts'
import { createState, stateSizes } from './storage-states.ts'

const rounds = 9
const coldStarts = 5

type Samples = Map<string, number[]>

export async function browser(): Promise<void> {
  await withInstallation(async (env) => {
    const running = await start(env)
    const overHttp = await measureRequests(running, await createKey(env))
    await stop(running)
    const inProcess = await measureContexts(env.DATA_DIR ?? '')
    const rows = [...overHttp, ...inProcess].map(([name, samples]) => toRow(name, samples))
    print(table([['', ...stateSizes.map(({ name }) => name), '100 KB ÷ 5 KB', '5 MB ÷ 5 KB'], ...rows]))
  })
  await withInstallation(measureRuns)
  await withInstallation(measureEvidence)
}

/** Records the duration of `act`. Sizes alternate, so that other load on the machine affects all of them. */
async function measure(samples: Samples, name: string, size: number, act: () => Promise<unknown>): Promise<void> {
  const startedAt = performance.now()
  await act()
  const key = `${name}\n${size}`
  samples.set(key, [...(samples.get(key) ?? []), performance.now() - startedAt])
}

function mediansBySize(samples: Samples): [string, number[]][] {
  const names = new Set([...samples.keys()].map((key) => key.split('\n')[0] ?? ''))
  // The first round is warm-up.
  return [...names].map((name) => [
    name,
    stateSizes.map((_, size) => median((samples.get(`${name}\n${size}`) ?? []).slice(1))),
  ])
}

function toRow(name: string, medians: number[]): string[] {
  const [least = Number.NaN, middle = Number.NaN, most = Number.NaN] = medians
  return [name, ...medians.map(milliseconds), (middle / least).toFixed(1), (most / least).toFixed(1)]
}

function milliseconds(value: number): string {
  return `${value.toFixed(value < 10 ? 1 : 0)} ms`
}

async function measureRequests({ browserContextUrl }: Running, apiKey: string): Promise<[string, number[]][]> {
  const client = createBrowserContextClient({ baseUrl: browserContextUrl, apiKey })
  const contexts = await Promise.all(stateSizes.map(() => client.createBrowserContext()))
  const samples: Samples = new Map()
  for (let round = 0; round <= rounds; round += 1) {
    for (const [index, size] of stateSizes.entries()) {
      const url = `${browserContextUrl}/alpha/browser-contexts/${contexts[index]?.data?.id}/storage-state`
      const headers = { 'x-service-api-key': apiKey, 'Content-Type': 'application/json' }
      // Without the client, which would serialize the state each time.
      const body = JSON.stringify(createState(size))
      await measure(samples, 'PUT storage-state', index, async () => {
        const { status } = await fetch(url, { method: 'PUT', headers, body })
        if (status !== 204) throw new Error(`PUT storage-state returned ${status}.`)
      })
      await measure(samples, 'GET storage-state', index, async () => (await fetch(url, { headers })).text())
    }
  }
  return mediansBySize(samples)
}

/** Measures an attempt's use of a context in this process: restore it, read it, store it. */
async function measureContexts(directory: string): Promise<[string, number[]][]> {
  const store = await openSqliteStore(directory)
  const encryption = new Encryption(new FixedKeys([randomBytes(keyBytes)]))
  const versions = new ContextVersions(store, encryption, 5)
  const contexts = new BrowserContexts(store, new Cursors(encryption))
  const accountId = (await new Accounts(store).list())[0]?.id ?? ''
  const host = new BrowserHost({ path: process.env.BROWSER_PATH, cdpUrl: undefined }, pino({ level: 'silent' }))
  const endpoint = await host.acquire()
  const samples: Samples = new Map()
  try {
    const created = await Promise.all(stateSizes.map(() => contexts.create(accountId, undefined)))
    for (let round = 0; round <= rounds; round += 1) {
      for (const [index, size] of stateSizes.entries()) {
        const text = JSON.stringify(createState(size))
        let opened: Awaited<ReturnType<typeof openBrowser>> | undefined
        await measure(samples, 'open an empty context', index, async () => {
          opened = await openBrowser(endpoint, undefined)
        })
        await opened?.close()
        await measure(samples, 'restore the state', index, async () => {
          opened = await openBrowser(endpoint, text)
        })
        let state = ''
        await measure(samples, 'read the state', index, async () => {
          state = (await opened?.storageState()) ?? ''
        })
        if (state.length < text.length * 0.9)
          throw new Error(`The browser returned ${state.length} of ${text.length} bytes.`)
        await opened?.close()
        const contextId = created[index]?.id ?? ''
        await measure(samples, 'store a version', index, () =>
          versions.replace(accountId, contextId, state, { runId: 'bench' }),
        )
      }
    }
  } finally {
    host.release()
    await host.close()
    await store.close()
  }
  return mediansBySize(samples)
}

interface StartMeasurement {
  milliseconds: number
  pid: number
}

/** Measures the time from the request that queues a run to its first line, or until its page is open. */
async function measureRuns(env: NodeJS.ProcessEnv): Promise<void> {
  const cold: number[] = []
  const apiKey = await createKey(env)
  for (let count = 0; count < coldStarts; count += 1) {
    const running = await start(env)
    await measureStart(running, apiKey, 'first-line')
    cold.push((await measureStart(running, apiKey, 'first-page')).milliseconds)
    await stop(running)
  }
  const running = await start(env)
  const samples: Record<'none' | 'fresh' | 'same', number[]> = { none: [], fresh: [], same: [] }
  let reused = 0
  for (let round = 0; round < rounds; round += 1) {
    await measureStart(running, apiKey, 'first-page', { fail: true })
    const fresh = await measureStart(running, apiKey, 'first-page')
    samples.fresh.push(fresh.milliseconds)
    const same = await measureStart(running, apiKey, 'first-page')
    samples.same.push(same.milliseconds)
    if (same.pid === fresh.pid) reused += 1
    samples.none.push((await measureStart(running, apiKey, 'first-line')).milliseconds)
  }
  const memory = await measureIdleMemory(running.child.pid ?? 0)
  await stop(running)
  const baseline = median(samples.none)
  const row = (name: string, values: number[]) => [
    name,
    milliseconds(median(values)),
    (median(values) / baseline).toFixed(0),
  ]
  print(
    table([
      ["from the PUT to the workflow's first line", 'median', '÷ no browser'],
      row('no browser', samples.none),
      row(`page open, process reused (${reused} of ${rounds})`, samples.same),
      row('page open, new process', samples.fresh),
      row('page open, browser not running', cold),
    ]),
  )
  const isBrowser = ({ name }: { name: string }) => /^chromium|host-process/.test(name)
  print(table([['idle memory of the browser', 'resident', 'proportional'], ...memoryRows(memory.filter(isBrowser))]))
}

async function measureStart(
  { executionUrl }: Running,
  apiKey: string,
  workflowId: string,
  variableData: Record<string, unknown> = {},
): Promise<StartMeasurement> {
  const client = createExecutionClient({ baseUrl: executionUrl, apiKey })
  const queuedAt = performance.timeOrigin + performance.now()
  const params = { path: { workflowId }, header: { Prefer: 'wait=30' } }
  const { data } = await client.queueRemoteRun({ params, body: { variableData } })
  if (data?.status !== 'succeeded' && !variableData.fail) throw new Error(`A run is ${data?.status}.`)
  const output = data?.output
  const { at = Number(output), pid = 0 } = (output ?? {}) as { at?: number; pid?: number }
  return { milliseconds: at - queuedAt, pid }
}
