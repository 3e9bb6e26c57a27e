/** Bundles the modules of a directory with all that they import. Runs only in the process that bundles a deployment. */
import { readdir, readFile } from 'node:fs/promises'
import { basename, extname, isAbsolute, join, parse, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stripVTControlCharacters } from 'node:util'
import type { OutputAsset, OutputChunk, Plugin, RolldownLog, RolldownOutput } from 'rolldown'
import { toPointer } from '../../openapi/json-pointer.ts'
import { mapBytesMax } from '../runs/reported-values.ts'
import { WorkflowError } from '../workflows/workflow.ts'
import { findPackage } from './deployment-files.ts'
import {
  CarriedPackages,
  findUnbundled,
  installAdvice,
  isNative,
  isOptionalDependency,
  packageDirectory,
  packageName,
  readExternal,
} from './packages.ts'
import { type SnapshotContent, type SnapshotFile, tooLarge } from './snapshot.ts'

export interface Bundle {
  content: SnapshotContent
  modules: BundledModule[]
}

export interface BundledModule {
  /** The source, for messages. */
  file: string
  /** The path of the bundled module in the content. */
  path: string
  /** The lines of the definition's options in the source, by JSON Pointers to them, if they were found. */
  lines: Record<string, number>
}

/** The directory has no module that could be a workflow. */
export class NoWorkflows extends WorkflowError {}

/** Each module directly in the directory is a workflow. Shared code belongs in subdirectories. */
const modulePattern = /(?<!\.d|\.test)\.([cm]?[jt]s|[jt]sx)$/

const workflowPackage = 'execution-service/workflow'
/** The published package has compiled modules. */
const workflowPackagePath = fileURLToPath(
  new URL(`../workflows/define-workflow${extname(import.meta.url)}`, import.meta.url),
)

/** For messages: as a person who works in the present directory would name the file. */
export function displayPath(path: string): string {
  const near = relative('', path)
  return near.startsWith('..') || isAbsolute(near) ? path : near
}

/**
 * @param sources modules of the directory with workflows; by default all that can be workflows.
 * @throws {WorkflowError} that names the file, its line and the reason.
 */
export async function bundleDirectory(directory: string, sources?: readonly string[]): Promise<Bundle> {
  const input = nameEntries(sources ?? (await listModules(directory)))
  const packages = new CarriedPackages(directory, readExternal(directory))
  try {
    const first = await bundleModules(directory, input, packages)
    for (const { source, reason } of first.unbundled) {
      const found = packageDirectory(source)
      if (found !== undefined) packages.add(found, `${relative(found, source)} uses ${reason}`)
    }
    // What needs its package's own files works nowhere else: it is left out of a second bundle.
    const { output, natives } = packages.isEmpty ? first : await bundleModules(directory, input, packages)
    const externals = new Set([...natives, ...packages.natives])
    requireInstalled(externals, directory)
    return await toBundle(output, packages.readFiles(), externals)
  } catch (error) {
    const [first] = (error as { errors?: RolldownLog[] }).errors ?? []
    throw first ? new WorkflowError(describeLog(first, directory)) : error
  }
}

interface Bundled {
  output: RolldownOutput['output']
  /** Names of packages with native code. */
  natives: ReadonlySet<string>
  /** Modules of packages that do not work in the bundle, and why. */
  unbundled: readonly { source: string; reason: string }[]
}

async function bundleModules(
  directory: string,
  input: Record<string, string>,
  packages: CarriedPackages,
): Promise<Bundled> {
  const { rolldown } = await import('rolldown')
  const findings: RolldownLog[] = []
  const natives = new Set<string>()
  const unbundled: { source: string; reason: string }[] = []
  await using build = await rolldown({
    cwd: directory,
    input,
    platform: 'node',
    plugins: [resolver(packages, natives), addons((source) => void unbundled.push({ source, reason: 'native code' }))],
    checks: { circularDependency: true },
    experimental: { attachDebugInfo: 'none' },
    onLog: (_, log) => void findings.push(log),
  })
  const { output } = await build.generate({
    // Nothing is written there: paths in source maps are relative to it.
    dir: directory,
    format: 'esm',
    keepNames: true,
    comments: { legal: false, jsdoc: false },
    sourcemap: true,
    sourcemapExcludeSources: true,
    sourcemapPathTransform: (source, map) => portablePath(source, map, directory),
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
  })
  requireNoFindings(findings, directory)
  for (const [source, { code }] of output.flatMap((each) =>
    each.type === 'chunk' ? Object.entries(each.modules) : [],
  )) {
    const reason = code === null || isOwn(source) ? undefined : findUnbundled(code)
    if (reason !== undefined) unbundled.push({ source, reason })
  }
  return { output, natives, unbundled }
}

