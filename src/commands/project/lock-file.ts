/**
 * The lock file of a new project: the versions that `npx` has just installed, and those of the project's own packages that
 * were tested. With it, npm asks the registry for no metadata, and unpacks each package once. Runs on Node 20.
 */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { root } from './compile-package.ts'

type Packages = Record<string, { resolved?: string; dev?: boolean; [member: string]: unknown }>

interface ProjectManifest {
  name: string
  devDependencies: Record<string, string | undefined>
  optionalDependencies?: Record<string, string>
}

/** In the published package: the entries of the project's own packages, by their directories. */
export const projectPackagesFile = 'generated/project-packages.json'

const lockfileVersion = 3

/**
 * @param directory of the project, which has the package unless a registry has it.
 * @returns undefined unless `npx` has installed this package, alone.
 */
export async function projectLock(directory: string, manifest: ProjectManifest) {
  const { name, devDependencies, optionalDependencies = {} } = manifest
  const service = basename(root)
  const installed = await readInstalled(service)
  const version = devDependencies[service]
  if (!installed || version === undefined) return undefined
  const own: Packages = JSON.parse(await readFile(join(root, projectPackagesFile), 'utf8'))
  const packages: Packages = {}
  for (const [path, entry] of Object.entries({ ...installed, ...own })) {
    const isOptional = path.replace('node_modules/', '') in optionalDependencies
    // A machine with Node 24 needs no package that has it.
    if (path === '' || (path.startsWith('node_modules/node-linux-') && !isOptional)) continue
    packages[path] = isOptional ? entry : { ...entry, dev: true }
  }
  const entry = packages[`node_modules/${service}`]
  if (!entry) return undefined
  if (version.startsWith('file:')) {
    const file = await readFile(join(directory, version.slice('file:'.length)))
    Object.assign(entry, {
      resolved: version,
      integrity: `sha512-${createHash('sha512').update(file).digest('base64')}`,
    })
  }
  return {
    name,
    lockfileVersion,
    requires: true,
    packages: { '': { name, devDependencies, optionalDependencies }, ...packages },
  }
}

/** The lock file of the installation that has this package. Other installations may have more than it needs. */
async function readInstalled(service: string): Promise<Packages | undefined> {
  try {
    const { packages }: { packages: Packages } = JSON.parse(
      await readFile(join(root, '../../package-lock.json'), 'utf8'),
    )
    const { dependencies = {} } = packages[''] ?? {}
    return Object.keys(dependencies as object).join() === service ? packages : undefined
  } catch {
    return undefined
  }
}
