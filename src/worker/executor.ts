/**
 * A process that executes one attempt at a time for its worker: whatever a workflow does to its process (block it,
 * exhaust it, end it) is done to no other.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { flushCompileCache } from 'node:module'
import { setImmediate as turn } from 'node:timers/promises'
import { format, stripVTControlCharacters } from 'node:util'
import { type LoadedWorkflow, loadWorkflows } from '../domain/workflows/load-workflows.ts'
import { WorkflowError } from '../domain/workflows/workflow.ts'
import type { ChannelMessage, FromExecutor, ToExecutor } from './messages.ts'
import { watchParent } from './parent-death.ts'
import { RunningAttempt, type Start, toJson } from './run-context.ts'

let current: RunningAttempt | undefined
/** The attempt that a piece of code belongs to, which may have returned while the code goes on. */
const attemptOf = new AsyncLocalStorage<number>()

function tell(message: FromExecutor): void {
  process.send?.(message)
}

function say(attempt: number, word: ChannelMessage): void {
  tell({ ...word, attempt, at: Date.now() })
}

async function execute(workflow: LoadedWorkflow, start: Start): Promise<void> {
  const { attempt } = start
  const running = new RunningAttempt(start, (word) => say(attempt, word))
  current = running
  const activeBefore = process.getActiveResourcesInfo().length
  try {
    const returned = await attemptOf.run(attempt, async () => workflow.run(running.context(workflow.usesBrowser)))
    const output = toJson(returned, 'The output')
    const state = await running.browser.end(true)
    // What it left to itself and fails at once, ends this process now and not in the next attempt.
    await turn()
    const reusable =
      process.getActiveResourcesInfo().length <= activeBefore && process.memoryUsage.rss() < reusableBytesMax
    say(attempt, { type: 'returned', output, reusable, state })
  } catch (error) {
    const state = await running.browser.end(false)
    say(attempt, { type: 'threw', ...described(running.browser.died ? browserEnded(error) : error), state })
  }
}

/** What Playwright says then depends on what was going on, and speaks of calls that the workflow did not make. */
function browserEnded(error: unknown): Error {
  const message = `The browser ended while the run used it: ${described(error).message}`
  return Object.assign(new Error(message), { name: 'BrowserEnded' })
}

/** A process that has grown beyond this is replaced rather than used again. */
const reusableBytesMax = 256 * 1024 * 1024

/** Playwright's messages have colours in them. */
function described(error: unknown): { name: string; message: string } {
  if (error instanceof Error) return { name: error.name, message: stripVTControlCharacters(error.message) }
  return { name: 'Error', message: format('%s', error) }
}

/** Lines that a workflow writes to the console belong to its run's log. */
function captureConsole(): void {
  const levels = { log: 'info', info: 'info', debug: 'info', warn: 'warn', error: 'error', trace: 'info' } as const
  for (const [method, level] of Object.entries(levels)) {
    const write = (...words: unknown[]) => {
      const attempt = attemptOf.getStore()
      if (attempt !== undefined) say(attempt, { type: 'log', level, message: format(...words) })
    }
    Object.assign(console, { [method]: write })
  }
}

function noWorkflow(id: string): Error {
  return new Error(`There is no workflow ${id}.`)
}

/** Takes the worker's messages from now on. */
function listen(workflows: Map<string, LoadedWorkflow>): void {
  process.on('message', (message: ToExecutor) => {
    if (message.type === 'start') {
      const workflow = workflows.get(message.workflowId)
      if (workflow) void execute(workflow, message)
      else say(message.attempt, { type: 'threw', ...described(noWorkflow(message.workflowId)), state: undefined })
      return
    }
    if (message.attempt === current?.attempt) current.hear(message)
  })
}

async function main(directory: string): Promise<void> {
  process.once('disconnect', () => process.exit())
  // Signals to the whole group, such as Ctrl-C, are for the worker, which then ends its attempts in order.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => {})
  watchParent()
  captureConsole()
  // Node opens them for whoever looks at them first, as Playwright does: they would count as left open by that attempt.
  void [process.stdout, process.stderr]
  try {
    const workflows = await loadWorkflows(directory)
    listen(workflows)
    tell({ type: 'ready', workflows: JSON.stringify([...workflows.values()]) })
    // Node would write its cache at a normal exit, which this process never has.
    flushCompileCache()
  } catch (error) {
    if (!(error instanceof WorkflowError)) throw error
    tell({ type: 'refused', message: error.message })
  }
}

await main(process.argv[2] ?? '')
