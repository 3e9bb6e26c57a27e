/**
 * Builds the snapshot of a directory in child processes: bundles its modules, loads the bundles, and checks what they
 * export. The code of workflows never runs in the process of the service.
 */
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { chown, mkdir, realpath, symlink, writeFile } from 'node:fs/promises'
import { flushCompileCache } from 'node:module'
import { Socket } from 'node:net'
import { basename, dirname, extname, join, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseAst } from 'rolldown/parseAst'
import { environmentWithoutSecrets } from '../../config/config.ts'
import { createTemporaryDirectory } from '../../storage/temporary-directory.ts'
import { readLines } from '../workflows/bounded-lines.ts'
import type { Identity } from '../workflows/executor-identity.ts'
import { ProcessReaper } from '../workflows/process-reaper.ts'
import {
  loadSecondsMax as defaultLoadSecondsMax,
  parseWorkflow,
  WorkflowError,
  WorkflowSchemaError,
} from '../workflows/workflow.ts'
import { type Bundle, bundleDirectory, displayPath, NoWorkflows } from './bundle.ts'
import {
  checkContent,
  type DeployedWorkflow,
  type Snapshot,
  type SnapshotContent,
  snapshotBytesMax,
} from './snapshot.ts'

export { NoWorkflows } from './bundle.ts'

export interface BuildOptions {
  /** The user that executes workflows, if not that of this process. */
  identity?: Identity
  /** How long the modules may take to load, once they are bundled. */
  loadSecondsMax?: number
}

/** A workflow that the loader has found, and the lines of its schemas in its source. */
interface Loaded {
  workflow: DeployedWorkflow
  file: string
  lines: { variables?: number | undefined; output?: number | undefined }
}

/** The messages of the processes. That of the loader runs the author's code, which can send any message. */
type Message =
  /** The module that is loaded next. */
  | { kind: 'loading'; module: string }
  | { kind: 'loaded'; content: SnapshotContent; loaded: Loaded[] }
  | { kind: 'checked'; workflows: DeployedWorkflow[] }
  | { kind: 'refused'; message: string; isEmpty: boolean }

type Step = 'load' | 'check'

/** How long bundling may take. 200 workflows took some seconds. */
const bundleSecondsMax = 300

/** How long the checks of loaded workflows may take. */
const checkSecondsMax = 60

/** Bytes of a message: JSON escapes can double the files, and definitions have schemas and examples. */
const messageBytesMax = 2 * snapshotBytesMax + 64 * 1024 * 1024

/** Characters of a message for the author. */
const refusalLengthMax = 2000

/**
 * Bundles and loads the modules in one process, and checks what they export in another one, which has not run the author's
 * code.
 *
 * @throws {WorkflowError} one sentence that names the file, where possible with its line, and what to change.
 */
export async function buildSnapshot(directory: string, options: BuildOptions = {}): Promise<Snapshot> {
  const source = resolve(directory)
  const { content, loaded } = await load(source, options)
  checkContent(content)
  const paths = new Set(content.files.map(({ path }) => path))
  const workflows = requireLoaded(loaded, paths)
  const checked = await runStep('check', [], { input: JSON.stringify(workflows), seconds: checkSecondsMax })
  if (checked.kind !== 'checked') throw invalidReport()
  const { files, externals } = content
  return { files, externals, workflows: checked.workflows }
}

async function load(source: string, { identity, loadSecondsMax = defaultLoadSecondsMax }: BuildOptions) {
  const { path: target, remove } = createTemporaryDirectory('build', String(process.pid))
  // Modules may start processes, which must not outlive the build.
  const reaper = new ProcessReaper({ graceSeconds: 0, identity })
  const mark = reaper.mark()
  let loading: string | undefined
  try {
    if (identity) await chown(target, identity.uid, identity.gid)
    const message = await runStep('load', [source, target], {
      ...{ identity, environment: mark.environment, seconds: bundleSecondsMax },
      onLoading(module, limit) {
        // The limit is for all modules together.
        if (loading === undefined) limit(loadSecondsMax)
        loading = module
      },
      onTimeout: () => (loading === undefined ? bundleTimeoutError(source) : loadTimeoutError(loading, loadSecondsMax)),
      onEnd: (code, signal) => exitError(loading ?? displayPath(source), code, signal),
    })
    if (message.kind !== 'loaded') throw invalidReport()
    return message
  } finally {
    reaper.close()
    await remove().catch(() => {})
  }
}

