/** The findings of `doctor` for everything but the store, with real faults. */
import { chmodSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  checkBrowser,
  checkIsolation,
  ExaminedBrowser,
  type StartedBrowser,
} from '../../src/commands/doctor/browser.ts'
import {
  checkConfiguration,
  checkWorkflows,
  loadWorkflows,
  readConfiguration,
} from '../../src/commands/doctor/configuration.ts'
import { examine, openEmbeddedStore } from '../../src/commands/doctor/doctor.ts'
import {
  checkDataDirectory,
  checkFileSystem,
  checkFreeSpace,
  statFileSystem,
} from '../../src/commands/doctor/embedded-store.ts'
import { checkPort, checkService, checkWorkers, findService } from '../../src/commands/doctor/service.ts'
import { readConfig } from '../../src/config/config.ts'
import { listen } from '../../src/contract/listener.ts'
import { operator } from '../../src/domain/audit-log/audit-log.ts'
import { Deployments } from '../../src/domain/deployments/deployments.ts'
import { Workers } from '../../src/domain/queue/workers.ts'
import { managementApp } from '../../src/surfaces/management/management.ts'
import { newDirectory, openStore, type Test } from '../support/domain.ts'
import { writtenSnapshot } from '../support/snapshots.ts'
import { moduleText, writeModules } from '../support/worker.ts'

describe('the configuration', () => {
  test.for<[object, string[], string]>([
    [{ LOG_LEVEL: 'loud' }, ['LOG_LEVEL'], 'Set it to one of fatal,'],
    [{ WORKER_SLOTS: 'x', LEASE_SECONDS: '1' }, ['LEASE_SECONDS', 'WORKER_SLOTS'], 'LEASE_SECONDS is "1": set it to'],
    [{ DASHBOARD_PORT: '3001' }, ['DASHBOARD_PORT'], 'Set them to different ports.'],
    [{ DATABASE_URL: 'mysql://x' }, ['DATABASE_URL'], 'Set it to a URL such as postgres://'],
    [{ BROWSER_PATH: '/x', BROWSER_CDP_URL: 'ws://x' }, ['BROWSER_CDP_URL', 'BROWSER_PATH'], 'Unset one of them.'],
  ])('%j fails and lists each invalid variable', ([environment, invalid, advice]) => {
    const read = readConfiguration({ HOST: '127.0.0.2', ...environment })
    expect([...read.invalid].sort()).toEqual(invalid)
    expect(read.config.HOST).toBe('127.0.0.2')
    const finding = checkConfiguration(read, environment as NodeJS.ProcessEnv)
    expect(finding).toMatchObject({ status: 'fail', advice: expect.stringContaining(advice) })
  })
})

describe('the data directory', () => {
  test('passes when it is writable, and the check leaves no file', async (test) => {
    const directory = await newDirectory(test)
    expect(await checkDataDirectory(directory)).toEqual({ status: 'ok', detail: directory, advice: null })
    expect(readdirSync(directory)).toEqual([])
  })

  test('fails when it is a file, below a file, or not writable', async (test) => {
    const file = join(await newDirectory(test), 'file')
    writeFileSync(file, '')
    for (const directory of [file, join(file, 'data'), '/proc']) {
      const finding = await checkDataDirectory(directory)
      expect(finding).toMatchObject({ status: 'fail', detail: expect.stringContaining(directory) })
      expect(finding.advice).toBe('Set DATA_DIR to a directory that the user of the service can write to.')
    }
  })

  test('warns when other users have access to a file in it, or would have', async (test) => {
    const directory = await newDirectory(test)
    const store = join(directory, 'service.db')
    writeFileSync(store, '', { mode: 0o644 })
    chmodSync(directory, 0o700)
    expect(await checkDataDirectory(directory)).toMatchObject({ status: 'ok' })
    chmodSync(directory, 0o755)
    expect(await checkDataDirectory(directory)).toEqual({
      status: 'warn',
      detail: `other users of this machine have access to ${store} (its mode is 0644)`,
      advice: `Run \`chmod -R go= ${directory}\`.`,
    })
    chmodSync(store, 0o600)
    expect(await checkDataDirectory(directory)).toMatchObject({ status: 'ok' })
  })

  test('warns about little free space', async () => {
    expect(checkFreeSpace(await statFileSystem('/proc'))).toMatchObject({ status: 'warn' })
    expect(checkFreeSpace({ bavail: 999, bsize: 1_000_000 })).toMatchObject({
      status: 'warn',
      detail: expect.stringMatching(/^999 MB free/),
    })
    expect(checkFreeSpace({ bavail: 1000, bsize: 1_000_000 })).toMatchObject({
      status: 'ok',
      detail: '1.0 GB free',
    })
    expect(checkFileSystem(await statFileSystem('/proc/none/yet'))).toMatchObject({ status: 'ok' })
  })

  test.each([
    [0x6969, 'NFS'],
    [0xff534d42, 'CIFS'],
    // Signed, as on a 32-bit machine.
    [0xff534d42 | 0, 'CIFS'],
    [0x01021997, '9p'],
    [0x65735546, 'FUSE'],
  ])('warns about a network file system: %d, %s', (type, name) => {
    expect(checkFileSystem({ type })).toMatchObject({ status: 'warn', detail: expect.stringContaining(`on ${name}:`) })
  })
})

