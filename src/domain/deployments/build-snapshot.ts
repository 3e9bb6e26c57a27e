/**
 * Builds the snapshot of a directory in child processes: one bundles its modules, one loads the bundles, one checks what
 * they export. The code of workflows runs in the second one alone, which can report anything.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { extname, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import { executorEnvironment } from '../../config/config.ts'
import { readLines } from '../workflows/bounded-lines.ts'
import { confinedCommand } from '../workflows/confined-command.ts'
import type { Identity } from '../workflows/executor-identity.ts'
import { leaseBuilder } from '../workflows/executor-users.ts'
import { type Mark, ProcessReaper } from '../workflows/process-reaper.ts'
import {
  loadSecondsMax as defaultLoadSecondsMax,
  parseWorkflow,
  type Workflow,
  WorkflowError,
} from '../workflows/workflow.ts'
import { type Loaded, type Message, messageStream, type Step } from './build-process.ts'
import { type Bundle, type BundledModule, displayPath, NoWorkflows } from './bundle.ts'
import { DeploymentFiles, DeploymentUnavailable, temporaryParentOf } from './deployment-files.ts'
import { checkContent, type DeployedWorkflow, type Snapshot, snapshotBytesMax } from './snapshot.ts'

export { NoWorkflows } from './bundle.ts'

export interface BuildOptions {
  /** The user that executes workflows, if not that of this process. */
  identity?: Identity
  /** How long the modules may take to load, once they are bundled. */
  loadSecondsMax?: number
  /** Called with each line that the modules print while they load. By default, it goes to the standard error. */
  onOutput?: OnOutput
}

/** @param line without control characters, and with at most `outputLineBytesMax` bytes. */
type OnOutput = (line: string) => void

/** What a process may print in all. A build that prints more is refused. */
const outputBytesMax = 256 * 1024
const outputLinesMax = 1000
const outputLineBytesMax = 8 * 1024

/** How long bundling may take. 200 workflows took some seconds. */
const bundleSecondsMax = 300

/** How long the checks of loaded workflows may take. */
const checkSecondsMax = 60

/** Bytes of a message: JSON escapes can double the files, and definitions have schemas and examples. */
const messageBytesMax = 2 * snapshotBytesMax + 64 * 1024 * 1024

/** Characters of a message for the author. */
const refusalLengthMax = 2000

/** @throws {WorkflowError} one sentence that names the file, where possible with its line, and what to change. */
export async function buildSnapshot(directory: string, options: BuildOptions = {}): Promise<Snapshot> {
  return describeBundle(await buildBundle(directory, options), [resolve(directory)], options)
}

/**
 * Loads the modules of a bundle, and adds their definitions.
 *
 * @param bundle its content must have passed `checkContent`. Who made it does not matter: it is described again.
 * @param directories where packages with native code may be installed.
 * @throws {WorkflowError} without absolute paths: who sent a bundle must not learn where it was loaded.
 */
export async function describeBundle(
  { content, modules }: Bundle,
  directories: readonly string[],
  options: BuildOptions = {},
): Promise<Snapshot> {
  const user = leaseBuilder(options.identity)
  const { identity } = user
  const files = new DeploymentFiles(identity, 'build')
  try {
    const target = await files.write('snapshot', content, directories)
    return { ...content, workflows: await check(await load(files, target, modules, { ...options, identity })) }
  } catch (error) {
    if (error instanceof DeploymentUnavailable) throw new WorkflowError(`Nothing was built. ${error.message}`)
    if (error instanceof WorkflowError) error.message = withRelativePaths(error.message)
    throw error
  } finally {
    await files.close().catch(() => {})
    user.release()
  }
}

