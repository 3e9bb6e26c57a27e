/** The example workflows, run by a real worker on a real store. */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { startSite } from '../../examples/site/site.ts'
import { readConfig } from '../../src/config/config.ts'
import { createDomain } from '../../src/domain/create-domain.ts'
import { openStore } from '../../src/domain/installation.ts'
import type { Run, RunEvent } from '../../src/domain/runs/run.ts'
import { Encryption, FixedKeys, keyBytes } from '../../src/storage/encryption.ts'
import { createWorker } from '../../src/worker/create-worker.ts'
import type { Worker } from '../../src/worker/worker.ts'
import { deploySnapshot } from '../support/domain.ts'
import { newStorage } from '../support/service-storage.ts'
import { buildOnce } from '../support/snapshots.ts'
import { waitLimits } from '../support/timeouts.ts'

const workflowsDirectory = fileURLToPath(new URL('../../examples/workflows', import.meta.url))
const snapshot = await buildOnce(workflowsDirectory)
const { workflows } = snapshot

/** The directory of the examples. Executors inherit both variables. */
const filesDirectory = await mkdtemp(join(tmpdir(), 'examples-'))
Object.assign(process.env, {
  EXAMPLE_FILES_DIR: filesDirectory,
  EXAMPLE_PRIVATE_ADDRESSES: '127.0.0.1',
  EXECUTOR_ENV: 'EXAMPLE_*',
})

const temporaryDirectory = (): Promise<string> => mkdtemp(join(filesDirectory, 'files-'))

/** An HTTP server at an address of this machine, which is not a public one. */
async function startServer(address: string, handle: RequestListener): Promise<string> {
  const server = createServer(handle)
  await once(server.listen(0, address), 'listening')
  onTestFinished(() => void server.close())
  return `http://${address}:${(server.address() as AddressInfo).port}/`
}

type OpenStorage = Awaited<ReturnType<typeof openStorage>>

/** A store, and a function that starts workers on it. */
async function openStorage() {
  const { dataDirectory: directory, settings, remove } = await newStorage()
  const environment = readConfig({ ...settings, BROWSER_PATH: process.env.BROWSER_PATH })
  const config = {
    ...environment,
    WORKER_SLOTS: 2,
    LEASE_SECONDS: 15,
    ABORT_GRACE_SECONDS: 10,
    WORKFLOW_MEMORY_MB: 256,
  }
  const store = await openStore(config)
  const encryption = new Encryption(new FixedKeys([randomBytes(keyBytes)]))
  const deployed = await deploySnapshot(store, snapshot, workflowsDirectory)
  const log = pino({ level: 'silent' })
  const startWorker = async (): Promise<Worker> => {
    const onFatal = (error: unknown) => {
      throw error
    }
    const worker = createWorker({ config, store, encryption, log, onFatal })
    await worker.start()
    return worker
  }
  const workflows = { current: () => deployed }
  const domain = createDomain({ config, store, encryption, log, workflows, artifactRetentionDays: 30 })
  const close = async () => {
    domain.feed.close()
    await domain.apiKeys.close()
    await domain.refusals.close()
    await store.close()
    await remove()
  }
  return { directory, domain, startWorker, close }
}

/** A new account, with functions that queue and follow its runs. */
async function newAccount({ directory, domain: { accounts, runs, feed } }: OpenStorage) {
  const account = await accounts.create({ name: 'Test', scopesEnabled: false })

  const queue = async (workflowId: string, variables: Record<string, unknown>): Promise<Run> => {
    const request = { workflowId, variables, idempotencyKey: undefined, delaySeconds: 0, expiresInSeconds: undefined }
    const queued = await runs.queue({ accountId: account.id, apiKeyId: 'none' }, { ...request, priority: 0 })
    if (queued.kind !== 'queued') throw new Error(JSON.stringify(queued))
    return queued.run
  }
  const follow = (run: Run): AsyncGenerator<RunEvent | null> =>
    feed.events(run.id, 0, 15, AbortSignal.timeout(waitLimits.timeout))
  const finished = async (run: Run) => {
    const events: RunEvent[] = []
    for await (const event of follow(run)) if (event) events.push(event)
    const ended = await runs.get(account.id, run.id)
    if (!ended) throw new Error(`Run ${run.id} is not in the store.`)
    return { run: ended, events }
  }
  return { directory, runs, accountId: account.id, queue, follow, finished }
}

let storage: OpenStorage
let worker: Worker

beforeAll(async () => {
  storage = await openStorage()
  worker = await storage.startWorker()
})

afterAll(async () => {
  await worker.stop(0)
  await storage.close()
  await rm(filesDirectory, { recursive: true })
  // Services of other test files in this process must not inherit them.
  delete process.env.EXECUTOR_ENV
  delete process.env.EXAMPLE_FILES_DIR
  delete process.env.EXAMPLE_PRIVATE_ADDRESSES
})

function steps(events: RunEvent[], state: string): unknown[] {
  return events.filter(({ type, data }) => type === 'step' && data.state === state).map(({ data }) => data.name)
}

