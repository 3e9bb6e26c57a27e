/**
 * Packages that a bundle cannot hold: which ones they are, and the files of those that a deployment carries as they are.
 * Runs only in the process that bundles.
 */
import { isUtf8 } from 'node:buffer'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { WorkflowError } from '../workflows/workflow.ts'
import { findPackage } from './deployment-files.ts'
import { isPackageName, megabytes, type SnapshotFile, snapshotBytesMax, snapshotFilesMax } from './snapshot.ts'

interface Manifest {
  name?: string
  version?: string
  gypfile?: boolean
  binary?: unknown
  napi?: unknown
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
  peerDependenciesMeta?: Record<string, { optional?: boolean }>
}

interface Need {
  name: string
  directory: string
}

export function packageName(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

/** The directory of the installed package that has the file. */
export function packageDirectory(path: string): string | undefined {
  const parent = `${sep}node_modules${sep}`
  for (let at = path.lastIndexOf(parent); at > 0; at = path.lastIndexOf(parent, at - 1)) {
    const start = at + parent.length
    // A package may have files of other packages in a directory of this name.
    const directory = path.slice(0, start) + packageName(path.slice(start).replaceAll(sep, '/')).replaceAll('/', sep)
    if (manifestOf(directory)) return directory
  }
  return undefined
}

/** The name of the member in the project's package.json. */
const member = 'execution-service'

/**
 * The packages that the nearest package.json names, at or above the directory.
 *
 * @throws {WorkflowError}
 */
export function readExternal(directory: string): string[] {
  const place = findAbove(directory, (path) => existsSync(join(path, 'package.json')))
  const file = join(place ?? '/', 'package.json')
  const options: unknown = Object(readManifest(file))[member] ?? {}
  const { external = [], ...others } = Object(options)
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw new WorkflowError(`${file}: "${member}" has the unknown member "${unknown}".`)
  if (options === Object(options) && Array.isArray(external) && external.every(isPackageName)) return external
  throw new WorkflowError(`${file}: "${member}" must be an object like { "external": ["a-package"] }.`)
}

const manifests = new Map<string, Manifest | undefined>()

function manifestOf(directory: string): Manifest | undefined {
  if (!manifests.has(directory)) manifests.set(directory, readManifest(join(directory, 'package.json')))
  return manifests.get(directory)
}

function readManifest(path: string): Manifest | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    return undefined
  }
}

// Packages with native code are built for one platform: each machine with a worker needs them installed.

/** Packages that load or build an addon for the package that depends on them. */
const addonLoaders = ['bindings', 'node-gyp-build', 'node-addon-api', 'prebuild-install', 'nan', '@mapbox/node-pre-gyp']
/** For example `@img/sharp-linux-x64`. */
const platformPackage = /(linux|darwin|win32)[-_](x64|arm64)/

/** Packages whose manifest does not say that they have native code. */
const withAddon = new Set<string>()

/** Optional native code does not count: the package has other code in its place. */
export function isNative(directory: string): boolean {
  const { gypfile, binary, napi, dependencies = {}, optionalDependencies = {} } = manifestOf(directory) ?? {}
  if (gypfile || binary || napi || withAddon.has(directory)) return true
  const needed = Object.keys(dependencies).filter((name) => !Object.hasOwn(optionalDependencies, name))
  if (needed.some((name) => addonLoaders.includes(name))) return true
  return [...needed, ...Object.keys(optionalDependencies)].some((name) => platformPackage.test(name))
}

function hasAddon(directory: string): boolean {
  const isOptional = addonLoaders.some((name) => isOptionalDependency(directory, name))
  return !isOptional && filesOf(directory).some((path) => path.endsWith('.node'))
}

export function isOptionalDependency(directory: string | undefined, name: string): boolean {
  return directory !== undefined && Object.hasOwn(manifestOf(directory)?.optionalDependencies ?? {}, name)
}

// Code that works only in the place of its package. In bundled code, only what could not be bundled is left of it.

