/** Browsers for tests of src/worker/browser: run like a worker's, inspected from outside, and closed with the test. */
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { type CDPSession, chromium } from 'playwright-core'
import { vi } from 'vitest'
import { BrowserHost, type BrowserOptions } from '../../src/worker/browser/browser-host.ts'
import { testBrowser } from './browser.ts'
import { newDirectory, type Test } from './domain.ts'
import { waitLimits } from './timeouts.ts'

/**
 * Writes a script that runs the tests' browser, to be used as BROWSER_PATH.
 *
 * @param before shell commands that run before the browser.
 */
export async function browserProgram(test: Test, before = ''): Promise<string> {
  const { executable, environment } = await testBrowser()
  const variables = Object.entries(environment).map(([name, value]) => `export ${name}='${value}'`)
  const path = join(await newDirectory(test), 'browser')
  const script = ['#!/bin/sh', ...variables, before, `exec '${executable}' "$@"`, ''].join('\n')
  writeFileSync(path, script, { mode: 0o755 })
  return path
}

/** Opens a host that is closed with the test. Returns it with its log. */
export async function openBrowserHost(test: Test, options: Partial<BrowserOptions> = {}) {
  const log: { level: number; msg: string; milliseconds?: number; error?: string; err?: { message: string } }[] = []
  const logger = pino({ level: 'trace' }, { write: (line: string) => void log.push(JSON.parse(line)) })
  const path = options.cdpUrl ? undefined : (options.path ?? (await browserProgram(test)))
  const host = new BrowserHost({ cdpUrl: undefined, ...options, path }, logger)
  test.onTestFinished(() => host.close())
  return { host, log }
}

/** Connects to the browser at a Playwright address and calls `ask` with a DevTools session. */
export async function inspect<Result>(url: string, ask: (session: CDPSession) => Promise<Result>): Promise<Result> {
  const browser = await chromium.connect(url)
  try {
    return await ask(await browser.newBrowserCDPSession())
  } finally {
    await browser.close()
  }
}

export function contextCount(url: string): Promise<number> {
  return inspect(url, async (session) => (await session.send('Target.getBrowserContexts')).browserContextIds.length)
}

/** Returns the ids of the browser's processes, the main process first. */
export async function findBrowserProcesses(url: string): Promise<number[]> {
  const { processInfo } = await inspect(url, (session) => session.send('SystemInfo.getProcessInfo'))
  const first = processInfo.filter(({ type }) => type === 'browser')
  return [...first, ...processInfo.filter((each) => !first.includes(each))].map(({ id }) => id)
}

/** Starts a process that runs the module, and waits for its first message. */
export async function startReportingProcess(test: Test, module: URL, argument: string) {
  const child = fork(fileURLToPath(module), [argument], { execArgv: [] })
  test.onTestFinished(() => void child.kill('SIGKILL'))
  const [message] = await once(child, 'message')
  return { child, pid: child.pid ?? 0, message: String(message) }
}

/** Returns the processes that host a browser for `pid`. */
export function findHostProcesses(pid: number): number[] {
  const pids = readdirSync('/proc').filter((each) => {
    return /^\d+$/.test(each) && parentOf(each) === pid && read(each, 'cmdline').includes('host-process.ts')
  })
  return pids.map(Number)
}

/** Returns the only process that hosts a browser for `pid`, which defaults to this process. */
export function findHostProcess(pid = process.pid): number {
  const [host, ...others] = findHostProcesses(pid)
  if (!host || others.length > 0) throw new Error(`Process ${pid} does not host exactly one browser.`)
  return host
}

function parentOf(pid: string): number {
  return Number(/\) \S (\d+)/.exec(read(pid, 'stat'))?.[1])
}

function read(pid: string, file: string): string {
  try {
    return readFileSync(join('/proc', pid, file), 'utf8')
  } catch {
    // The process has ended.
    return ''
  }
}

/** Starts a browser with a DevTools port, as a remote browser would be. */
export async function startRemoteBrowser(test: Test) {
  const { executable, environment } = await testBrowser()
  const profile = await newDirectory(test)
  const flags = ['--headless', '--no-sandbox', '--remote-debugging-port=0', `--user-data-dir=${profile}`]
  const env = { ...process.env, ...environment }
  const child = spawn(executable, [...flags, 'about:blank'], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  test.onTestFinished(() => void child.kill('SIGKILL'))
  let stderr = ''
  child.stderr.on('data', (data) => {
    stderr += data
  })
  const [webSocketUrl] = await vi.waitUntil(() => /ws:\S+(?=\s)/.exec(stderr), waitLimits)
  return { child, webSocketUrl, httpUrl: new URL(webSocketUrl.replace('ws:', 'http:')).origin }
}