/** Shortens paths of bundled files to those in the deployment, and paths of packages to those in `node_modules`. */
function withRelativePaths(text: string): string {
  return text
    .split(/([\s'"()]+)/)
    .map((token) => (/^(file:\/)?\//.test(token) ? withoutRoot(token) : token))
    .join('')
}

function withoutRoot(path: string): string {
  const inPackages = path.indexOf('/node_modules/')
  const deployment = /\/snapshot-\d{1,9}\//.exec(path)
  if (deployment) return path.slice(deployment.index + deployment[0].length)
  return inPackages === -1 ? path : path.slice(inPackages + 1)
}

/**
 * Bundles a directory in a process that has not run the author's code, but is of the user that may have.
 *
 * @throws {WorkflowError}
 */
export async function buildBundle(
  directory: string,
  { identity, onOutput }: Pick<BuildOptions, 'identity' | 'onOutput'> = {},
): Promise<Bundle> {
  const source = resolve(directory)
  const place = displayPath(source)
  const message = await runStep('bundle', [source], {
    ...{ identity, onOutput, seconds: bundleSecondsMax },
    onTimeout: () => new WorkflowError(`${place} could not be bundled within ${bundleSecondsMax} seconds.`),
    onEnd: (end) => new WorkflowError(`The process that bundles ${place} ended ${describeEnd(end)}.`),
  })
  if (message.kind !== 'bundled') throw invalidReport()
  const { content, modules } = message
  checkContent(content)
  const paths = new Set(content.files.map(({ path }) => path))
  if (!Array.isArray(modules) || modules.length === 0) throw invalidReport()
  return { content: { files: content.files, externals: content.externals }, modules: modules.map(toModule) }

  function toModule(value: unknown): BundledModule {
    const { file, path, lines } = Object(value)
    if (typeof file !== 'string' || !paths.has(path) || Object(lines) !== lines) throw invalidReport()
    return {
      file: toText(file),
      path,
      lines: Object.fromEntries(Object.entries<number>(lines).filter(([, line]) => Number.isInteger(line))),
    }
  }
}

/** Loads the files as an executor does. @returns the definitions, parsed again. */
async function load(
  { filesPrefix }: DeploymentFiles,
  target: string,
  modules: readonly BundledModule[],
  { identity, loadSecondsMax = defaultLoadSecondsMax, onOutput }: BuildOptions,
): Promise<Loaded[]> {
  // Modules may start processes, which must not outlive the build.
  const reaper = new ProcessReaper({ graceSeconds: 0, identity, filesPrefix: () => filesPrefix })
  let loading = modules[0]?.file
  try {
    const message = await runStep('load', [target], {
      ...{
        identity,
        mark: reaper.mark(temporaryParentOf(target)),
        input: JSON.stringify(modules),
        seconds: loadSecondsMax,
        onOutput,
      },
      onLoading(index) {
        loading = modules[index]?.file ?? loading
      },
      onTimeout: () => loadTimeoutError(loading, loadSecondsMax),
      onEnd: (end) => exitError(loading, end),
      onFlood: () => new WorkflowError(`${loading} ${floods}`),
    })
    if (message.kind !== 'loaded' || !Array.isArray(message.definitions)) throw invalidReport()
    const { definitions } = message
    if (definitions.length !== modules.length) throw invalidReport()
    return modules.map((module, index) => ({ module, workflow: parseAgain(module, definitions[index]) }))
  } finally {
    reaper.close()
  }
}

/** @throws {WorkflowError} */
function parseAgain({ file, path }: BundledModule, definition: unknown): DeployedWorkflow {
  const { usesBrowser, checksSession, ...members } = Object(definition)
  const functions = { run: () => undefined, ...(checksSession && { signedOut: () => false }) }
  return { ...parseWorkflow(file, { ...members, browser: usesBrowser, ...functions }), module: path }
}

/** Checks the workflows by rules that need libraries, and adds examples, in a process that has not run the author's code. */
async function check(loaded: readonly Loaded[]): Promise<DeployedWorkflow[]> {
  const message = await runStep('check', [], { input: toJson(loaded), seconds: checkSecondsMax })
  if (message.kind !== 'checked') throw invalidReport()
  return message.workflows
}

/**
 * Checks definitions that were not loaded from modules, and adds their examples.
 *
 * @param named each with a name for errors, which begin with it and a colon.
 * @throws {WorkflowError}
 */
export function checkDefinitions(named: readonly { file: string; workflow: Workflow }[]): Promise<DeployedWorkflow[]> {
  return check(
    named.map(({ file, workflow }) => {
      return { module: { file, path: '', lines: {} }, workflow: { ...workflow, module: '' } }
    }),
  )
}

/** Values that are nested too deep throw. */
function toJson(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch {
    throw invalidReport()
  }
}

function invalidReport(): WorkflowError {
  return new WorkflowError('The workflows were not built: the process that loads them has sent an invalid report.')
}

interface StepOptions {
  /** The process's own; that of builds by default. */
  module?: string
  /** In addition to what workflows get. */
  environment?: NodeJS.ProcessEnv
  /** The user of the process, if not that of this one. */
  identity?: Identity
  /** For a process that runs the author's code: it leads a group, which is killed with it. */
  mark?: Mark
  /** What the process reads from its standard input. */
  input?: string
  seconds: number
  onLoading?(index: number): void
  onTimeout?(): WorkflowError
  onEnd?(end: ProcessEnd): WorkflowError
  /** Called when the process prints more than it may. */
  onFlood?(): WorkflowError
  onOutput?: OnOutput | undefined
}

export interface ProcessEnd {
  code: number | null
  signal: NodeJS.Signals | null
  /** The last line that it printed, if there is one: often the reason. */
  lastLine: string | undefined
}

const processModule = fileURLToPath(new URL(`./build-process${extname(import.meta.url)}`, import.meta.url))

/** Runs a step in a separate process; returns its last message. */
export async function runStep(step: Step, paths: string[], options: StepOptions): Promise<Message> {
  const { identity, mark, input, seconds, onLoading, onTimeout = invalidReport, onEnd = invalidReport } = options
  const { module = processModule, environment, onFlood = floodError, onOutput = printLine } = options
  // Messages are lines on a pipe: on Node's own channel, a line without an end would exhaust the memory of this process.
  const child = spawn(...confinedCommand([module, step, ...paths], identity), {
    ...identity,
    env: { ...executorEnvironment(process.env), ...environment, ...mark?.environment },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe', 'pipe'],
    detached: mark !== undefined,
  })
  const closed = new Promise((resolve) => child.once('close', resolve))
  if (child.pid) mark?.add(child.pid)
  let timer: NodeJS.Timeout | undefined
  try {
    return await new Promise<Message>((resolve, reject) => {
      const output = readOutput(child, onOutput, () => reject(onFlood()))
      timer = setTimeout(() => reject(onTimeout()), seconds * 1000)
      const onLine = (line: string, isComplete: boolean) => {
        // The process ended while it wrote.
        if (!isComplete) return
        const message = parseMessage(line)
        if (message?.kind === 'loading') onLoading?.(message.index)
        else if (message?.kind === 'refused') reject(toRefusal(message))
        else if (message) resolve(message)
        else reject(invalidReport())
      }
      readLines(child.stdio[messageStream] as Readable, messageBytesMax, onLine, () => reject(invalidReport()))
      child.once('error', reject)
      // Not 'exit', which may precede the message.
      child.once('close', (code, signal) => reject(onEnd({ code, signal, lastLine: output.lastLine })))
      // The process may end without reading.
      child.stdin?.on('error', () => {}).end(input)
    })
  } finally {
    clearTimeout(timer)
    // It may have timers or sockets of modules. Its compile cache must not receive bundles in a temporary directory.
    if (mark) killGroup(child)
    child.kill('SIGKILL')
    // What it has printed is still in the pipes, which a process that left the group may keep open.
    await Promise.race([closed, delay(drainMilliseconds, undefined, { ref: false })])
    for (const stream of child.stdio) stream?.destroy()
  }
}

const drainMilliseconds = 500

/** Reads what the process prints, so that neither its amount nor its form reaches a log or a terminal as it is. */
function readOutput(child: ChildProcess, onOutput: OnOutput, onFlood: () => void): { lastLine: string | undefined } {
  const output: { lastLine: string | undefined } = { lastLine: undefined }
  const streams = [child.stdout, child.stderr] as Readable[]
  let [bytes, lines] = [0, 0]
  const flood = () => {
    // Nothing more is read: a loop that prints would keep this process busy until the end of its time.
    for (const stream of streams) stream.destroy()
    onFlood()
  }
  const add = (text: string) => {
    const line = stripVTControlCharacters(text).trimEnd()
    if (line === '') return
    lines += 1
    if (lines === outputLinesMax + 1) flood()
    if (lines > outputLinesMax) return
    if (!/^Node\.js v\d/.test(line)) output.lastLine = line
    onOutput(line)
  }
  for (const stream of streams) {
    stream.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > outputBytesMax) flood()
    })
    readLines(stream, outputLineBytesMax, add, () => add(`[a line of more than ${outputLineBytesMax} bytes]`))
  }
  return output
}

function printLine(line: string): void {
  process.stderr.write(`${line}\n`)
}

const floods = `prints more than ${outputLinesMax} lines or ${outputBytesMax / 1024} KiB while it is loaded: print in \`run\`, or less.`

function floodError(): WorkflowError {
  return new WorkflowError(
    `The process that builds the workflows printed more than ${outputLinesMax} lines or ${outputBytesMax / 1024} KiB.`,
  )
}

function describeEnd({ code, signal, lastLine }: ProcessEnd): string {
  const how = `(${signal ?? `exit code ${code}`})`
  return lastLine === undefined ? how : `${how} after it had printed: ${toText(lastLine)}`
}

/** Not after its end: another group may have its number then. */
function killGroup({ pid, exitCode, signalCode }: ChildProcess): void {
  if (!pid || exitCode !== null || signalCode !== null) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The group is empty.
  }
}

/** Checks what is used while the process runs. The caller of a step checks its last message. */
function parseMessage(line: string): Message | undefined {
  try {
    const message = JSON.parse(line)
    const isMessage = message?.kind === 'loading' ? Number.isInteger(message.index) : typeof message?.kind === 'string'
    return isMessage ? message : undefined
  } catch {
    return undefined
  }
}

function toRefusal({ message, isEmpty }: { message: unknown; isEmpty: unknown }): WorkflowError {
  if (typeof message !== 'string') return invalidReport()
  return isEmpty === true ? new NoWorkflows(toText(message)) : new WorkflowError(toText(message))
}

/** For terminals and logs. */
function toText(text: string): string {
  return stripVTControlCharacters(text).slice(0, refusalLengthMax)
}

/** The exit code of Node.js when a top-level await can never complete. */
const pendingAwaitCode = 13

function exitError(file: string | undefined, end: ProcessEnd): WorkflowError {
  if (end.code === pendingAwaitCode)
    return new WorkflowError(`${file} did not load: its top-level await never completes.`)
  return new WorkflowError(`${file} ended its process while loading ${describeEnd(end)}.`)
}

function loadTimeoutError(file: string | undefined, seconds: number): WorkflowError {
  return new WorkflowError(
    `${file} did not load within ${seconds} seconds: check for a top-level await or a loop that does not end.`,
  )
}