/** Parses the definitions again: the loader's process can report anything. @throws {WorkflowError} */
function requireLoaded(loaded: unknown, paths: ReadonlySet<string>): Loaded[] {
  if (!Array.isArray(loaded) || loaded.length > paths.size) throw invalidReport()
  const workflows = loaded.map((each): Loaded => {
    const { workflow, file, lines } = Object(each)
    const { module, usesBrowser, ...definition } = Object(workflow)
    if (typeof file !== 'string' || !paths.has(module)) throw invalidReport()
    const parsed = parseWorkflow(file, { ...definition, browser: usesBrowser, run: () => undefined })
    return { workflow: { ...parsed, module }, file, lines: { ...Object(lines) } }
  })
  if (new Set(workflows.map(({ workflow }) => workflow.id)).size < workflows.length) throw invalidReport()
  return workflows
}

function invalidReport(): WorkflowError {
  return new WorkflowError('The workflows were not built: the process that loads them has sent an invalid report.')
}

interface StepOptions {
  /** The user of the process, if not that of this one. */
  identity?: Identity
  environment?: NodeJS.ProcessEnv
  /** What the process reads from its standard input. */
  input?: string
  /** The time limit. */
  seconds: number
  /** @param limit sets another time limit from now on. */
  onLoading?(module: string, limit: (seconds: number) => void): void
  onTimeout?(): WorkflowError
  onEnd?(code: number | null, signal: NodeJS.Signals | null): WorkflowError
}

/** Runs a step in a process of its own; returns its last message. */
async function runStep(step: Step, paths: string[], options: StepOptions): Promise<Message> {
  const { identity, environment, input, onLoading, onTimeout = invalidReport, onEnd = invalidReport } = options
  // Messages are lines on a pipe: on Node's own channel, a line without an end would exhaust the memory of this process.
  // Output of the modules goes to stderr: stdout is for logs and for the output of commands.
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), step, ...paths], {
    ...identity,
    env: { ...environmentWithoutSecrets(process.env), ...environment },
    stdio: [input === undefined ? 'ignore' : 'pipe', 2, 'inherit', 'pipe'],
  })
  let timer: NodeJS.Timeout | undefined
  try {
    return await new Promise<Message>((resolve, reject) => {
      const limit = (seconds: number) => {
        clearTimeout(timer)
        timer = setTimeout(() => reject(onTimeout()), seconds * 1000)
      }
      limit(options.seconds)
      const onLine = (line: string) => {
        const message = parseMessage(line)
        if (message?.kind === 'loading') onLoading?.(message.module, limit)
        else if (message?.kind === 'refused') reject(toRefusal(message))
        else if (message) resolve(message)
        else reject(invalidReport())
      }
      readLines(child.stdio[messageStream] as Readable, messageBytesMax, onLine, () => reject(invalidReport()))
      child.once('error', reject)
      // Not 'exit', which may precede the message.
      child.once('close', (code, signal) => reject(onEnd(code, signal)))
      // The process may end without reading.
      child.stdin?.on('error', () => {}).end(input)
    })
  } finally {
    clearTimeout(timer)
    // It may have timers or sockets of modules. Its compile cache must not receive bundles in a temporary directory.
    child.kill('SIGKILL')
  }
}

function parseMessage(line: string): Message | undefined {
  try {
    const message = JSON.parse(line)
    return typeof message?.kind === 'string' ? message : undefined
  } catch {
    return undefined
  }
}