async function listModules(directory: string): Promise<string[]> {
  const files = await readdir(directory).catch((error: Error) => {
    throw new WorkflowError(`The directory of workflows (${directory}) cannot be read: ${error.message}.`)
  })
  const modules = files.filter((file) => modulePattern.test(file)).sort()
  if (modules.length > 0) return modules.map((file) => join(directory, file))
  throw new NoWorkflows(
    `${directory} has no workflows: put a .ts, .tsx, .js, .jsx, .mts, .mjs, .cts or .cjs file with a workflow directly into it.`,
  )
}

/** Two sources may have the same name without their extensions. */
function nameEntries(sources: readonly string[]): Record<string, string> {
  const entries: Record<string, string> = {}
  for (const source of sources) {
    const name = parse(source).name
    entries[name in entries || name === 'chunks' ? basename(source) : name] = source
  }
  return entries
}

/** @param natives receives the names of packages with native code. */
function resolver(packages: CarriedPackages, natives: Set<string>): Plugin {
  return {
    name: 'workflows',
    resolveId: {
      // Neither relative nor absolute: packages, and modules of Node.js.
      filter: { id: /^[^./]/ },
      async handler(source, importer, options) {
        if (source === workflowPackage) return workflowPackagePath
        if (importer === undefined || source.startsWith('node:')) return null
        const resolved = await this.resolve(source, importer, { ...options, skipSelf: true })
        const [from, found] = [packageDirectory(importer), resolved && packageDirectory(resolved.id)]
        if (!resolved || resolved.external || !found || found === from) return resolved
        const name = packageName(source)
        if (from) packages.recordImport(from, name, found)
        if (packages.has(found)) return { id: packages.specifierOf(source, found), external: true }
        if (!isNative(found)) return resolved
        if (!isOptionalDependency(from, name)) natives.add(name)
        return { id: source, external: true }
      },
    },
  }
}

/** @param onAddon called with the modules of packages that load native code by its path. */
function addons(onAddon: (module: string) => void): Plugin {
  return {
    name: 'addons',
    resolveId: {
      filter: { id: /\.node$/ },
      handler(source, importer) {
        if (importer === undefined || isOwn(importer)) return null
        onAddon(importer)
        return { id: source, external: true }
      },
    },
  }
}

/** The same on all machines, wherever the directory and its packages are. Relative to the map. */
function portablePath(source: string, map: string, directory: string): string {
  const path = isAbsolute(source) ? source : join(map, '..', source)
  const up = '../'.repeat(relative(directory, join(map, '..')).split(sep).filter(Boolean).length)
  if (path === workflowPackagePath) return `${up}node_modules/${workflowPackage}.ts`
  const inPackages = path.lastIndexOf(`${sep}node_modules${sep}`)
  const portable = inPackages === -1 ? relative(directory, path) : path.slice(inPackages + 1)
  return up + portable.split(sep).join('/')
}

async function toBundle(
  output: RolldownOutput['output'],
  carried: readonly SnapshotFile[],
  externals: ReadonlySet<string>,
): Promise<Bundle> {
  const chunks = output.filter((each): each is OutputChunk => each.type === 'chunk')
  const assets = output.filter((each): each is OutputAsset => each.type === 'asset')
  const files: SnapshotFile[] = [
    ...chunks.map(({ fileName, code }) => ({ path: fileName, content: code })),
    ...assets
      .filter(({ source }) => source.length <= mapBytesMax)
      .map(({ fileName, source }) => ({ path: fileName, content: String(source) })),
    ...carried,
  ].sort((a, b) => (a.path < b.path ? -1 : 1))
  const content = { files, externals: [...externals].sort() }
  const largest = chunks
    .flatMap(({ modules: parts }) => Object.entries(parts))
    .reduce((a, b) => (b[1].renderedLength > a[1].renderedLength ? b : a))
  const refusal = tooLarge(content, displayPath(largest[0]))
  if (refusal) throw refusal
  const entries = chunks.filter(({ isEntry, facadeModuleId }) => isEntry && facadeModuleId !== null)
  const modules = entries.map(async ({ facadeModuleId, fileName }): Promise<BundledModule> => {
    const source = facadeModuleId as string
    return { file: displayPath(source), path: fileName, lines: await findOptionLines(source) }
  })
  return { content, modules: await Promise.all(modules) }
}

function requireInstalled(externals: ReadonlySet<string>, directory: string): void {
  for (const name of externals) {
    if (findPackage(directory, name) !== undefined) continue
    throw new WorkflowError(`The package "${name}" has native code, and must be installed next to the workflows.`)
  }
}

