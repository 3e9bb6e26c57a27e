/** The executor process: loads workflows of one deployment and executes one attempt at a time, isolated from the worker. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { flushCompileCache, SourceMap } from 'node:module'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { setImmediate as nextTick } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { mapBytesMax, reportsMax } from '../../domain/runs/reported-values.ts'
import { readLines } from '../../domain/workflows/bounded-lines.ts'
import type { WorkflowDefinition } from '../../domain/workflows/define-workflow.ts'
import { definitionIn } from '../../domain/workflows/module-definition.ts'
import { captureConsole, executeWorkflow } from './execute-workflow.ts'
import { type AttemptMessage, channelDescriptor, endsOutput, type FromExecutor, type ToExecutor } from './messages.ts'
import { ProcessState } from './process-state.ts'
import { RunningAttempt, type SignedOutOf, type Start } from './run-context.ts'
import { describeError } from './workflow-values.ts'

const [, , directory = '', browser] = process.argv
const temporaryDirectory = tmpdir()
/** Loaded only if a workflow uses a browser. */
const { BrowserOfAttempt } = browser ? await import('./run-browser.ts') : {}
const { loadChromium } = browser ? await import('../browser/connection.ts') : {}

let current: RunningAttempt | undefined
/** The attempt that started the running code, which may go on after the attempt returned. */
const attemptStorage = new AsyncLocalStorage<number>()

const channel = new Socket({ fd: channelDescriptor })

function send(message: FromExecutor, onWritten?: () => void): void {
  if (endsOutput(message)) markOutput()
  channel.write(`${JSON.stringify(message)}\n`, onWritten)
}

/** Write marks to the output streams. */
let outputs: (() => void)[] = []
let mark = ''
/** Whether something was written through the streams since the last mark, of which they may still have a part. */
let isUnmarked = true

/** Other output, such as a native module's, is in the kernel when the worker gets the next message. */
function markOutput(): void {
  if (!isUnmarked) return
  isUnmarked = false
  for (const write of outputs) write()
  send({ type: 'marked' })
}

/** Drops what code writes whose attempt has ended: the worker would add it to the log of the next attempt. */
function captureOutput(): void {
  outputs = [process.stdout, process.stderr].map((stream) => {
    const write = stream.write.bind(stream) as (...values: unknown[]) => boolean
    // Of a workflow that has closed the stream.
    stream.on('error', () => {})
    stream.write = (...values: unknown[]) => {
      const attempt = attemptStorage.getStore()
      if (attempt === undefined || attempt === current?.attempt) {
        isUnmarked = true
        return write(...values)
      }
      const callback = values.at(-1)
      if (typeof callback === 'function') process.nextTick(callback)
      return true
    }
    return () => {
      while (stream.writableCorked > 0) stream.uncork()
      write(mark)
    }
  })
}

const reports: readonly string[] = ['log', 'progress', 'step']
let reportCount = 0

/** Does not send reports above the limit: the worker drops them, and reading them would delay its other runs. */
function sendFrom(attempt: number, message: AttemptMessage): void {
  if (reports.includes(message.type) && ++reportCount > reportsMax) return
  send({ ...message, attempt })
}

async function execute(workflow: LoadedModule, start: Start): Promise<void> {
  const { attempt } = start
  reportCount = 0
  state?.begin()
  const checkReusable = async () => {
    // Lets a floating promise that rejects now end this process, and not the next attempt.
    await nextTick()
    return state?.isUnchanged() ?? false
  }
  const declaredWaits = 'error' in workflow ? [] : workflow.waits
  const options = { declaredWaits, checkReusable, signedOut: 'error' in workflow ? undefined : workflow.signedOut }
  const running = new RunningAttempt(start, (message) => sendFrom(attempt, message), BrowserOfAttempt, options)
  current = running
  const run = () =>
    attemptStorage.run(attempt, async () => {
      if ('error' in workflow) throw workflow.error
      return workflow.run(running.context())
    })
  sendFrom(attempt, await executeWorkflow(running, run, checkReusable, directory))
  await running.browser?.sendEvidence()
}

/** Sends console output to the log of the run whose code wrote it. */
function logConsole(): void {
  captureConsole((level, toMessage) => {
    const attempt = attemptStorage.getStore()
    if (attempt !== undefined) sendFrom(attempt, { type: 'log', level, message: toMessage() })
    return true
  })
}

/** Since the modules were loaded. */
let state: ProcessState | undefined

/** The loaded workflows by ID. */
let workflows: ReadonlyMap<string, LoadedModule> = new Map()

function listen(): void {
  const load = async (modules: Record<string, string>) => {
    workflows = await loadModules(directory, modules)
    reportUncaught()
    state = new ProcessState(temporaryDirectory, attemptStorage)
    send({ type: 'ready' })
  }
  const onLine = (line: string) => {
    const message: ToExecutor = JSON.parse(line)
    if (message.type === 'load') {
      mark = `\n${message.mark}\n`
      void load(message.modules)
    } else if (message.type === 'start') {
      const missing = { error: new Error(`There is no workflow ${message.workflowId}.`) }
      void execute(workflows.get(message.workflowId) ?? missing, message)
    } else if (message.attempt === current?.attempt) {
      if (message.type === 'browser' && loadChromium) state?.allow(loadChromium)
      current.onMessage(message)
    }
  }
  readLines(channel, Number.POSITIVE_INFINITY, onLine, () => {})
}

