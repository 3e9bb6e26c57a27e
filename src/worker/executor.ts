/**
 * A process that executes one attempt at a time for its worker: whatever a workflow does to its process (block it,
 * exhaust it, end it) is done to no other.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { flushCompileCache } from 'node:module'
import { setImmediate as turn } from 'node:timers/promises'
import { format } from 'node:util'
import type { RunContext } from '../workflows/define.ts'
import { type LoadedWorkflow, loadWorkflows } from '../workflows/load.ts'
import { WorkflowRefused } from '../workflows/workflow.ts'
import type { FromExecutor, ToExecutor, Word } from './messages.ts'
import { watchParent } from './parent-death.ts'

type Start = Extract<ToExecutor, { type: 'start' }>

interface Current {
  attempt: number
  abort: AbortController
  /** Continues a step once its value is kept. */
  keeping: Map<string, () => void>
}

let current: Current | undefined
/** The attempt that a piece of code belongs to, which may have returned while the code goes on. */
const attemptOf = new AsyncLocalStorage<number>()

function tell(message: FromExecutor): void {
  process.send?.(message)
}

function say(attempt: number, word: Word): void {
  tell({ ...word, attempt, at: Date.now() })
}

async function execute(workflow: LoadedWorkflow, start: Start): Promise<void> {
  const { attempt } = start
  const abort = new AbortController()
  const context = { attempt, abort, keeping: new Map() }
  current = context
  const activeBefore = process.getActiveResourcesInfo().length
  try {
    const returned = await attemptOf.run(attempt, async () => workflow.run(contextOf(start, context)))
    const output = toJson(returned, 'The output')
    // What it left to itself and fails at once, ends this process now and not in the next attempt.
    await turn()
    const reusable =
      process.getActiveResourcesInfo().length <= activeBefore && process.memoryUsage.rss() < reusableBytesMax
    say(attempt, { type: 'returned', output, reusable })
  } catch (error) {
    say(attempt, { type: 'threw', ...described(error) })
  }
}

/** A process that has grown beyond this is replaced rather than used again. */
const reusableBytesMax = 256 * 1024 * 1024

function contextOf(start: Start, { attempt, abort, keeping }: Current): RunContext<unknown> {
  const names = new Set<string>()
  return {
    variables: start.variables,
    runId: start.runId,
    attempt: start.runAttempt,
    signal: abort.signal,
    log: (message, level = 'info') => say(attempt, { type: 'log', level, message: String(message) }),
    progress: (percent, message) => {
      const bounded = Math.min(100, Math.max(0, Number(percent) || 0))
      say(attempt, { type: 'progress', percent: bounded, message: message === undefined ? null : String(message) })
    },
    step: async (name, fn) => {
      if (names.has(name))
        throw new Error(`Two steps of this run are named "${name}": their results would be mixed up.`)
      names.add(name)
      const finished = Object.hasOwn(start.steps, name) ? start.steps[name] : undefined
      if (finished !== undefined) {
        say(attempt, { type: 'step', name, state: 'reused' })
        return JSON.parse(finished)
      }
      abort.signal.throwIfAborted()
      say(attempt, { type: 'step', name, state: 'started' })
      const value = await attemptStep(fn).catch((error: unknown) => {
        say(attempt, { type: 'step', name, state: 'failed' })
        throw error
      })
      const json = toJson(value, `What step "${name}" returned`)
      const kept = new Promise<void>((resolve) => keeping.set(name, resolve))
      say(attempt, { type: 'stepFinished', name, value: json })
      await kept
      // What a later attempt would get, so that the first does not behave otherwise.
      return JSON.parse(json)
    },
  } as RunContext<unknown>
}

/** Turns what `fn` throws before its first await into a rejection too. */
async function attemptStep<Value>(fn: () => Value | Promise<Value>): Promise<Value> {
  return fn()
}

function toJson(value: unknown, what: string): string {
  try {
    return JSON.stringify(value ?? null) ?? 'null'
  } catch (error) {
    throw new TypeError(`${what} is not JSON: ${(error as Error).message}`)
  }
}

function described(error: unknown): { name: string; message: string } {
  if (error instanceof Error) return { name: error.name, message: error.message }
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

/** Takes the worker's messages from now on. */
function listen(workflows: Map<string, LoadedWorkflow>): void {
  process.on('message', (message: ToExecutor) => {
    if (message.type === 'start') {
      const workflow = workflows.get(message.workflowId)
      if (workflow) void execute(workflow, message)
      else
        say(message.attempt, { type: 'threw', name: 'Error', message: `There is no workflow ${message.workflowId}.` })
      return
    }
    if (message.attempt !== current?.attempt) return
    if (message.type === 'abort') current.abort.abort(new Error(message.reason))
    else current.keeping.get(message.name)?.()
  })
}

async function main(directory: string): Promise<void> {
  process.once('disconnect', () => process.exit())
  // Signals to the whole group, such as Ctrl-C, are for the worker, which then ends its attempts in order.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => {})
  watchParent()
  captureConsole()
  try {
    const workflows = await loadWorkflows(directory)
    listen(workflows)
    tell({ type: 'ready', workflows: JSON.stringify([...workflows.values()]) })
    // Node would write its cache at a normal exit, which this process never has.
    flushCompileCache()
  } catch (error) {
    if (!(error instanceof WorkflowRefused)) throw error
    tell({ type: 'refused', message: error.message })
  }
}

await main(process.argv[2] ?? '')
