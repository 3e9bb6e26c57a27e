/** Which packages contain native code. They cannot be bundled, and must be installed on each machine with a worker. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

interface Manifest {
  name?: string
  gypfile?: boolean
  binary?: unknown
  napi?: unknown
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

/** Packages that load or build an addon for the package that depends on them. */
const addonLoaders = ['bindings', 'node-gyp-build', 'node-addon-api', 'prebuild-install', 'nan', '@mapbox/node-pre-gyp']
/** For example `@img/sharp-linux-x64`. */
const platformPackage = /(linux|darwin|win32)[-_](x64|arm64)/
/** They load their own files by computed paths, and start programs. */
const unbundled = ['playwright', 'playwright-core', 'puppeteer-core']

const manifests = new Map<string, Manifest | undefined>()

/** @param path of a module. */
export function isNative(path: string): boolean {
  if (path.endsWith('.node')) return true
  const manifest = path.includes('node_modules') ? manifestOf(dirname(path)) : undefined
  if (!manifest) return false
  const { name = '', gypfile, binary, napi, dependencies = {}, optionalDependencies = {} } = manifest
  if (gypfile || binary || napi || unbundled.includes(name)) return true
  const depended = Object.keys({ ...dependencies, ...optionalDependencies })
  return depended.some((each) => addonLoaders.includes(each) || platformPackage.test(each))
}

/** Of the package that has the directory. */
function manifestOf(directory: string): Manifest | undefined {
  if (manifests.has(directory)) return manifests.get(directory)
  const manifest =
    readManifest(directory) ?? (dirname(directory) === directory ? undefined : manifestOf(dirname(directory)))
  manifests.set(directory, manifest)
  return manifest
}

/** Some packages have further files of this name in subdirectories, without a name. */
function readManifest(directory: string): Manifest | undefined {
  try {
    const manifest: Manifest = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'))
    return manifest.name === undefined ? undefined : manifest
  } catch {
    return undefined
  }
}