describe('every example', () => {
  test('has the name of its file as id', async () => {
    const files = (await readdir(workflowsDirectory)).filter((file) => file.endsWith('.ts'))
    expect(workflows.map(({ id }) => `${id}.ts`).sort()).toEqual(files.sort())
  })

  test.each(workflows)('$id describes itself and each of its variables', ({ description, variables }) => {
    expect(description).toBeTruthy()
    for (const variable of Object.values(variables.properties as Record<string, { description?: string }>)) {
      expect(variable.description).toBeTruthy()
    }
  })
})

describe('count-words', () => {
  test('counts words and lists the most frequent ones', async () => {
    const { queue, finished } = await newAccount(storage)
    await writeFile(join(filesDirectory, 'text.txt'), 'The kettle, the lantern and the teapot: THE END.')
    const { run } = await finished(await queue('count-words', { path: 'text.txt', top: 1 }))
    expect(run).toMatchObject({ status: 'succeeded', output: { words: 9, top: [{ word: 'the', count: 4 }] } })
  })
})

describe('review-text', () => {
  const review = async (answer: Record<string, unknown>) => {
    const { queue, finished, accountId } = await newAccount(storage)
    await writeFile(join(filesDirectory, 'review.txt'), 'Three short words.')
    const queued = await queue('review-text', { path: 'review.txt', releaseInHours: 0 })
    const wait = await vi.waitUntil(async () => {
      const found = await storage.domain.waits.find(accountId, queued.id, 'review')
      return found?.reachedAt && found
    }, waitLimits)
    expect(wait).toMatchObject({
      status: 'open',
      title: 'Release review.txt?',
      shown: { path: 'review.txt', words: 3 },
    })
    await storage.domain.waits.answer(accountId, queued.id, 'review', answer, { link: 'test', address: null })
    return (await finished(queued)).run
  }

  test('releases a text whose reviewer agrees, and no other', async () => {
    const released = { released: true, words: 3, note: '' }
    expect(await review({ release: true })).toMatchObject({ status: 'succeeded', output: released, attempts: 1 })
    const refused = { released: false, words: 3, note: 'Too short.' }
    expect(await review({ release: false, note: 'Too short.' })).toMatchObject({ output: refused })
  })
})

describe('every example that reads files', () => {
  test.each([
    ['count-words', 'path'],
    ['build-manifest', 'directory'],
  ])('%s refuses a path outside the directory of the examples', async (workflow, variable) => {
    const { queue, finished, directory } = await newAccount(storage)
    const { run } = await finished(await queue(workflow, { [variable]: directory }))
    const message = `${directory} is outside the directory of the examples. EXAMPLE_FILES_DIR sets the directory.`
    expect(run).toMatchObject({ status: 'failed', error: { message } })
  })
})

describe('check-links', () => {
  const token = 'a-token-that-nobody-may-see'

  test('finds the broken link and reads the pages that require the token', async () => {
    const { queue, finished } = await newAccount(storage)
    const site = await startSite({ token, password: 'of no customer here' })
    onTestFinished(() => site.stop())
    const { run } = await finished(await queue('check-links', { url: `${site.url}/#top`, token }))
    const broken = [{ url: `${site.url}/products/teapot`, foundOn: `${site.url}/products`, problem: '404 Not Found' }]
    expect(run).toMatchObject({ status: 'succeeded', output: { broken, unchecked: 0 } })
    const { checked } = run.output as { checked: string[] }
    expect(checked).toContain(`${site.url}/members/offers`)
    expect(checked).toContain(`${site.url}/products?sort=price&page=2`)
    expect(checked.every((url) => url.startsWith(site.url))).toBe(true)
  })

  test('retries the overloaded page, and no page that it has read', async () => {
    const { queue, finished } = await newAccount(storage)
    const site = await startSite({ token, password: 'of no customer here' })
    onTestFinished(() => site.stop())
    const { run, events } = await finished(await queue('check-links', { url: site.url, token }))
    expect(run).toMatchObject({ status: 'succeeded', attempts: 2 })
    expect(steps(events, 'failed')).toEqual(['read /news'])
    expect(steps(events, 'reused')).toEqual(['read /', 'read /products'])
    const done = steps(events, 'finished')
    expect(new Set(done).size).toBe(done.length)
  })

  test('exposes the token in no event, response or file', async () => {
    const { queue, finished, directory } = await newAccount(storage)
    const site = await startSite({ token, password: 'of no customer here' })
    onTestFinished(() => site.stop())
    const { run, events } = await finished(await queue('check-links', { url: site.url, token }))
    expect(run.variables).toMatchObject({ token: '********' })
    expect(JSON.stringify([run, events])).not.toContain(token)
    for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      expect((await readFile(join(entry.parentPath, entry.name))).includes(token), entry.name).toBe(false)
    }
  })

  test('reports pages that require the token, and stops at pagesMax', async () => {
    const { queue, finished } = await newAccount(storage)
    const site = await startSite({ token, password: 'of no customer here' })
    onTestFinished(() => site.stop())
    const { run } = await finished(await queue('check-links', { url: `${site.url}/members`, pagesMax: 1 }))
    expect(run.output).toMatchObject({ broken: [{ foundOn: null, problem: '401 Unauthorized' }] })
    const bounded = await finished(await queue('check-links', { url: `${site.url}/products`, pagesMax: 2 }))
    expect(bounded.run.output).toMatchObject({ checked: { length: 2 }, unchecked: 3 })
  })

  test('never sends the token to another origin, even after a redirect', async () => {
    const { queue, finished } = await newAccount(storage)
    let requestCount = 0
    const target = await startServer('127.0.0.1', (_request, response) => {
      requestCount += 1
      response.end()
    })
    const url = await startServer('127.0.0.1', (_, response) => response.writeHead(302, { Location: target }).end())
    const { run } = await finished(await queue('check-links', { url, token }))
    expect(run.output).toEqual({ checked: [url], unchecked: 0, broken: [] })
    expect(requestCount).toBe(0)
  })

  test('reports a website that does not reply or is not public, after the last attempt', async () => {
    const { queue, finished } = await newAccount(storage)
    const site = await startSite({ token, password: 'of no customer here' })
    await site.stop()
    let requestCount = 0
    const url = await startServer('127.0.0.2', (_, response) => response.end(String(++requestCount)))
    const refusal =
      '127.0.0.2 is not a public address: EXAMPLE_PRIVATE_ADDRESSES lists the private addresses that examples may reach.'
    const queued = [
      queue('check-links', { url: site.url }),
      queue('check-links', { url }),
      queue('page-title', { url }),
    ]
    const ended = await Promise.all(queued.map(async (run) => (await finished(await run)).run))
    const broken = (url: string, reason: string) => [{ url, foundOn: null, problem: `no response (${reason})` }]
    expect(ended).toMatchObject([
      { status: 'succeeded', attempts: 3, output: { broken: broken(`${site.url}/`, 'ECONNREFUSED') } },
      { status: 'succeeded', attempts: 3, output: { broken: broken(url, refusal) } },
      { status: 'failed', error: { message: refusal } },
    ])
    expect(requestCount).toBe(0)
  })
})

