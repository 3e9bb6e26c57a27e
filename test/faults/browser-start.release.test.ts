/** Browsers that do not start: the error gives the reason, and retries back off. */
import { existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { BrowserMissing } from '../../src/worker/browser/browser-host.ts'
import { browserProgram, findBrowserProcesses, openBrowserHost } from '../support/browser-host.ts'
import { newDirectory } from '../support/domain.ts'
import { waitLimits } from '../support/timeouts.ts'

const isStart = 'test "$1" = --version ||'

test('a missing browser is an error for each user, and is searched again', async (test) => {
  const path = join(await newDirectory(test), 'browser')
  const { host } = await openBrowserHost(test, { path })
  const results = await Promise.allSettled([host.acquire(), host.acquire()])
  const reason = new BrowserMissing(
    `BROWSER_PATH is "${path}", which does not run (ENOENT): set it to the executable of Chrome or Chromium.`,
  )
  expect(results).toEqual([1, 2].map(() => ({ status: 'rejected', reason })))
  symlinkSync(await browserProgram(test), path)
  expect(await host.acquire()).toMatchObject({ url: expect.stringMatching(/^ws:/) })
})

test('a browser that does not start reports why, and only the first retry is immediate', async (test) => {
  const path = await browserProgram(test, `${isStart} { echo "no more colours" >&2; exit 3; }`)
  const { host, log } = await openBrowserHost(test, { path })
  await expect(host.acquire()).rejects.toThrow(/^The browser did not start: .*\nno more colours$/)
  await expect(host.acquire()).rejects.toThrow('no more colours')
  await expect(host.acquire()).rejects.toThrow('no more colours')
  // A waiting user gets an error when the worker stops.
  const waiting = host.acquire()
  waiting.catch(() => {})
  const waits = () => log.flatMap(({ milliseconds }) => milliseconds ?? [])
  await vi.waitUntil(() => waits().length === 2, waitLimits)
  expect(waits()).toEqual([400, 800])
  await host.close()
  await expect(waiting).rejects.toThrow('The worker is stopping and starts no browser.')
})

test.for([
  // The errors of a system without user namespaces, and of a container that may not call chroot.
  'No usable sandbox!',
  'Check failed: sys_chroot("/proc/self/fdinfo/") == 0',
])(
  'the sandbox is tried first unless root, and dropped with a warning where it is not allowed: %s',
  async (complaint, test) => {
    vi.spyOn(process, 'getuid').mockReturnValue(1000)
    test.onTestFinished(() => void vi.restoreAllMocks())
    const failing = `case "$*" in *--no-sandbox*) ;; *) echo '${complaint}' >&2; exit 1;; esac`
    const path = await browserProgram(test, `${isStart} ${failing}`)
    const { host, log } = await openBrowserHost(test, { path })
    const { url } = await host.acquire()
    expect(host.describe()).toMatchObject({ sandboxed: false })
    const [browser = 0] = await findBrowserProcesses(url)
    process.kill(browser, 'SIGKILL')
    await host.acquire()
    // Once: the second start does not try the sandbox again.
    expect(log.filter(({ level }) => level === 40).map(({ msg, err }) => [msg, err?.message.split(':')[0]])).toEqual([
      ['this system does not allow the browser its sandbox; running without it', 'The browser did not start'],
    ])
  },
)

test('a browser that runs as root is a warning, once', async (test) => {
  vi.spyOn(process, 'getuid').mockReturnValue(0)
  test.onTestFinished(() => void vi.restoreAllMocks())
  const { host, log } = await openBrowserHost(test)
  const { url } = await host.acquire()
  const [browser = 0] = await findBrowserProcesses(url)
  process.kill(browser, 'SIGKILL')
  await host.acquire()
  const warnings = log.filter(({ level }) => level === 40).map(({ msg }) => msg)
  expect(warnings).toEqual(['browser runs without its sandbox, which does not work as root'])
})

test('a stopping worker does not wait for a browser that is starting', async (test) => {
  const file = join(await newDirectory(test), 'started')
  const { host } = await openBrowserHost(test, {
    // Like Chromium, it ends when its control pipe closes.
    path: await browserProgram(test, `${isStart} { touch ${file}; exec cat <&3 >/dev/null; }`),
  })
  const acquiring = host.acquire()
  acquiring.catch(() => {})
  await vi.waitUntil(() => existsSync(file), waitLimits)
  await host.close()
  await expect(acquiring).rejects.toThrow('The worker is stopping and starts no browser.')
  await expect(host.acquire()).rejects.toThrow('The worker is stopping and starts no browser.')
})