/** Listens with a server, and returns its port. */
async function startProgram(test: Test, server: Server = createServer()): Promise<number> {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  test.onTestFinished(() => void server.close())
  return (server.address() as { port: number }).port
}

describe('a port', () => {
  test('fails when another program listens on it, and names the program', async (test) => {
    const port = await startProgram(test)
    const config = readConfig({ EXECUTION_PORT: String(port), DATA_DIR: await newDirectory(test) })
    expect(await checkPort(config, 'EXECUTION_PORT', 'absent')).toEqual({
      status: 'fail',
      detail: expect.stringMatching(
        new RegExp(`^127.0.0.1:${port} is in use by another program \\(.+, process ${process.pid}\\)$`),
      ),
      advice: 'Stop that program, or set EXECUTION_PORT to another port.',
    })
    // A running service does not make it the service's port.
    expect(await checkPort(config, 'EXECUTION_PORT', 'alive')).toMatchObject({ status: 'fail' })
  })

  test('passes when it is free, 0, or used by a process that has the store open', async (test) => {
    const directory = await newDirectory(test)
    const server = createServer()
    const port = await startProgram(test, server)
    const config = readConfig({ EXECUTION_PORT: String(port), DASHBOARD_PORT: '0', DATA_DIR: directory })
    const store = await openStore(test, directory)
    await store.check()
    const used = { status: 'ok', detail: `127.0.0.1:${port} is in use by the running service` }
    expect(await checkPort(config, 'EXECUTION_PORT', 'alive')).toMatchObject(used)
    await new Promise((resolve) => server.close(resolve))
    const free = { status: 'ok', detail: `127.0.0.1:${port} is free` }
    expect(await checkPort(config, 'EXECUTION_PORT', 'absent')).toMatchObject(free)
    expect(await checkPort(config, 'DASHBOARD_PORT', 'absent')).toMatchObject({ detail: 'any free port' })
  })

  test('fails on an address of another machine', async () => {
    expect(await checkPort(readConfig({ HOST: '192.0.2.1' }), 'EXECUTION_PORT', 'absent')).toMatchObject({
      status: 'fail',
      detail: '192.0.2.1 is not an address of this machine',
    })
  })
})

/** Serves a management address. */
async function management(test: Test, ready: () => Promise<void>) {
  const app = managementApp({ metrics: async () => '', ready })
  const { url, stop } = await listen(app, { host: '127.0.0.1', port: 0, name: 'MANAGEMENT_PORT' })
  test.onTestFinished(() => stop(0))
  return { HOST: '127.0.0.1', MANAGEMENT_PORT: Number(new URL(url).port) }
}