describe('build-manifest', () => {
  const count = 130

  const paths = Array.from({ length: count }, (_, index) => `below/${index % 2 ? 'deeper/' : ''}${index}.txt`).sort()

  /** Each file contains its path. */
  async function directoryOfFiles(): Promise<string> {
    const directory = await temporaryDirectory()
    await mkdir(join(directory, 'below', 'deeper'), { recursive: true })
    await Promise.all(paths.map((path) => writeFile(join(directory, path), path)))
    await symlink(directory, join(directory, 'loop'))
    return directory
  }

  test('hashes every file below the directory, as sha256sum does', async () => {
    const { queue, finished } = await newAccount(storage)
    const directory = await directoryOfFiles()
    const lines = paths.map((path) => `${createHash('sha256').update(path).digest('hex')}  ${path}\n`)
    const digest = createHash('sha256').update(lines.join('')).digest('hex')
    const { run, events } = await finished(await queue('build-manifest', { directory }))
    expect(run).toMatchObject({ status: 'succeeded', output: { files: count, bytes: paths.join('').length, digest } })
    const percents = events.filter(({ type }) => type === 'progress').map(({ data }) => data.percent as number)
    expect(percents).toEqual([...percents].sort((a, b) => a - b))
    expect(percents.at(-1)).toBe(100)
  })

  test('ends immediately when it is cancelled', async () => {
    const { queue, follow, finished, runs, accountId } = await newAccount(storage)
    const run = await queue('build-manifest', { directory: await directoryOfFiles(), pauseMilliseconds: 60_000 })
    for await (const event of follow(run)) if (event?.data.name === 'hash from file 1') break
    await runs.cancel(accountId, run.id)
    const { run: ended, events } = await finished(run)
    expect(ended).toMatchObject({ status: 'cancelled' })
    // It stopped by itself: a process killed after the grace period of 10 seconds reports no step.
    expect(steps(events, 'failed')).toEqual(['hash from file 1'])
  })

  test('continues with its finished steps when another worker takes over', async () => {
    // In a separate store, so that the other tests' worker does not claim this run.
    const storage = await openStorage()
    onTestFinished(storage.close)
    const { queue, follow, finished } = await newAccount(storage)
    const run = await queue('build-manifest', { directory: await directoryOfFiles(), pauseMilliseconds: 300 })
    const first = await storage.startWorker()
    for await (const event of follow(run)) if (event?.data.state === 'finished' && event.data.name !== 'list') break
    await first.stop(0)
    const second = await storage.startWorker()
    onTestFinished(() => second.stop(0))
    const { run: ended, events } = await finished(run)
    expect(ended).toMatchObject({ status: 'succeeded', attempts: 2, output: { files: count } })
    const all = ['list', 'hash from file 1', 'hash from file 65', 'hash from file 129']
    expect(steps(events, 'finished')).toEqual(all)
    // One more step may have finished before the first worker stopped.
    const before = steps(
      events.filter(({ data }) => data.attempt === 1),
      'finished',
    )
    expect(before.length).toBeGreaterThanOrEqual(2)
    expect(before.length).toBeLessThan(all.length)
    expect(steps(events, 'reused')).toEqual(before)
  })
})