function toRefusal({ message, isEmpty }: { message: unknown; isEmpty: unknown }): WorkflowError {
  const text = String(message).slice(0, refusalLengthMax)
  return isEmpty === true ? new NoWorkflows(text) : new WorkflowError(text)
}

/** The exit code of Node.js when nothing is left that could settle a top-level await. */
const unsettledCode = 13

function exitError(module: string, code: number | null, signal: NodeJS.Signals | null): WorkflowError {
  if (code === unsettledCode) return new WorkflowError(`${module} did not load: its top-level await never settles.`)
  return new WorkflowError(`${module} ended its process while loading (${signal ?? `exit code ${code}`}).`)
}

function bundleTimeoutError(source: string): WorkflowError {
  return new WorkflowError(`${displayPath(source)} could not be bundled within ${bundleSecondsMax} seconds.`)
}

function loadTimeoutError(module: string | undefined, seconds: number): WorkflowError {
  return new WorkflowError(
    `${module} did not load within ${seconds} seconds: check for a top-level await or a loop that does not end.`,
  )
}

// The steps, in their processes.

/** The pipe for messages. */
const messageStream = 3

async function loadHere(source: string, target: string, report: (message: Message) => void): Promise<Message> {
  const bundle = await bundleDirectory(source)
  await writeBundle(bundle, source, target)
  flushCompileCache()
  const loaded = await loadAll(bundle, target, report)
  const { files, externals } = bundle
  return { kind: 'loaded', content: { files, externals }, loaded }
}

/** Loads Ajv and the detector of unsafe patterns, which take up to 65 MB. */
async function checkHere(loaded: readonly Loaded[]): Promise<Message> {
  const { checkWorkflows } = await import('../workflows/check-workflows.ts')
  const workflows = loaded.map(({ workflow }) => workflow).sort((a, b) => (a.id < b.id ? -1 : 1))
  try {
    checkWorkflows(workflows)
  } catch (error) {
    const place = error instanceof WorkflowSchemaError ? placeOf(error, loaded) : undefined
    throw place === undefined ? error : new WorkflowError(`${place}: ${(error as Error).message}`)
  }
  return { kind: 'checked', workflows }
}

/** The file and line of the schema. */
function placeOf({ workflowId, member }: WorkflowSchemaError, loaded: readonly Loaded[]): string | undefined {
  const found = loaded.find(({ workflow }) => workflow.id === workflowId)
  const line = found?.lines[member]
  return line === undefined ? found?.file : `${found?.file}:${line}`
}

/** As a worker writes it, with links to the packages that are not in the bundle. */
async function writeBundle({ files, externals }: Bundle, source: string, target: string): Promise<void> {
  await writeFile(join(target, 'package.json'), '{"type":"module"}')
  for (const { path, content } of files) {
    await mkdir(dirname(join(target, path)), { recursive: true })
    await writeFile(join(target, path), content)
  }
  for (const name of externals) {
    const link = join(target, 'node_modules', name)
    await mkdir(dirname(link), { recursive: true })
    await symlink(await findPackage(source, name), link)
  }
}

async function findPackage(directory: string, name: string): Promise<string> {
  const path = await realpath(join(directory, 'node_modules', name)).catch(() => undefined)
  if (path !== undefined) return path
  if (dirname(directory) === directory) {
    throw new WorkflowError(`The package "${name}" has native code, and must be installed next to the workflows.`)
  }
  return findPackage(dirname(directory), name)
}

async function loadAll(bundle: Bundle, target: string, report: (message: Message) => void): Promise<Loaded[]> {
  process.setSourceMapsEnabled(true)
  const found = new Map<string, Loaded>()
  for (const [source, module] of bundle.modules) {
    const file = displayPath(source)
    report({ kind: 'loading', module: file })
    const definition = await loadModule(join(target, module), file)
    const workflow = parseWorkflow(file, definition, (option) => findOptionLine(source, option))
    const other = found.get(workflow.id)
    if (other)
      throw new WorkflowError(`${other.file} and ${file} have the same id "${workflow.id}": rename one of them.`)
    const lines = { variables: findOptionLine(source, 'variables'), output: findOptionLine(source, 'output') }
    found.set(workflow.id, { file, lines, workflow: { ...workflow, module } })
  }
  return [...found.values()]
}