function isOwn(path: string | undefined): boolean {
  return path !== undefined && !path.includes(`${sep}node_modules${sep}`)
}

/** Packages may import optional packages that are missing, and each other in cycles; the author's modules may not. */
function requireNoFindings(findings: readonly RolldownLog[], directory: string): void {
  for (const log of findings) {
    const isCycle = log.code === 'CIRCULAR_DEPENDENCY' && (log.ids ?? []).every(isOwn)
    const isMissing = log.code === 'UNRESOLVED_IMPORT' && isOwn(log.id)
    if (isCycle || isMissing) throw new WorkflowError(describeLog(log, directory))
  }
}

function describeLog(log: RolldownLog, directory: string): string {
  const [headline = ''] = stripVTControlCharacters(log.message).split('\n')
  const reason = headline.replace(/^\[\w+\] /, '').replace(/\.$/, '')
  const path = log.loc?.file ?? log.id
  const file = path === undefined ? directory : displayPath(isAbsolute(path) ? path : join(directory, path))
  const place = log.loc ? `${file}:${log.loc.line}` : file
  switch (log.code) {
    case 'PARSE_ERROR':
      return `${place} has a syntax error: ${reason}.`
    case 'UNRESOLVED_IMPORT':
      return `${place} imports ${quoted(reason)}, which was not found: ${missingAdvice(quoted(reason), directory)}.`
    case 'CIRCULAR_DEPENDENCY': {
      const cycle = (log.ids ?? []).map((id) => relative(directory, isAbsolute(id) ? id : join(directory, id)))
      return `Modules import each other in a cycle (${cycle.join(' → ')}): move the shared code into another module.`
    }
    default:
      return `${place} cannot be bundled: ${reason}.`
  }
}

/** The specifier in rolldown's message. */
function quoted(reason: string): string {
  return reason.split("'")[1] ?? reason
}

function missingAdvice(specifier: string, directory: string): string {
  return /^[./]/.test(specifier) ? 'check the path' : installAdvice(packageName(specifier), directory)
}

// Finds the lines of a workflow's options in its source, for messages.

/** The parts of ESTree that are read here. */
interface Node {
  type: string
  start: number
  [member: string]: unknown
}

/** Options of one definition. Variables may refer to each other in a cycle. */
const linesMax = 10_000
const optionDepthMax = 32

/**
 * The lines of all options that are properties of object literals, by JSON Pointers to the options. Empty if the default
 * export is no object literal.
 */
export async function findOptionLines(path: string): Promise<Record<string, number>> {
  const { parseAst } = await import('rolldown/parseAst')
  const found = new Map<string, number>()
  const text = await readFile(path, 'utf8')
  const lineEnds = [...text.matchAll(/\n/g)].map(({ index }) => index)
  const lineAt = (start: number) => lineEnds.filter((end) => end < start).length + 1
  const visit = (node: Node | undefined, path: readonly string[], body: readonly Node[]): void => {
    const holder = unwrap(node, body)
    if (holder?.type !== 'ObjectExpression' || path.length > optionDepthMax) return
    for (const property of holder.properties as Node[]) {
      if (property.type !== 'Property' || found.size >= linesMax) continue
      const option = [...path, String(nameOf(property.key as Node))]
      found.set(toPointer(option), lineAt(property.start))
      visit(property.value as Node, option, body)
    }
  }
  try {
    const { body } = parseAst(text, { lang: languageOf(path) }) as unknown as { body: Node[] }
    const exported = body.find(({ type }) => type === 'ExportDefaultDeclaration')?.declaration
    visit(exported as Node | undefined, [], body)
  } catch {
    // A syntax that only the bundler reads.
  }
  return Object.fromEntries(found)
}

function languageOf(path: string): 'ts' | 'tsx' | 'js' | 'jsx' {
  const extension = extname(path)
  if (extension === '.tsx' || extension === '.jsx') return extension === '.tsx' ? 'tsx' : 'jsx'
  return extension.endsWith('ts') ? 'ts' : 'js'
}

/** Looks into calls, type assertions and variables. */
function unwrap(node: Node | undefined, body: readonly Node[]): Node | undefined {
  let inner = node
  for (let depth = 0; depth < optionDepthMax; depth++) {
    if (inner?.type === 'CallExpression') inner = (inner.arguments as Node[])[0]
    else if (inner?.type === 'TSSatisfiesExpression' || inner?.type === 'TSAsExpression')
      inner = inner.expression as Node
    else if (inner?.type === 'Identifier') inner = findVariable(inner.name as string, body)
    else break
  }
  return inner
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
