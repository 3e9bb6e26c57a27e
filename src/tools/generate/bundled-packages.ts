/**
 * Puts the packages that the service needs into the published package, as `bundleDependencies`. npm then fetches one file
 * instead of 200, and no metadata, which is larger than the packages. Only files that the service can load are copied: npm
 * unpacks a package from a file three times, and most of the time goes by files.
 */
import { copyFile, mkdir, readdir, readFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { rolldown } from 'rolldown'
import { root } from '../../commands/project/compile-package.ts'

interface LockedPackage {
  /** Native code is for one operating system. */
  os?: unknown
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

/** By their directories. */
type Packages = Record<string, LockedPackage>

/** Packages with files that are found by their names, or by code that is compiled later. */
const whole = /^node_modules\/(?:playwright-core|idiomorph|minisearch|@github\/relative-time-element|ajv|ajv-formats)$/

/** Files that are read, not imported. */
const data =
  /^node_modules\/(?:@picocss\/pico\/css\/pico\.indigo\.min\.css|@zxcvbn-ts\/language-common\/src\/passwords\.json)$/

/** Types that the declarations for authors name. */
const typesOfAuthors = /^node_modules\/(?:typebox|playwright-core)\/.*\.ts$|^node_modules\/typebox\/.*\.mts$/

const ofDevelopment = /\.(?:map|flow|scss|[cm]?ts|md|markdown)$/i
const always = /(?:^|\/)(?:package\.json|(?:licen[cs]e|notice|copying)[^/]*)$/i

/**
 * @param entries modules of the service that start as processes, or that authors import.
 * @param names of the service's dependencies.
 * @returns the names of the bundled ones. npm fetches the others, which have native code, for its platform.
 */
export async function bundlePackages(
  directory: string,
  entries: readonly string[],
  names: readonly string[],
): Promise<string[]> {
  const { packages }: { packages: Packages } = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8'))
  const bundled = names.filter((name) => !isNative(packages, name))
  const found = new Set<string>()
  const visit = (name: string, parent: string) => {
    const path = findPackage(packages, name, parent)
    if (path === undefined || found.has(path)) return
    found.add(path)
    if (packages[path]?.os) throw new Error(`${path} is for one operating system, so the package cannot contain it.`)
    const { dependencies, optionalDependencies } = packages[path] ?? {}
    for (const each of Object.keys({ ...dependencies, ...optionalDependencies })) visit(each, path)
  }
  for (const name of bundled) visit(name, '')
  const loaded = await findLoaded(entries, new Set([...found].map(nameOf)))
  for (const path of found) {
    for (const file of (await listFiles(path)).filter((each) => isBundled(path, each, loaded))) {
      await mkdir(dirname(join(directory, file)), { recursive: true })
      await copyFile(join(root, file), join(directory, file))
    }
  }
  return bundled
}

/** Packages below a package have directories in the lock file themselves. */
async function listFiles(path: string): Promise<string[]> {
  const entries = await readdir(join(root, path), { withFileTypes: true, recursive: true })
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(root, join(parentPath, name)))
  return files.filter((file) => !file.startsWith(join(path, 'node_modules/')))
}

function isBundled(path: string, file: string, loaded: ReadonlySet<string>): boolean {
  if (always.test(file) || typesOfAuthors.test(file) || data.test(file) || loaded.has(file)) return true
  return whole.test(path) && !ofDevelopment.test(file)
}

/** Returns the files of these packages that the modules import or require, directly or not. */
async function findLoaded(entries: readonly string[], names: ReadonlySet<string>): Promise<Set<string>> {
  const bundle = await rolldown({
    cwd: root,
    input: entries.map((entry) => join(root, entry)),
    platform: 'node',
    treeshake: false,
    logLevel: 'silent',
    // As Node resolves: rolldown adds `import` or `require`.
    resolve: { conditionNames: ['node', 'node-addons', 'module-sync'] },
    external: (id) => /^[^./#\0]/.test(id) && !names.has(/^(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? ''),
  })
  const { output } = await bundle.generate()
  await bundle.close()
  const modules = output.flatMap((each) => (each.type === 'chunk' ? each.moduleIds : []))
  return new Set(modules.map((id) => relative(root, id.replace(/^\0/, '').replace(/\?.*$/, ''))))
}

function nameOf(path: string): string {
  return path.replace(/^.*node_modules\//, '')
}

function isNative(packages: Packages, name: string): boolean {
  const { optionalDependencies = {} } = packages[`node_modules/${name}`] ?? {}
  return Object.keys(optionalDependencies).some((each) => packages[`node_modules/${each}`]?.os !== undefined)
}

/** Finds a package as Node does: below the package that needs it, or below one of its parents. */
function findPackage(packages: Packages, name: string, parent: string): string | undefined {
  for (let directory = parent; ; directory = directory.replace(/\/?node_modules\/(?:@[^/]+\/)?[^/]+$/, '')) {
    const path = join(directory, 'node_modules', name)
    if (packages[path] !== undefined) return path
    if (directory === '') return undefined
  }
}
