/** The executor process: loads the workflows and executes one attempt at a time, isolated from the worker. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { writeFileSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { Socket } from 'node:net'
import { setImmediate as nextTick } from 'node:timers/promises'
import { reportsMax } from '../domain/runs/reported-values.ts'
import { type LoadedWorkflow, loadWorkflows } from '../domain/workflows/load-workflows.ts'
import { WorkflowError } from '../domain/workflows/workflow.ts'
import { readLines } from './bounded-lines.ts'
import { type AttemptMessage, channelDescriptor, type FromExecutor, type ToExecutor } from './messages.ts'
import { hasStartedProcesses } from './process-memory.ts'
import { RunningAttempt, type Start } from './run-context.ts'
import { describeError, formatSafely, toJson, toText } from './workflow-values.ts'

let current: RunningAttempt | undefined
/** The attempt that started the running code, which may go on after the attempt returned. */
const attemptStorage = new AsyncLocalStorage<number>()

const channel = new Socket({ fd: channelDescriptor })

function send(message: FromExecutor): void {
  channel.write(`${JSON.stringify(message)}\n`)
}

const reports: readonly string[] = ['log', 'progress', 'step']
let reportCount = 0

/** Does not send reports above the limit: the worker drops them, and reading them would delay its other runs. */
function sendFrom(attempt: number, message: AttemptMessage): void {
  if (reports.includes(message.type) && ++reportCount > reportsMax) return
  send({ ...message, attempt })
}

async function execute(workflow: LoadedWorkflow, start: Start): Promise<void> {
  const { attempt } = start
  const running = new RunningAttempt(start, (message) => sendFrom(attempt, message))
  current = running
  reportCount = 0
  const resourcesBefore = process.getActiveResourcesInfo().length
  try {
    const returned = await attemptStorage.run(attempt, async () => workflow.run(running.context(workflow.usesBrowser)))
    const output = toOutput(returned)
    const state = await running.browser.end(true)
    // Lets a floating promise that rejects now end this process, and not the next attempt.
    await nextTick()
    sendFrom(attempt, { type: 'returned', output, reusable: isReusable(resourcesBefore), state })
  } catch (error) {
    const state = await running.browser.end(false)
    const reason = error instanceof OutputInvalid ? 'outputInvalid' : 'workflowFailed'
    const cause = running.browser.crashed ? browserEnded(error) : error
    sendFrom(attempt, { type: 'threw', reason, ...describeError(cause), state })
  }
}

class OutputInvalid extends Error {
  override name = 'OutputInvalid'
}

function toOutput(value: unknown): string {
  try {
    return toJson(value, 'The output')
  } catch (error) {
    throw new OutputInvalid((error as Error).message)
  }
}

/** Playwright's own error then depends on the call in progress and may name calls that the workflow did not make. */
function browserEnded(error: unknown): Error {
  const message = `The browser ended while the run used it: ${describeError(error).message}`
  return Object.assign(new Error(message), { name: 'BrowserEnded' })
}

/** A larger process is replaced instead of reused. */
const reusableBytesMax = 256 * 1024 * 1024

function isReusable(resourcesBefore: number): boolean {
  if (process.getActiveResourcesInfo().length > resourcesBefore || hasStartedProcesses()) return false
  return process.memoryUsage.rss() < reusableBytesMax
}

/** Sends console output to the run's log. */
function captureConsole(): void {
  const levels = { log: 'info', info: 'info', debug: 'info', warn: 'warn', error: 'error', trace: 'info' } as const
  for (const [method, level] of Object.entries(levels)) {
    const write = (...values: unknown[]) => {
      const attempt = attemptStorage.getStore()
      if (attempt !== undefined) sendFrom(attempt, { type: 'log', level, message: toText(formatSafely(...values)) })
    }
    Object.assign(console, { [method]: write })
  }
}

function listen(workflows: Map<string, LoadedWorkflow>): void {
  const onLine = (line: string) => {
    const message: ToExecutor = JSON.parse(line)
    if (message.type === 'start') {
      const workflow = workflows.get(message.workflowId)
      if (workflow) return void execute(workflow, message)
      const missing = new Error(`There is no workflow ${message.workflowId}.`)
      const threw = { type: 'threw', reason: 'workflowFailed', ...describeError(missing), state: undefined } as const
      return sendFrom(message.attempt, threw)
    }
    if (message.attempt === current?.attempt) current.onMessage(message)
  }
  readLines(channel, Number.POSITIVE_INFINITY, onLine, () => {})
}

/** When memory is short, the kernel ends this process and those that it starts before the service's own. */
function offerToKernel(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000')
  } catch {
    // Not Linux, or not allowed.
  }
}

async function main(directory: string): Promise<void> {
  // The worker has ended. This kills the process group, which this process leads.
  channel.once('close', () => process.kill(-process.pid, 'SIGKILL'))
  channel.on('error', () => {})
  // Signals that a supervisor sends to all processes are for the worker, which ends its attempts in order.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => {})
  offerToKernel()
  captureConsole()
  // Node opens these lazily. Opened by an attempt, they would count as resources that it leaked.
  void [process.stdout, process.stderr]
  try {
    const workflows = await loadWorkflows(directory)
    listen(workflows)
    send({ type: 'ready', workflows: JSON.stringify([...workflows.values()]) })
    // Node writes its compile cache at a normal exit, which this process never has.
    flushCompileCache()
  } catch (error) {
    if (!(error instanceof WorkflowError)) throw error
    send({ type: 'loadFailed', message: error.message })
  }
}

await main(process.argv[2] ?? '')
