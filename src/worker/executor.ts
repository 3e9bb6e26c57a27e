/** The executor process: loads the workflows and executes one attempt at a time, isolated from the worker. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { flushCompileCache } from 'node:module'
import { setImmediate as nextTick } from 'node:timers/promises'
import { type LoadedWorkflow, loadWorkflows } from '../domain/workflows/load-workflows.ts'
import { WorkflowError } from '../domain/workflows/workflow.ts'
import type { AttemptMessage, FromExecutor, ToExecutor } from './messages.ts'
import { watchParent } from './parent-death.ts'
import { RunningAttempt, type Start } from './run-context.ts'
import { describeError, formatSafely, toJson, toText } from './workflow-values.ts'

let current: RunningAttempt | undefined
/** The attempt that started the running code, which may go on after the attempt returned. */
const attemptStorage = new AsyncLocalStorage<number>()

function send(message: FromExecutor): void {
  process.send?.(message)
}

function sendFrom(attempt: number, message: AttemptMessage): void {
  send({ ...message, attempt, at: Date.now() })
}

async function execute(workflow: LoadedWorkflow, start: Start): Promise<void> {
  const { attempt } = start
  const running = new RunningAttempt(start, (message) => sendFrom(attempt, message))
  current = running
  const resourcesBefore = process.getActiveResourcesInfo().length
  try {
    const returned = await attemptStorage.run(attempt, async () => workflow.run(running.context(workflow.usesBrowser)))
    const output = toOutput(returned)
    const state = await running.browser.end(true)
    // Lets a floating promise that rejects now end this process, and not the next attempt.
    await nextTick()
    const reusable =
      process.getActiveResourcesInfo().length <= resourcesBefore && process.memoryUsage.rss() < reusableBytesMax
    sendFrom(attempt, { type: 'returned', output, reusable, state })
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
  process.on('message', (message: ToExecutor) => {
    if (message.type === 'start') {
      const workflow = workflows.get(message.workflowId)
      if (workflow) return void execute(workflow, message)
      const missing = new Error(`There is no workflow ${message.workflowId}.`)
      const threw = { type: 'threw', reason: 'workflowFailed', ...describeError(missing), state: undefined } as const
      return sendFrom(message.attempt, threw)
    }
    if (message.attempt === current?.attempt) current.onMessage(message)
  })
}

async function main(directory: string): Promise<void> {
  process.once('disconnect', () => process.exit())
  // Signals to the process group, such as Ctrl-C, are for the worker, which ends its attempts in order.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => {})
  watchParent()
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
