/**
 * Builds the snapshot of a directory in a child process: bundles its modules, loads the bundles, and checks what they
 * export. The code of workflows never runs in the process of the service.
 */
import { fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { chown, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { flushCompileCache } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, dirname, extname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseAst } from 'rolldown/parseAst'
import { environmentWithoutSecrets } from '../../config/config.ts'
import type { Identity } from '../workflows/executor-identity.ts'
import { loadSecondsMax as defaultLoadSecondsMax, parseWorkflow, WorkflowError } from '../workflows/workflow.ts'
import { type Bundle, bundleDirectory, displayPath, NoWorkflows } from './bundle.ts'
import type { DeployedWorkflow, Snapshot } from './snapshot.ts'

export { NoWorkflows } from './bundle.ts'

export interface BuildOptions {
  /** The user that executes workflows, if not that of this process. */
  identity?: Identity
  /** How long the modules may take to load, once they are bundled. */
  loadSecondsMax?: number
}

/** The child's messages. */
type Message =
  /** The module that is loaded next. */
  | { kind: 'loading'; module: string }
  | { kind: 'built'; snapshot: string }
  | { kind: 'refused'; message: string; isEmpty: boolean }

/** How long bundling may take. 200 workflows took some seconds. */
const bundleSecondsMax = 300

/** @throws {WorkflowError} one sentence that names the file, where possible with its line, and what to change. */
export async function buildSnapshot(directory: string, options: BuildOptions = {}): Promise<Snapshot> {
  const { identity, loadSecondsMax = defaultLoadSecondsMax } = options
  const source = resolve(directory)
  const target = await mkdtemp(join(tmpdir(), 'execution-service-build-'))
  try {
    if (identity) await chown(target, identity.uid, identity.gid)
    return await build(source, target, identity, loadSecondsMax)
  } finally {
    await rm(target, { recursive: true, force: true })
  }
}

async function build(source: string, target: string, identity: Identity, loadSecondsMax: number): Promise<Snapshot> {
  // Output of the modules goes to stderr: stdout is for logs and for the output of commands.
  const stdio = ['ignore', 2, 'inherit', 'ipc'] as const
  const env = environmentWithoutSecrets(process.env)
  const child = fork(fileURLToPath(import.meta.url), [source, target], { ...identity, env, stdio: [...stdio] })
  let timer: NodeJS.Timeout | undefined
  let loading: string | undefined
  try {
    return await new Promise<Snapshot>((resolve, reject) => {
      const limit = (seconds: number, error: () => WorkflowError) => {
        clearTimeout(timer)
        timer = setTimeout(() => reject(error()), seconds * 1000)
      }
      limit(bundleSecondsMax, () => bundleTimeoutError(source))
      child.on('message', (message: Message) => {
        if (message.kind === 'loading') {
          // The limit is for all modules together.
          if (loading === undefined) limit(loadSecondsMax, () => loadTimeoutError(loading, loadSecondsMax))
          loading = message.module
        } else if (message.kind === 'built') resolve(JSON.parse(message.snapshot))
        else if (message.kind === 'refused') {
          reject(message.isEmpty ? new NoWorkflows(message.message) : new WorkflowError(message.message))
        }
      })
      child.once('error', reject)
      // Not 'exit', which may precede the message.
      child.once('close', (code, signal) => reject(exitError(loading ?? displayPath(source), code, signal)))
    })
  } finally {
    clearTimeout(timer)
    // It may have timers or sockets of modules. Its compile cache must not receive bundles in a temporary directory.
    child.kill('SIGKILL')
  }
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

/** In the child. */
async function buildHere(source: string, target: string, report: (message: Message) => void): Promise<Message> {
  try {
    const bundle = await bundleDirectory(source)
    await writeBundle(bundle, source, target)
    flushCompileCache()
    const workflows = await loadAll(bundle, target, report)
    const { files, externals } = bundle
    return { kind: 'built', snapshot: JSON.stringify({ files, externals, workflows } satisfies Snapshot) }
  } catch (error) {
    if (error instanceof WorkflowError) {
      return { kind: 'refused', message: error.message, isEmpty: error instanceof NoWorkflows }
    }
    throw error
  }
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

async function loadAll(bundle: Bundle, target: string, report: (message: Message) => void) {
  process.setSourceMapsEnabled(true)
  const workflows = new Map<string, { source: string; workflow: DeployedWorkflow }>()
  for (const [source, module] of bundle.modules) {
    const file = displayPath(source)
    report({ kind: 'loading', module: file })
    const definition = await load(join(target, module), file)
    const workflow = parseWorkflow(file, definition, (option) => findOptionLine(source, option))
    const other = workflows.get(workflow.id)
    if (other) {
      throw new WorkflowError(`${other.source} and ${file} have the same id "${workflow.id}": rename one of them.`)
    }
    workflows.set(workflow.id, { source: file, workflow: { ...workflow, module } })
  }
  const list = [...workflows.values()].map(({ workflow }) => workflow)
  // Loaded here only: Ajv and the detector of unsafe patterns take up to 65 MB.
  const { checkWorkflows } = await import('../workflows/check-workflows.ts')
  checkWorkflows(list)
  return list.sort((a, b) => (a.id < b.id ? -1 : 1))
}

async function load(path: string, file: string): Promise<unknown> {
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
  const [source = '', target = ''] = process.argv.slice(2)
  // Without the callback, the end of the parent would be an uncaught error.
  const report = (message: Message) => void process.send?.(message, undefined, undefined, () => {})
  report(await buildHere(source, target, report))
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