describe('the service', () => {
  test('passes when it is ready, and fails when it is not', async (test) => {
    const ready = await management(test, async () => {})
    const notReady = await management(test, async () => Promise.reject(new Error('The store is away.')))
    expect([await findService(ready), await findService(notReady)]).toEqual(['alive', 'alive'])
    expect(await checkService(ready, 'alive')).toMatchObject({
      status: 'ok',
      detail: expect.stringMatching(/ready/),
    })
    expect(await checkService(notReady, 'alive')).toMatchObject({
      status: 'fail',
      detail: expect.stringContaining('not ready'),
    })
  })

  test('need not run, and another program on its port does not count', async (test) => {
    const other = createServer((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'))
    const address = { HOST: '127.0.0.1', MANAGEMENT_PORT: await startProgram(test, other) }
    expect(await findService(address)).toBe('absent')
    expect(await checkService(address, 'absent')).toMatchObject({
      status: 'ok',
      detail: expect.stringMatching(/^not running, or not at http:\/\/127\.0\.0\.1:\d+ \(MANAGEMENT_PORT\)$/),
    })
    expect(await findService({ HOST: '127.0.0.1', MANAGEMENT_PORT: 0 })).toBe('absent')
  })

  test('fails when it accepts connections but does not reply', async (test) => {
    const silent = createServer((socket) => test.onTestFinished(() => void socket.destroy()))
    const address = { HOST: '127.0.0.1', MANAGEMENT_PORT: await startProgram(test, silent) }
    expect(await findService(address, 50)).toBe('hanging')
    expect(await checkService(address, 'hanging')).toMatchObject({ status: 'fail' })
  })

  test('fails without a live worker', async (test) => {
    const directory = await newDirectory(test)
    const store = await openStore(test, directory)
    const read = await openEmbeddedStore(directory)
    test.onTestFinished(() => void ('inspection' in read && read.inspection?.close()))
    const now = Date.now()
    const none = { status: 'fail', detail: 'no worker is alive: runs stay queued' }
    expect(await checkWorkers(read, 'alive', now)).toMatchObject(none)
    expect(await checkWorkers(read, 'absent', now)).toMatchObject({ status: 'ok' })
    const worker = { id: 'w', host: hostname(), slots: 4, startedAt: now }
    await new Workers(store, () => now).announce(worker, 15)
    const alive = { status: 'ok', detail: `1 worker on ${hostname()}, with 4 slots` }
    expect(await checkWorkers(read, 'alive', now + 14_000)).toMatchObject(alive)
    expect(await checkWorkers(read, 'alive', now + 16_000)).toMatchObject(none)
  })
})

describe('workflows', () => {
  const check = async (directory: string) =>
    checkWorkflows(await loadWorkflows(readConfig({ WORKFLOWS_DIR: directory })), directory)

  test('are counted, as are those that use a browser', async (test) => {
    const modules = { 'a.ts': moduleText('a'), 'b.ts': moduleText('b', 'browser: true, run: () => null') }
    const folder = await writeModules(test, modules)
    const detail = `2 workflows in ${folder}, 1 with a browser`
    expect(await check(folder)).toEqual({ status: 'ok', detail, advice: null })
  })

  test('that are deployed count without WORKFLOWS_DIR, and one that needs a browser makes its failure an error', async (test) => {
    const directory = await newDirectory(test)
    const store = await openStore(test, directory)
    const module = 'export default 1'
    const snapshot = writtenSnapshot({ a: { module }, b: { module, usesBrowser: true } })
    await new Deployments(store).deploy(snapshot, { accountId: null, by: operator, directory: '/workflows' })
    const environment = { DATA_DIR: directory, BROWSER_PATH: '/nowhere/chromium' }
    const found: Record<string, object> = {}
    for await (const { name, status, detail } of examine(environment as NodeJS.ProcessEnv))
      found[name] = { status, detail }
    expect(found.workflows).toEqual({ status: 'ok', detail: '2 workflows deployed, 1 with a browser' })
    expect(found.browser).toMatchObject({ status: 'fail', detail: expect.stringContaining('/nowhere/chromium') })
  })

  test.for([
    ['that do not load', 'export default {', 'broken.ts:1 has a syntax error'],
    ['that are none', 'export default 7', 'broken.ts is not a valid workflow: its default export'],
    [
      'whose schema is not valid',
      moduleText('a', "variables: { type: 'object', minProperties: -1 }, run: () => 1"),
      '"a"',
    ],
    ['that end the process', 'process.exit(3)', 'ended its process while loading (exit code 3)'],
  ])('%s fail', async ([, text = '', reason], test) => {
    const folder = await writeModules(test, { 'broken.ts': text })
    const finding = await check(folder)
    expect(finding).toMatchObject({ status: 'fail', detail: expect.stringContaining(reason ?? '') })
    expect(finding.detail).not.toContain('\n')
  })

  test('are a warning when there are none', async (test) => {
    expect(await check(await newDirectory(test))).toMatchObject({ status: 'warn' })
  })
})

describe('the browser', () => {
  test('is a failure if missing when a workflow uses one, and a warning otherwise', async (test) => {
    const browser = new ExaminedBrowser({ path: '/nowhere/chromium', cdpUrl: undefined })
    test.onTestFinished(() => browser.close())
    const started = await browser.start()
    const detail = 'BROWSER_PATH is "/nowhere/chromium", which does not run (ENOENT)'
    expect(checkBrowser(started, 1)).toMatchObject({ status: 'fail', detail })
    expect(checkBrowser(started, 0)).toMatchObject({ status: 'warn', detail })
    expect(await checkIsolation(started)).toMatchObject({ status: 'warn', advice: 'Fix the browser first.' })
  })

  test('fails when it does not isolate contexts, and the leaks are listed', async () => {
    const started: StartedBrowser = {
      endpoint: { url: 'ws://127.0.0.1:1/secret' },
      version: '153.0',
      description: '/usr/bin/chromium',
      sandboxed: true,
      seconds: 1,
    }
    const leaks = [
      'a cookie of one context is visible in another',
      'local storage of one context is visible in another',
    ]
    const finding = await checkIsolation(started, async () => leaks)
    expect(finding).toMatchObject({ status: 'fail', detail: leaks.join('; ') })
    const broken = await checkIsolation(started, async () => Promise.reject(new Error('The browser ended.')))
    expect(broken).toMatchObject({ status: 'fail', detail: 'the check failed (The browser ended)' })
    expect(checkBrowser(started, 1)).toMatchObject({ status: 'ok', detail: expect.stringMatching(/, sandboxed$/) })
    expect(checkBrowser({ ...started, sandboxed: false }, 1)).toMatchObject({ status: 'warn' })
  })
})