async function loadModule(path: string, file: string): Promise<unknown> {
  try {
    return (await import(pathToFileURL(path).href)).default
  } catch (error) {
    const { name, message, stack = '' } = error instanceof Error ? error : { name: 'Error', message: String(error) }
    const line = lineIn(stack, file)
    throw new WorkflowError(
      `${line === undefined ? file : `${file}:${line}`} failed to load: ${name}: ${message.split('\n')[0]}.`,
    )
  }
}

/** The line of the author's module in a stack that source maps have mapped. */
function lineIn(stack: string, file: string): string | undefined {
  const frames = stack.split('\n').filter((line) => line.includes(`/${basename(file)}:`))
  return frames[0]?.split(':').at(-2)
}

if (import.meta.main) {
  const [step, source = '', target = ''] = process.argv.slice(2)
  const pipe = new Socket({ fd: messageStream, readable: false, writable: true })
  // When the parent has ended, there is nobody to report to.
  pipe.on('error', () => process.exit())
  const report = (message: Message) => void pipe.write(`${JSON.stringify(message)}\n`)
  try {
    report(
      step === 'check'
        ? await checkHere(JSON.parse(await text(process.stdin)))
        : await loadHere(source, target, report),
    )
  } catch (error) {
    if (!(error instanceof WorkflowError)) throw error
    report({ kind: 'refused', message: error.message, isEmpty: error instanceof NoWorkflows })
  }
}

// Finds the line of an option of `defineWorkflow` in the source of a workflow, for messages.

/** The parts of ESTree that are read here. */
interface Node {
  type: string
  start: number
  [member: string]: unknown
}

/**
 * @param option its path, such as `retry.maxAttempts`.
 * @returns `undefined` if the definition is not an object literal in the default export.
 */
export function findOptionLine(path: string, option: string): number | undefined {
  try {
    const text = readFileSync(path, 'utf8')
    const { body } = parseAst(text, { lang: extname(path).endsWith('ts') ? 'ts' : 'js' }) as unknown as { body: Node[] }
    const exported = body.find(({ type }) => type === 'ExportDefaultDeclaration')?.declaration as Node | undefined
    let node = unwrap(exported, body)
    for (const name of option.split('.')) {
      const properties: Node[] = node?.type === 'ObjectExpression' ? (node.properties as Node[]) : []
      const property = properties.find((each) => each.type === 'Property' && nameOf(each.key as Node) === name)
      if (!property) return undefined
      node = unwrap(property.value as Node, body, property.start)
    }
    return node && text.slice(0, node.start).split('\n').length
  } catch {
    return undefined
  }
}

/** Looks into calls, type assertions and variables. @param start that of the property, which the line is about. */
function unwrap(node: Node | undefined, body: readonly Node[], start?: number): Node | undefined {
  let inner = node
  for (;;) {
    if (inner?.type === 'CallExpression') inner = (inner.arguments as Node[])[0]
    else if (inner?.type === 'TSSatisfiesExpression' || inner?.type === 'TSAsExpression')
      inner = inner.expression as Node
    else if (inner?.type === 'Identifier') inner = findVariable(inner.name as string, body)
    else break
  }
  const found = inner ?? node
  return found && start !== undefined ? { ...found, start } : found
}

function findVariable(name: string, body: readonly Node[]): Node | undefined {
  const declarations = body.flatMap((each) =>
    each.type === 'VariableDeclaration' ? (each.declarations as Node[]) : [],
  )
  return declarations.find(({ id }) => (id as Node).name === name)?.init as Node | undefined
}

function nameOf(key: Node): unknown {
  return key.type === 'Identifier' ? key.name : key.value
}