/** Node.js would print the error and exit, and the run would show neither its message nor where it was thrown. */
function reportUncaught(): void {
  process.on('uncaughtException', (error) => {
    // The workflow handles such errors itself.
    if (process.listenerCount('uncaughtException') > 1) return
    const attempt = attemptStorage.getStore() ?? current?.attempt
    if (attempt === undefined) process.exit(1)
    const crashed: AttemptMessage = { type: 'crashed', ...describeError(error, directory) }
    send({ ...crashed, attempt }, () => process.exit(1))
  })
}

/** When memory is short, the kernel ends this process and those that it starts before the service's own. */
function offerToKernel(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000')
  } catch {
    // Not Linux, or not allowed.
  }
}

async function main(): Promise<void> {
  // The worker has ended. This kills the process group, which this process leads.
  channel.once('close', () => process.kill(-process.pid, 'SIGKILL'))
  channel.on('error', () => {})
  // Signals that a supervisor sends to all processes are for the worker, which ends its attempts in order.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => {})
  offerToKernel()
  logConsole()
  captureOutput()
  mkdirSync(temporaryDirectory, { recursive: true, mode: 0o700 })
  mapStacks(directory)
  // Node writes its compile cache at a normal exit, which this process never has. Before it has compiled modules of the
  // deployment, whose directory is another one after each start of the worker: their entries would accumulate.
  flushCompileCache()
  listen()
}

await main()

// Loads the workflows of a deployment, in an executor. Each module by itself: one that throws fails only its own runs.

type Run = WorkflowDefinition<object, object, true>['run']

/** The function of a workflow, or what its module threw. */
type LoadedModule = { run: Run; waits: readonly string[]; signedOut: SignedOutOf | undefined } | { error: unknown }

/** @param modules paths in the directory, by workflow. */
async function loadModules(directory: string, modules: Record<string, string>): Promise<Map<string, LoadedModule>> {
  const loaded = new Map<string, LoadedModule>()
  for (const [workflowId, path] of Object.entries(modules)) loaded.set(workflowId, await load(join(directory, path)))
  return loaded
}

async function load(path: string): Promise<LoadedModule> {
  try {
    const definition = definitionIn(await import(pathToFileURL(path).href)) as WorkflowDefinition<object, object, true>
    // Deployment has checked this. A module may export something else on another machine.
    if (typeof definition?.run !== 'function')
      throw new TypeError('The default export of its module has no function run.')
    return {
      run: (context) => definition.run(context),
      waits: Object.keys(definition.waits ?? {}),
      signedOut: definition.signedOut && ((page, run) => definition.signedOut?.(page, run as never) ?? false),
    }
  } catch (error) {
    return { error }
  }
}

// Makes stacks of errors name the author's source. Runs in executors.

/**
 * A map is read when the stack of an error is: `node --enable-source-maps` reads all maps with their modules, which
 * added 16 ms to the start of an executor for a bundle of 250 kB. Frames of the service are left out.
 *
 * @param directory that of the bundles. Paths of sources begin with it, wherever they were deployed from.
 */
function mapStacks(directory: string): void {
  const bundles = `${pathToFileURL(directory).href}/`
  const service = new URL('../', import.meta.url).href
  const maps = new Map<string, SourceMap | undefined>()
  const originOf = (url: string, line: number, column: number): string | undefined => {
    const path = `${fileURLToPath(url)}.map`
    if (!maps.has(url)) maps.set(url, readMap(path))
    const origin = maps.get(url)?.findOrigin(line, column)
    if (!origin || !('fileName' in origin) || typeof origin.fileName !== 'string') return undefined
    return `${resolve(dirname(path), origin.fileName)}:${origin.lineNumber}:${origin.columnNumber}`
  }
  const describe = (frame: NodeJS.CallSite): string => {
    const text = String(frame)
    const [url, line, column] = [frame.getFileName(), frame.getLineNumber(), frame.getColumnNumber()]
    if (!url?.startsWith(bundles) || line === null || column === null) return text
    const origin = originOf(url, line, column)
    return origin === undefined ? text : text.replace(`${url}:${line}:${column}`, () => origin)
  }
  Error.prepareStackTrace = (error, frames) => {
    const own = frames.filter((frame) => !frame.getFileName()?.startsWith(service))
    // As Node.js does by default, this throws if a getter does.
    return [Error.prototype.toString.call(error), ...own.map((frame) => `    at ${describe(frame)}`)].join('\n')
  }
}

function readMap(path: string): SourceMap | undefined {
  try {
    if (statSync(path).size > mapBytesMax) return undefined
    return new SourceMap(JSON.parse(readFileSync(path, 'utf8')))
  } catch {
    // The module has no map.
    return undefined
  }
}
