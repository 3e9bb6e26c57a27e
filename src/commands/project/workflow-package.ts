/** The package `execution-service` for authors of workflows: types, `defineWorkflow` and the test kit. */
import { execFile } from 'node:child_process'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { compilePackage, root } from './compile-package.ts'

/** The modules of the package by their exported path. */
const modules = {
  './workflow': 'src/domain/workflows/define-workflow',
  './testing': 'src/worker/testing/run-workflow',
}

/** Started as a process, not imported. */
const unpackChromium = 'src/worker/browser/unpack-chromium'

const dependencies = ['@sinonjs/fake-timers', 'ajv', 'ajv-formats', 'fflate', 'playwright-core', 'typebox']

interface Manifest {
  name: string
  version: string
  license: string
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
  optionalDependencies: Record<string, string>
}

/** The repository's own, whose versions the packages and projects share. */
export async function readManifest(): Promise<Manifest> {
  return JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
}

/** @throws {Error} as `compilePackage` does. */
export async function buildWorkflowPackage(directory: string): Promise<void> {
  const compilerOptions = {
    target: 'es2024',
    lib: ['es2024', 'dom', 'dom.iterable', 'dom.asynciterable'],
    module: 'nodenext',
    moduleResolution: 'nodenext',
    types: ['node'],
    skipLibCheck: true,
  }
  const entries = [...Object.values(modules), unpackChromium].map((path) => `${path}.ts`)
  await compilePackage([{ entries, compilerOptions, prune: true }], directory)
  const { name, version, license, ...own } = await readManifest()
  const versions = { ...own.devDependencies, ...own.dependencies }
  const manifest = {
    name,
    version,
    description: 'Types and test kit for authors of workflows of execution-service.',
    license,
    type: 'module',
    exports: {
      ...Object.fromEntries(
        Object.entries(modules).map(([path, file]) => [path, { types: `./${file}.d.ts`, default: `./${file}.js` }]),
      ),
      './package.json': './package.json',
    },
    files: ['**/*.js', '**/*.d.ts'],
    dependencies: Object.fromEntries(dependencies.map((each) => [each, versions[each]])),
    // For tests of bundles.
    peerDependencies: { rolldown: versions.rolldown },
    peerDependenciesMeta: { rolldown: { optional: true } },
  }
  await writeFile(join(directory, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`)
  await copyFile(join(root, 'src/worker/testing/README.md'), join(directory, 'README.md'))
  await copyFile(join(root, 'LICENSE'), join(directory, 'LICENSE'))
}

/** Packs a built package into one file, from which npm installs it, and returns the file's name. */
export async function packPackage(directory: string, destination: string): Promise<string> {
  const options = ['--ignore-scripts', '--loglevel=error', '--json', '--pack-destination', destination]
  const { stdout } = await promisify(execFile)('npm', ['pack', ...options, directory])
  const [packed] = JSON.parse(stdout) as [{ filename: string }]
  return packed.filename
}
