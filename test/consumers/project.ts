/** An empty project into which the published client is installed, without a network. */
import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { rolldown } from 'rolldown'
import { buildClient } from '../../src/tools/generate/client-package.ts'
import { removeDirectory, temporaryDirectory } from '../support/service.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const installed = (name: string) => join(root, 'node_modules', name)
const installOptions = ['--ignore-scripts', '--loglevel=error']

export interface Project {
  directory: string
  /** The installed package. */
  packageDirectory: string
  /** Compiles a file with these options and returns the compiler's output, which is empty on success. */
  compile(file: string, options: object): Promise<string>
  /** Bundles a file with its imports into one minified module. */
  bundle(file: string): Promise<string>
  remove(): void
}

/** Packs the client and its dependencies, installs the packs, and copies the consumer's files. */
export async function newProject(files: string): Promise<Project> {
  const directory = temporaryDirectory()
  const built = join(directory, 'built')
  const project = join(directory, 'project')
  await buildClient(built)
  await mkdir(join(directory, 'packs'))
  const dependencies = [installed('openapi-fetch'), installed('openapi-typescript-helpers')]
  await run('npm', ['pack', ...installOptions, built, ...dependencies], { cwd: join(directory, 'packs') })
  await cp(join(root, files), project, { recursive: true })
  await writeFile(join(project, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  const packs = (await readdir(join(directory, 'packs'))).map((name) => join('..', 'packs', name))
  // An empty cache, so that only the packs can be installed.
  const offline = ['--offline', '--no-audit', '--no-fund', '--cache', join(directory, 'cache')]
  await run('npm', ['install', ...installOptions, ...offline, ...packs], { cwd: project })
  return {
    directory: project,
    packageDirectory: join(project, 'node_modules/execution-service-client'),
    compile: (file, options) => compile(project, file, options),
    bundle: (file) => bundle(join(project, file)),
    remove: () => removeDirectory(directory),
  }
}

async function compile(project: string, file: string, options: object): Promise<string> {
  const compilerOptions = {
    target: 'es2022',
    strict: true,
    skipLibCheck: false,
    rewriteRelativeImportExtensions: true,
    typeRoots: [installed('@types')],
    ...options,
  }
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [file] }))
  const compiler = installed('typescript/bin/tsc')
  const { stdout } = await run(process.execPath, [compiler, '-p', '.'], { cwd: project }).catch((error) => error)
  return stdout
}

async function bundle(input: string): Promise<string> {
  const bundled = await rolldown({ input, platform: 'browser' })
  const { output } = await bundled.generate({ minify: true })
  await bundled.close()
  if (output.length !== 1) throw new Error(`The bundle of ${input} has ${output.length} files.`)
  return output[0].code
}
