/** Runs `npm run demo` with its own ports and directory, and checks what it leaves behind. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'

const demoModule = fileURLToPath(new URL('../../src/tools/demo.ts', import.meta.url))

export interface Demo {
  child: ChildProcess
  /** Everything printed so far on stdout and stderr. */
  output(): string
  /** Resolves when the output contains `text`. */
  waitForOutput(text: string): Promise<void>
  exitCode: Promise<number | null>
  /** Directory in which the demo creates its data directory. */
  temporary: string
  /** A value in the environment of all processes of this demo. */
  mark: string
}

export async function startDemo(args: string[], environment: Record<string, string> = {}): Promise<Demo> {
  const temporary = await temporaryDirectory()
  const mark = randomUUID()
  const ports = { DASHBOARD_PORT: '0', EXECUTION_PORT: '0', BROWSER_CONTEXT_PORT: '0', MANAGEMENT_PORT: '0' }
  const { NODE_COMPILE_CACHE = tmpdir() } = process.env
  const base = { PATH: process.env.PATH ?? '', TMPDIR: temporary, NODE_COMPILE_CACHE, DEMO_MARK: mark }
  const env = { ...base, ...ports, ...environment }
  // Outside the project: the demo must not depend on the current directory.
  const child = spawn(process.execPath, [demoModule, ...args], { env, cwd: tmpdir() })
  child.stdin.end()
  onTestFinished(() => void child.kill('SIGKILL'))
  const closed = once(child, 'close')
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (chunk) => (text += chunk))
  const waitForOutput = async (awaited: string) => {
    const ended = closed.then(() => Promise.reject(new Error(`The demo ended without printing "${awaited}": ${text}`)))
    ended.catch(() => {})
    while (!text.includes(awaited)) await Promise.race([once(child.stdout, 'data'), ended])
  }
  return { child, output: () => text, waitForOutput, exitCode: closed.then(([code]) => code), temporary, mark }
}

export async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'demo-test-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  return directory
}

/** Returns the command lines of all running processes of the demo, including indirect children. */
export async function findDemoProcesses({ mark }: Demo): Promise<string[]> {
  const commandLines = []
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')
    if (!environment.includes(mark)) continue
    // The process may have ended.
    const command = await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')
    if (command !== '') commandLines.push(command.replaceAll('\0', ' '))
  }
  return commandLines
}

export async function expectNothingLeft(demo: Demo): Promise<void> {
  // Killed processes take a moment to end.
  await expect.poll(() => findDemoProcesses(demo)).toEqual([])
  expect(await readdir(demo.temporary)).toEqual([])
}
