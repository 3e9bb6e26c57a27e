/** What the processes do that build a snapshot. Each reports to its parent on a pipe. */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { describeCauses } from '../../storage/error-causes.ts'
import { definitionIn } from '../workflows/module-definition.ts'
import { parseWorkflow, type Workflow, WorkflowError, WorkflowSchemaError } from '../workflows/workflow.ts'
import { type Bundle, type BundledModule, bundleDirectory, NoWorkflows } from './bundle.ts'
import type { DeployedWorkflow } from './snapshot.ts'

export type Step = 'bundle' | 'load' | 'check' | 'try'

/** Lines of JSON. The process that loads modules runs the author's code, which can send any message. */
export type Message =
  | ({ kind: 'bundled' } & Bundle)
  /** The module that is loaded next. */
  | { kind: 'loading'; index: number }
  /** The definitions, in the order of the modules. */
  | { kind: 'loaded'; definitions: Workflow[] }
  | { kind: 'checked'; workflows: DeployedWorkflow[] }
  /** Why the run of an example failed. */
  | { kind: 'tried'; failure: string | null }
  | { kind: 'refused'; message: string; isEmpty: boolean }

export interface Loaded {
  module: BundledModule
  workflow: DeployedWorkflow
}

export const messageStream = 3

async function load(
  target: string,
  modules: readonly BundledModule[],
  report: (message: Message) => void,
): Promise<Message> {
  mkdirSync(tmpdir(), { recursive: true, mode: 0o700 })
  // Bundles must not get into the compile cache: their directory is temporary.
  flushCompileCache()
  process.setSourceMapsEnabled(true)
  const definitions: Workflow[] = []
  for (const [index, { file, path, lines }] of modules.entries()) {
    report({ kind: 'loading', index })
    const definition = await loadModule(target, path, file)
    const workflow = parseWorkflow(file, definition, (option) => lines[`/${option.replaceAll('.', '/')}`])
    definitions.push(workflow)
  }
  return { kind: 'loaded', definitions }
}

async function loadModule(target: string, path: string, file: string): Promise<unknown> {
  try {
    return definitionIn(await import(pathToFileURL(join(target, path)).href))
  } catch (error) {
    const { name, stack = '' } = error instanceof Error ? error : { name: 'Error' }
    const line = lineIn(stack, file)
    const place = line === undefined ? file : `${file}:${line}`
    const syntax = error instanceof SyntaxError && line === undefined ? await syntaxErrorPlace(target) : ''
    throw new WorkflowError(`${place} failed to load: ${name}: ${describeCauses(error)}${syntax}.`)
  }
}

/** The line of the author's module in a stack that source maps have mapped. */
function lineIn(stack: string, file: string): string | undefined {
  const frames = stack.split('\n').filter((line) => line.startsWith('    at ') && line.includes(`/${basename(file)}:`))
  return frames[0]?.split(':').at(-2)
}

/** The error of an import names no file. Bundled modules are valid; carried packages and bundles of callers may not be. */
async function syntaxErrorPlace(target: string): Promise<string> {
  const { parseAst } = await import('rolldown/parseAst')
  const files = readdirSync(target, { recursive: true, encoding: 'utf8' })
  for (const file of files.filter((each) => /\.m?js$/.test(each)).sort()) {
    try {
      parseAst(readFileSync(join(target, file), 'utf8'), { lang: 'js' }, file)
    } catch (error) {
      return ` in ${file}:${(error as { loc?: { line: number } }).loc?.line ?? 1}`
    }
  }
  return ''
}

/** Loads Ajv and the detector of unsafe patterns, which take up to 65 MB. */
async function check(loaded: readonly Loaded[]): Promise<Message> {
  requireUniqueIds(loaded)
  const { checkWorkflows } = await import('../workflows/check-workflows.ts')
  const workflows = loaded.map(({ workflow }) => workflow).sort((a, b) => (a.id < b.id ? -1 : 1))
  try {
    checkWorkflows(workflows)
  } catch (error) {
    if (!(error instanceof WorkflowSchemaError)) throw error
    throw new WorkflowError(`${placeOf(error, loaded)}: ${error.message}`)
  }
  return { kind: 'checked', workflows }
}

function requireUniqueIds(loaded: readonly Loaded[]): void {
  const files = new Map<string, string>()
  for (const { module, workflow } of loaded) {
    const other = files.get(workflow.id)
    if (other !== undefined)
      throw new WorkflowError(`${other} and ${module.file} have the same id "${workflow.id}": rename one of them.`)
    files.set(workflow.id, module.file)
  }
}

/** The file, and the line of the schema's part or of the nearest one around it that is in the source. */
function placeOf({ workflowId, place }: WorkflowSchemaError, loaded: readonly Loaded[]): string {
  const { file = '', lines = {} } = loaded.find(({ workflow }) => workflow.id === workflowId)?.module ?? {}
  let path = place
  while (path !== '' && lines[path] === undefined) path = path.slice(0, path.lastIndexOf('/'))
  return path === '' ? file : `${file}:${lines[path]}`
}

async function run(step: string | undefined, path: string, report: (message: Message) => void): Promise<Message> {
  if (step === 'bundle') return { kind: 'bundled', ...(await bundleDirectory(path)) }
  const input = JSON.parse(await text(process.stdin))
  return step === 'load' ? load(path, input, report) : check(input)
}

if (import.meta.main) {
  const [step, path = ''] = process.argv.slice(2)
  const pipe = new Socket({ fd: messageStream, readable: false, writable: true })
  // The parent has ended, so no process reads the report.
  pipe.on('error', () => process.exit())
  const report = (message: Message) => void pipe.write(`${JSON.stringify(message)}\n`)
  try {
    report(await run(step, path, report))
  } catch (error) {
    if (!(error instanceof WorkflowError)) throw error
    report({ kind: 'refused', message: error.message, isEmpty: error instanceof NoWorkflows })
  }
}
