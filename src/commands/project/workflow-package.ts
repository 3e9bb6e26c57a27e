/** The package `execution-service` for authors of workflows: types, `defineWorkflow` and the test kit. */
import { execFile } from 'node:child_process'
import { copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { compilePackage, type PackageSource, root } from './compile-package.ts'
import { readManifest } from './manifest.ts'

/** The modules of the package by their exported path. */
const modules = {
  './workflow': 'src/domain/workflows/define-workflow',
  './testing': 'src/worker/testing/run-workflow',
}

/** Started as a process, not imported. */
const unpackChromium = 'src/worker/browser/unpack-chromium'

const dependencies = ['@sinonjs/fake-timers', 'ajv', 'ajv-formats', 'fflate', 'otpauth', 'playwright-core', 'typebox']

/** What is compiled for authors: the modules and their declarations. */
export function workflowModules(): PackageSource {
  const compilerOptions = {
    target: 'es2024',
    lib: ['es2024', 'dom', 'dom.iterable', 'dom.asynciterable'],
    module: 'nodenext',
    moduleResolution: 'nodenext',
    types: ['node'],
    skipLibCheck: true,
  }
  const entries = [...Object.values(modules), unpackChromium].map((path) => `${path}.ts`)
  return { entries, compilerOptions, prune: true }
}

/** For `exports` in a manifest. */
export const moduleExports = {
  ...Object.fromEntries(
    Object.entries(modules).map(([path, file]) => [path, { types: `./${file}.d.ts`, default: `./${file}.js` }]),
  ),
  './package.json': './package.json',
}

/** @throws {Error} as `compilePackage` does. */
export async function buildWorkflowPackage(directory: string): Promise<void> {
  await compilePackage([workflowModules()], directory)
  const { name, version, license, ...own } = await readManifest()
  const versions = { ...own.devDependencies, ...own.dependencies }
  const manifest = {
    name,
    version,
    description: 'Types and test kit for authors of workflows of execution-service.',
    license,
    type: 'module',
    exports: moduleExports,
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
