/** The browser of a worker is shared, restarted after a crash, ended when idle, and never left behind. */
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, type TestContext, test, vi } from 'vitest'
import { createTemporaryDirectory } from '../../src/storage/temporary-directory.ts'
import {
  browserProgram,
  contextCount,
  findBrowserProcesses,
  findHostProcess,
  inspect,
  openBrowserHost,
  startReportingProcess,
} from '../support/browser-host.ts'
import { newDirectory } from '../support/domain.ts'
import { waitForProcessEnd } from '../support/processes.ts'
import { waitLimits } from '../support/timeouts.ts'

/** Makes browsers create their files in a new directory, whose path is short enough for their sockets. */
async function ownTemporaryDirectory(test: TestContext): Promise<string> {
  const directory = mkdtempSync('/tmp/test-')
  test.onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  vi.stubEnv('TMPDIR', directory)
  test.onTestFinished(() => void vi.unstubAllEnvs())
  return directory
}

test('simultaneous users share one browser, which ends with its files when idle', async (test) => {
  const temporary = await ownTemporaryDirectory(test)
  const { host, log } = await openBrowserHost(test, { idleMilliseconds: 50 })
  expect(host.describe()).toBe(undefined)
  const [first, second, third] = await Promise.all([host.acquire(), host.acquire(), host.acquire()])
  expect(second).toEqual(first)
  expect(third).toEqual(first)
  expect(log.filter(({ msg }) => msg === 'browser started')).toHaveLength(1)
  expect(host.describe()).toMatchObject({ from: 'BROWSER_PATH', version: expect.stringMatching(/^Chromium \d/) })
  const processes = await findBrowserProcesses(first.url)
  host.release()
  host.release()
  expect(await host.acquire()).toEqual(first)
  host.release()
  host.release()
  await Promise.all(processes.map(waitForProcessEnd))
  await vi.waitUntil(() => readdirSync(temporary).every((name) => !name.includes('-browser-')), waitLimits)
  expect(host.describe()).toBe(undefined)
  // No start failed.
  expect(log.filter(({ level }) => level >= 50)).toEqual([])
})

test('a killed browser or host process is replaced for the next user', async (test) => {
  const { host } = await openBrowserHost(test)
  const first = await host.acquire()
  const [browser = 0] = await findBrowserProcesses(first.url)
  process.kill(browser, 'SIGKILL')
  // Immediately, before the exit event.
  const second = await host.acquire()
  expect(second).not.toEqual(first)
  const [another = 0] = await findBrowserProcesses(second.url)
  process.kill(findHostProcess(), 'SIGKILL')
  const third = await host.acquire()
  expect(await contextCount(third.url)).toBe(0)
  await waitForProcessEnd(another)
})

test('the address of a browser is unguessable and local', async (test) => {
  const { host } = await openBrowserHost(test)
  const { url } = await host.acquire()
  expect(url).toMatch(/^ws:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{64}$/)
  await expect(inspect(new URL('/', url).href, async () => 'open')).rejects.toThrow()
})

test('browser and host process have no secret of the service in their environment', async (test) => {
  for (const name of ['ENCRYPTION_KEY', 'ENCRYPTION_KEY_PREVIOUS', 'DATABASE_URL', 'BROWSER_CDP_URL']) {
    vi.stubEnv(name, 'canary')
  }
  test.onTestFinished(() => void vi.unstubAllEnvs())
  const file = join(await newDirectory(test), 'environment')
  const { host } = await openBrowserHost(test, { path: await browserProgram(test, `env >> ${file}`) })
  await host.acquire()
  for (const each of [file, `/proc/${findHostProcess()}/environ`]) {
    const environment = readFileSync(each, 'utf8')
    expect(environment).toContain('PATH=')
    expect(environment).not.toContain('canary')
  }
})

test('a symbolic link with the name of a browser directory is not followed', async (test) => {
  const [temporary, target] = [await ownTemporaryDirectory(test), await newDirectory(test)]
  const link = join(temporary, 'execution-service-browser-link')
  symlinkSync(target, link)
  for (const path of [link, target]) lutimesSync(path, 0, 0)
  await createTemporaryDirectory('browser', 'test').remove()
  expect(readdirSync(target)).toEqual([])
  expect(existsSync(link)).toBe(true)
})

/** Starts a process with a browser, as a worker has it, with its files in a new directory. */
async function startWorker(test: TestContext) {
  const temporary = await ownTemporaryDirectory(test)
  const module = new URL('../browser/worker-process.ts', import.meta.url)
  const { child, pid, message: url } = await startReportingProcess(test, module, await browserProgram(test))
  const host = findHostProcess(pid)
  const files = () => readdirSync(temporary).filter((name) => name.startsWith('execution-service-browser-'))
  expect(files()).toHaveLength(1)
  return { child, host, processes: [host, ...(await findBrowserProcesses(url))], temporary, files }
}

test('a killed worker leaves no browser process and no file', async (test) => {
  const { child, processes, files } = await startWorker(test)
  expect(processes.length).toBeGreaterThan(1)
  child.kill('SIGKILL')
  await Promise.all(processes.map(waitForProcessEnd))
  expect(files()).toEqual([])
})

test('files that cannot be removed do not prevent the next browser', async (test) => {
  const directory = join(await ownTemporaryDirectory(test), 'loop')
  mkdirSync(directory)
  const { host } = await openBrowserHost(test)
  vi.stubEnv('TMPDIR', directory)
  await host.acquire()
  vi.unstubAllEnvs()
  renameSync(directory, `${directory} before`)
  symlinkSync(directory, directory)
  process.kill(findHostProcess(), 'SIGKILL')
  await host.acquire()
})

test('a host process removes only directories of browsers', async (test) => {
  const directory = await ownTemporaryDirectory(test)
  const program = fileURLToPath(new URL('../../src/worker/browser/host-process.ts', import.meta.url))
  for (const words of [[], [directory]]) execFileSync(process.execPath, [program, ...words])
  expect(existsSync(directory)).toBe(true)
})

test.for(['killed together', 'killed while its host process hangs'])(
  'a worker that is %s leaves no browser process and no file, although no other starts',
  async (how, test) => {
    const { child, host, processes, files } = await startWorker(test)
    process.kill(host, 'SIGSTOP')
    child.kill('SIGKILL')
    if (how === 'killed together') process.kill(host, 'SIGKILL')
    await Promise.all(processes.map(waitForProcessEnd))
    await vi.waitUntil(() => files().length === 0, waitLimits)
  },
)

test('files that a crash of the machine has left are removed by the next browser, and those in use are not', async (test) => {
  const temporary = await ownTemporaryDirectory(test)
  const left = join(temporary, 'execution-service-browser-left')
  const files = () => readdirSync(temporary).filter((name) => name.startsWith('execution-service-browser-'))
  mkdirSync(left)
  utimesSync(left, 0, 0)
  const living = await openBrowserHost(test)
  await living.host.acquire()
  expect(files()).toHaveLength(1)
  expect(existsSync(left)).toBe(false)
  for (const name of files()) utimesSync(join(temporary, name), 0, 0)
  const other = await openBrowserHost(test)
  await other.host.acquire()
  // The lock shows that it is in use, whatever its age.
  expect(files()).toHaveLength(2)
})
