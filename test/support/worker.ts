/** Workers for tests, with the workflows in test/worker/workflows, in the test's process or in a separate one. */
import { type ChildProcess, spawn } from 'node:child_process'
import { hash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { vi } from 'vitest'
import { readConfig } from '../../src/config/config.ts'
import type { Snapshot } from '../../src/domain/deployments/snapshot.ts'
import { eventsAfter, lockRun } from '../../src/domain/queue/runs.sql.ts'
import { type AnswerResult, answerWait } from '../../src/domain/queue/waits.ts'
import type { Run } from '../../src/domain/runs/run.ts'
import { isFinal } from '../../src/domain/runs/run-state.ts'
import { createWorker, type WorkerOptions } from '../../src/worker/create-worker.ts'
import { type Domain, newAccount, newDirectory, openDomain, type Test } from './domain.ts'
import { snapshotOf } from './snapshots.ts'
import { type StoreKind, sqlite } from './store-kinds.ts'
import { waitLimits } from './timeouts.ts'

const directory = fileURLToPath(new URL('../worker/workflows', import.meta.url))

/** Opens a domain with these workflows deployed, an account, and a directory for files that runs and tests exchange. */
export async function openInstallation(test: Test, kind: StoreKind = sqlite, snapshot?: Snapshot) {
  const domain = await openDomain(test, { kind, snapshot: snapshot ?? (await snapshotOf(directory)) })
  const { principal } = await newAccount(domain)
  const exchange = await newDirectory(test)
  return { domain, principal, file: (name: string) => join(exchange, name) }
}

/** Writes modules, by file name, to a new directory. */
export async function writeModules(test: Test, modules: Record<string, string>): Promise<string> {
  const folder = await newDirectory(test)
  for (const [name, text] of Object.entries(modules)) writeFileSync(join(folder, name), text)
  return folder
}

/** Returns the source of a module that exports a workflow with the required members and `members`. */
export function moduleText(id: string, members = 'run: () => null'): string {
  const required = `id: '${id}', version: '1.0.0', title: 'A test', variables: { type: 'object' }, output: {}`
  return `export default { ${required}, ${members} }\n`
}

interface WorkerChanges extends Pick<WorkerOptions, 'loadSecondsMax'> {
  slots?: number
  leaseSeconds?: number
  abortGraceSeconds?: number
  memoryMegabytesMax?: number
  idleMegabytesMax?: number
  storageQuotaMegabytes?: number
  waitingRunsMax?: number
  browserPath?: string
}

/** Starts a worker in this process, for whatever is deployed. It is stopped with the test. */
export async function startWorker(
  test: Test,
  { store, encryption }: Pick<Domain, 'store' | 'encryption'>,
  { loadSecondsMax, ...changes }: WorkerChanges = {},
) {
  const config = {
    ...readConfig({ BROWSER_PATH: changes.browserPath ?? process.env.BROWSER_PATH }),
    WORKER_SLOTS: changes.slots ?? 2,
    LEASE_SECONDS: changes.leaseSeconds ?? 15,
    ABORT_GRACE_SECONDS: changes.abortGraceSeconds ?? 0.2,
    WORKFLOW_MEMORY_MB: changes.memoryMegabytesMax ?? 64,
    IDLE_PROCESSES_MB: changes.idleMegabytesMax,
    STORAGE_QUOTA_MB: changes.storageQuotaMegabytes ?? 0,
    WAITING_RUNS_MAX: changes.waitingRunsMax ?? 0,
    ACCOUNT_CONCURRENCY: 0,
  }
  // Not mocks: each test clears the mocks of all tests, and tests of workers run concurrently.
  const fatal: unknown[] = []
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  const onFatal = (error: unknown) => void fatal.push(error)
  const worker = createWorker({ config, store, encryption, log, onFatal, ...(loadSecondsMax && { loadSecondsMax }) })
  test.onTestFinished(() => worker.stop(0))
  await worker.start()
  return { worker, fatal, log: lines }
}

/** Starts a worker in a separate process, like an operator. It is killed with the test. */
export async function startWorkerProcess(
  test: Test,
  { location }: Domain,
  changes: NodeJS.ProcessEnv = {},
): Promise<ChildProcess> {
  const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
  const env = {
    ...process.env,
    DATA_DIR: location,
    LEASE_SECONDS: '3',
    ABORT_GRACE_SECONDS: '1',
    SHUTDOWN_SECONDS: '1',
    LOG_LEVEL: 'info',
    // The key of openDomain.
    ENCRYPTION_KEY: hash('sha256', location, 'buffer').toString('base64'),
    ...changes,
  }
  const child = spawn(process.execPath, [main, 'worker'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  test.onTestFinished(() => void child.kill('SIGKILL'))
  let log = ''
  child.stdout.on('data', (data) => {
    log += data
  })
  await vi.waitUntil(() => log.includes('worker ready'), waitLimits)
  return child
}

/** Waits until the run has finished, and returns it. */
export async function waitForRun({ runs }: Domain, { accountId, id }: Run, limits = waitLimits): Promise<Run> {
  return vi.waitUntil(async () => {
    const run = await runs.get(accountId, id)
    return run && isFinal(run.status) && run
  }, limits) as Promise<Run>
}

/** Waits until the run waits for this. */
export async function untilWaiting(
  { runs }: Domain,
  { accountId, id }: Run,
  waitingFor: Run['waitingFor'],
): Promise<Run> {
  return vi.waitUntil(async () => {
    const run = await runs.get(accountId, id)
    return run?.waitingFor === waitingFor && run
  }, waitLimits) as Promise<Run>
}

/** Answers the wait of a run as `me`. */
export async function answer(
  domain: Domain,
  { accountId, id }: Run,
  name: string,
  value: unknown,
): Promise<AnswerResult> {
  const { store, encryption } = domain
  const result = await store.write(async (tx) => {
    const row = await lockRun(tx, accountId, id)
    if (!row) throw new Error('There is no such run.')
    return answerWait(
      tx,
      encryption,
      row,
      { name, value: JSON.stringify(value), by: { userId: 'me', address: null } },
      Date.now(),
    )
  })
  store.notify('queue')
  return result
}

/** Waits until an attempt of the workflow `wait` has written its process id to `path`, and returns the id. */
export async function waitForStart(path: string, attempt = 1): Promise<number> {
  const line = new RegExp(`^${attempt} (\\d+)$`, 'm')
  const read = () => existsSync(path) && line.exec(readFileSync(path, 'utf8'))?.[1]
  return Number(await vi.waitUntil(read, waitLimits))
}

/** Waits until the processes that the workflow `spread` starts have written their ids to `path`, and returns them. */
export async function waitForSpread(path: string): Promise<number[]> {
  const read = () => (existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n').map(Number) : [])
  await vi.waitUntil(() => read().length === 3, waitLimits)
  return read()
}

/** Returns one line for each event of the run. */
export async function describeEvents({ store }: Domain, { id }: Run): Promise<string[]> {
  const events = await eventsAfter(store.read, id, 0, 10_000)
  return events.map(({ type, data }) => {
    if (type === 'status')
      return `${data.status} (${[data.attempt, data.reason].filter((each) => each !== null).join(', ')})`
    if (type === 'step') return `step ${data.name} ${data.state}`
    if (type === 'progress') return `${data.percent} %: ${data.message}`
    return `${data.level}: ${data.message}`
  })
}
