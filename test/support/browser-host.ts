/** Browsers for tests of src/worker/browser: run as a worker runs them, looked into from outside, and gone with their test. */
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
import { newPlace, type Test } from './domain.ts'
import { waitLimits } from './timeouts.ts'

/**
 * A program that runs the tests' browser, which BROWSER_PATH can name.
 *
 * @param before lines of shell that come before the browser.
 */
export async function browserProgram(test: Test, before = ''): Promise<string> {
  const { executable, environment } = await testBrowser()
  const variables = Object.entries(environment).map(([name, value]) => `export ${name}='${value}'`)
  const path = join(await newPlace(test), 'browser')
  const script = ['#!/bin/sh', ...variables, before, `exec '${executable}' "$@"`, ''].join('\n')
  writeFileSync(path, script, { mode: 0o755 })
  return path
}

/** A host that is closed when the test ends, and what it has logged. */
export async function openBrowserHost(test: Test, options: Partial<BrowserOptions> = {}) {
  const log: { level: number; msg: string; milliseconds?: number; error?: string; err?: { message: string } }[] = []
  const logger = pino({ level: 'trace' }, { write: (line: string) => void log.push(JSON.parse(line)) })
  const path = options.cdpUrl ? undefined : (options.path ?? (await browserProgram(test)))
  const host = new BrowserHost({ cdpUrl: undefined, ...options, path }, logger)
  test.onTestFinished(() => host.close())
  return { host, log }
}

/** Asks the browser behind an address of Playwright's. */
export async function inspect<Answer>(url: string, ask: (session: CDPSession) => Promise<Answer>): Promise<Answer> {
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

/** The browser's processes; the first one is the browser itself. */
export async function findBrowserProcesses(url: string): Promise<number[]> {
  const { processInfo } = await inspect(url, (session) => session.send('SystemInfo.getProcessInfo'))
  const first = processInfo.filter(({ type }) => type === 'browser')
  return [...first, ...processInfo.filter((each) => !first.includes(each))].map(({ id }) => id)
}

/** A process that runs the module, and its first word. */
export async function startReportingProcess(test: Test, module: URL, argument: string) {
  const child = fork(fileURLToPath(module), [argument], { execArgv: [] })
  test.onTestFinished(() => void child.kill('SIGKILL'))
  const [word] = await once(child, 'message')
  return { child, pid: child.pid ?? 0, word: String(word) }
}

/** The processes that run a browser for `pid`. */
export function findHostProcesses(pid: number): number[] {
  const found = readdirSync('/proc').filter((each) => {
    return /^\d+$/.test(each) && parentOf(each) === pid && read(each, 'cmdline').includes('host-process.ts')
  })
  return found.map(Number)
}

/** The one process that runs a browser for `pid`, this process unless given. */
export function findHostProcess(pid = process.pid): number {
  const [found, ...others] = findHostProcesses(pid)
  if (!found || others.length > 0) throw new Error(`Process ${pid} does not run one browser.`)
  return found
}

function parentOf(pid: string): number {
  return Number(/\) \S (\d+)/.exec(read(pid, 'stat'))?.[1])
}

function read(pid: string, file: string): string {
  try {
    return readFileSync(join('/proc', pid, file), 'utf8')
  } catch {
    // It has just ended.
    return ''
  }
}

/** A browser that somebody else has started, for whoever speaks the DevTools protocol. */
export async function startRemoteBrowser(test: Test) {
  const { executable, environment } = await testBrowser()
  const profile = await newPlace(test)
  const flags = ['--headless', '--no-sandbox', '--remote-debugging-port=0', `--user-data-dir=${profile}`]
  const env = { ...process.env, ...environment }
  const child = spawn(executable, [...flags, 'about:blank'], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  test.onTestFinished(() => void child.kill('SIGKILL'))
  let said = ''
  child.stderr.on('data', (data) => {
    said += data
  })
  const [webSocketUrl] = await vi.waitUntil(() => /ws:\S+(?=\s)/.exec(said), waitLimits)
  return { child, webSocketUrl, httpUrl: new URL(webSocketUrl.replace('ws:', 'http:')).origin }
}