const unbundled: [RegExp, string][] = [
  [/\bcreateRequire\b/, 'createRequire'],
  [/\b__require(?:\$\d{1,5})?\.resolve\b/, 'require.resolve'],
  [/(?<!function )\b__require(?:\$\d{1,5})?\((?!["'][^.#/])/, 'require of a name that is computed'],
  [/\bmodule\.require\(/, 'module.require'],
  [/\bimport\.meta\.(?:url|dirname|filename|resolve)\b/, 'import.meta'],
  // Indirect calls see no `require`.
  [/(?<![.\w$])eval\(/, 'eval'],
]

/** Variables of CommonJS modules, which bundled modules do not have, so that `typeof` says so. */
const places = ['__dirname', '__filename']

/** Why the bundled code of a module cannot work outside its package; `undefined` if it can. */
export function findUnbundled(code: string): string | undefined {
  const [, found] = unbundled.find(([pattern]) => pattern.test(code)) ?? []
  const isUsed = (name: string) => code.includes(name) && !new RegExp(`typeof ${name}\\b`).test(code)
  return found ?? (importsComputed(code) ? 'import of a name that is computed' : places.find(isUsed))
}

/** Whether the code calls `import` with another argument than a string. A block follows methods of this name. */
function importsComputed(code: string): boolean {
  return [...code.matchAll(/(?<![.\w$])import\(/g)].some(({ 0: call, index }) => {
    let rest = code.slice(index + call.length, index + 2000).trimStart()
    while (/^\/[*/]/.test(rest)) {
      const end = rest.startsWith('/*') ? '*/' : '\n'
      rest = rest.slice(rest.indexOf(end, 2) + end.length).trimStart()
    }
    const following = rest.slice(rest.indexOf(')') + 1).trimStart()
    return !/^["']/.test(rest) && !following.startsWith('{')
  })
}

/** The packages of one directory of workflows that are carried, with all that they need. */
export class CarriedPackages {
  readonly #directory: string
  /** Names of packages with native code that the carried ones need. */
  readonly natives = new Set<string>()
  /** Why each is carried, by its directory. */
  readonly #reasons = new Map<string, string>()
  readonly #needs = new Map<string, readonly Need[]>()
  /** What modules were seen to import, by the directory of their package. */
  readonly #imports = new Map<string, Map<string, string>>()
  /** The directories of packages at the top of `node_modules`, by the names by which bundled modules import them. */
  readonly #roots = new Map<string, string>()

  /** @param named packages that the author wants to be carried. */
  constructor(directory: string, named: readonly string[]) {
    this.#directory = directory
    for (const name of named) {
      const found = findPackage(directory, name)
      if (found === undefined) throw notInstalled(`"external" in package.json names ${name}`, name, directory)
      this.#roots.set(name, found)
      this.add(found, 'package.json names it', name)
    }
  }

  has(directory: string): boolean {
    return this.#needs.has(directory)
  }

  get isEmpty(): boolean {
    return this.#needs.size === 0 && this.natives.size === 0
  }

  /** Remembers an import that a manifest may not mention. */
  recordImport(importer: string, name: string, directory: string): void {
    const imports = this.#imports.get(importer) ?? new Map<string, string>()
    this.#imports.set(importer, imports.set(name, directory))
  }

  /** Adds a package with all that it needs. */
  add(directory: string, reason: string, name = nameIn(directory)): void {
    if (this.has(directory)) return
    if (hasAddon(directory)) withAddon.add(directory)
    if (isNative(directory)) {
      this.natives.add(name)
      return
    }
    const needs = this.#findNeeds(directory)
    this.#reasons.set(directory, reason)
    this.#needs.set(directory, needs)
    for (const need of needs) this.add(need.directory, `${nameIn(directory)} needs it`, need.name)
  }

  /**
   * The specifier by which a bundled module imports from a carried package. A name belongs to the package that the
   * workflows themselves find by it; of others, the version is in the name.
   */
  specifierOf(specifier: string, directory: string): string {
    const name = packageName(specifier)
    const isOwn = directory === findPackage(this.#directory, name)
    const unique = isOwn ? name : `${name}@${manifestOf(directory)?.version}`
    const known = this.#roots.get(unique)
    if (known === undefined || directory < known) this.#roots.set(unique, directory)
    return unique + specifier.slice(name.length)
  }

  /** The files of all packages, where modules of the bundle find them, and they each other. */
  readFiles(): SnapshotFile[] {
    const placed = this.#place()
    const sizes = [...placed].map(([path, directory]) => {
      const files = filesOf(directory).map((file) => ({ path: `${path}/${file}`, source: join(directory, file) }))
      const stats = files.map((file) => ({ ...file, ...statOf(file.source) }))
      return { directory, files: stats, bytes: stats.reduce((sum, { size }) => sum + size, 0) }
    })
    const bytes = sizes.reduce((sum, each) => sum + each.bytes, 0)
    const count = sizes.reduce((sum, each) => sum + each.files.length, 0)
    if (bytes > snapshotBytesMax || count > snapshotFilesMax) {
      const { directory, files, bytes: most } = sizes.reduce((a, b) => (b.bytes > a.bytes ? b : a))
      const { source } = files.reduce((a, b) => (b.size > a.size ? b : a))
      throw new WorkflowError(
        `Packages that cannot be bundled have ${count} files of ${megabytes(bytes)} MiB, and a deployment may have ${snapshotFilesMax} of ${megabytes(snapshotBytesMax)} MiB: the largest package is ${nameIn(directory)} with ${megabytes(most)} MiB (${this.#reasons.get(directory)}), and its largest file ${relative(directory, source)}.`,
      )
    }
    return sizes.flatMap(({ files }) =>
      files.map(({ path, source, isExecutable }) => readFile(path, source, isExecutable)),
    )
  }

  /** The directories of packages by their paths in the deployment. */
  #place(): Map<string, string> {
    const placed = new Map<string, string>()
    const queue: [path: string, directory: string][] = []
    const place = (path: string, directory: string) => {
      placed.set(path, directory)
      queue.push([path, directory])
    }
    const roots = [...this.#roots].filter(([, directory]) => this.has(directory))
    for (const [name, directory] of roots.sort(([a], [b]) => (a < b ? -1 : 1))) place(`node_modules/${name}`, directory)
    for (const [path, directory] of queue) {
      for (const need of this.#needs.get(directory) ?? []) {
        if (placed.size > snapshotFilesMax) throw new WorkflowError(`${nameIn(directory)} needs too many packages.`)
        if (!this.has(need.directory)) continue
        const visible = findVisible(placed, path, need.name)
        if (visible === undefined) place(`node_modules/${need.name}`, need.directory)
        // All that a package needs is placed before what these need, so nothing is hidden from them later.
        else if (visible !== need.directory) place(`${path}/node_modules/${need.name}`, need.directory)
      }
    }
    return placed
  }

  #findNeeds(directory: string): readonly Need[] {
    const manifest = manifestOf(directory) ?? {}
    const { dependencies = {}, optionalDependencies = {}, peerDependencies = {}, peerDependenciesMeta = {} } = manifest
    const imports = this.#imports.get(directory) ?? new Map<string, string>()
    // Optional peers are often tools, such as compilers, that are installed for another reason.
    const peers = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true)
    const declared = { ...dependencies, ...optionalDependencies }
    const names = new Set([...Object.keys(declared), ...peers, ...imports.keys()])
    return [...names].sort().flatMap((name) => {
      const found = imports.get(name) ?? findPackage(directory, name)
      const isOptional = Object.hasOwn(optionalDependencies, name)
      if (isOptional && (addonLoaders.includes(name) || (found && (hasAddon(found) || isNative(found))))) return []
      if (found !== undefined) return { name, directory: found }
      if (isOptional || !Object.hasOwn(dependencies, name)) return []
      throw notInstalled(`${nameIn(directory)} cannot be bundled and needs ${name}`, name, directory)
    })
  }
}

function notInstalled(reason: string, name: string, directory: string): WorkflowError {
  return new WorkflowError(`${reason}, which is not installed: ${installAdvice(name, directory)}.`)
}

/** The commands that install a package, by the file that shows which program installs those of a project. */
const installers = [
  ['pnpm-lock.yaml', 'pnpm add'],
  ['yarn.lock', 'yarn add'],
  ['bun.lock', 'bun add'],
  ['bun.lockb', 'bun add'],
] as const

/** How to install a package that the directory does not find. */
export function installAdvice(name: string, directory: string): string {
  const isAbove = (file: string) => findAbove(directory, (path) => existsSync(join(path, file))) !== undefined
  if (isAbove('.pnp.cjs'))
    return `this is a Plug'n'Play project of yarn, whose packages lie in archives, while a bundle needs them in node_modules: set \`nodeLinker: node-modules\` in .yarnrc.yml, and run \`yarn install\``
  const [, command = 'npm install'] = installers.find(([file]) => isAbove(file)) ?? []
  return `install the package with \`${command} ${name}\``
}

/** The directory, or the nearest one around it, that fits. */
function findAbove(directory: string, fits: (path: string) => boolean): string | undefined {
  for (let path = directory; ; path = dirname(path)) {
    if (fits(path)) return path
    if (path === dirname(path)) return undefined
  }
}

function nameIn(directory: string): string {
  return manifestOf(directory)?.name ?? directory
}

/** As Node.js does: in the package's own `node_modules`, and in those around it. */
function findVisible(placed: ReadonlyMap<string, string>, path: string, name: string): string | undefined {
  for (let around = path; around !== ''; around = around.slice(0, Math.max(0, around.lastIndexOf('/node_modules/')))) {
    const found = placed.get(`${around}/node_modules/${name}`)
    if (found !== undefined) return found
  }
  return placed.get(`node_modules/${name}`)
}

const listed = new Map<string, string[]>()

/** Without the packages in it, and without what describes a file beside it for tools. */
function filesOf(directory: string): string[] {
  const known = listed.get(directory)
  if (known) return known
  const files = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .filter((path) => !path.startsWith('node_modules/'))
  const paths = new Set(files)
  const isForTools = (path: string) => {
    const described = path.replace(/\.map$/, '').replace(/\.d\.([cm]?)ts$/, '.$1js')
    return described !== path && paths.has(described)
  }
  const kept = files.filter((path) => !isForTools(path)).sort()
  listed.set(directory, kept)
  return kept
}

function statOf(path: string): { size: number; isExecutable: boolean } {
  const { size, mode } = statSync(path)
  return { size, isExecutable: (mode & 0o100) !== 0 }
}

function readFile(path: string, source: string, isExecutable: boolean): SnapshotFile {
  const bytes = readFileSync(source)
  const content = isUtf8(bytes)
    ? { content: bytes.toString() }
    : { content: bytes.toString('base64'), encoding: 'base64' as const }
  return { path, ...content, ...(isExecutable && { isExecutable }) }
}
