/** A project with generators of clients that others make, which compiles and bundles what they generate. */
import { execFile } from 'node:child_process'
import { hash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { cp, mkdtemp, rename, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { rolldown } from 'rolldown'
import { temporaryDirectory } from '../support/service.ts'

const pathOf = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const execute = promisify(execFile)

/** Copies `generators` to a temporary directory, where the packages of its lock file are installed. */
export async function generatorProject(): Promise<string> {
  const project = temporaryDirectory()
  await cp(pathOf('generators'), project, { recursive: true })
  await symlink(join(await install(), 'node_modules'), join(project, 'node_modules'))
  return project
}

/** Installs the generators once for each lock file: packages that only these tests need. */
async function install(): Promise<string> {
  const lock = readFileSync(pathOf('generators/package-lock.json'))
  const installed = pathOf(`../../node_modules/.cache/generators-${hash('sha256', lock).slice(0, 16)}`)
  if (existsSync(installed)) return installed
  const started = await mkdtemp(`${installed}-`)
  for (const file of ['package.json', 'package-lock.json']) await cp(pathOf(`generators/${file}`), join(started, file))
  await execute('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: started })
  await rename(started, installed).catch((error) => {
    // Another test file has installed them in the meantime.
    if (!existsSync(installed)) throw error
  })
  return installed
}

/** Runs a program of the packages, and returns what it prints. */
export async function runIn(project: string, program: string, ...args: string[]): Promise<string> {
  const options = { cwd: project, maxBuffer: 64 * 1024 * 1024 }
  return (await execute(join('node_modules/.bin', program), args, options)).stdout
}

/** Returns the compiler's output, which is empty on success. */
export async function compile(project: string, name: string, include: string[]): Promise<string> {
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2022', 'dom', 'dom.iterable'],
    module: 'esnext',
    moduleResolution: 'bundler',
    allowImportingTsExtensions: true,
    resolveJsonModule: true,
    noEmit: true,
    strict: true,
    skipLibCheck: true,
  }
  await writeFile(join(project, `${name}.json`), JSON.stringify({ compilerOptions, include }))
  return runIn(project, 'tsc', '-p', `${name}.json`).catch(({ stdout }) => stdout)
}

/** Returns the URL of a bundle: generated code imports files without their extension, which Node does not find. */
export async function bundle(project: string, name: string): Promise<string> {
  const bundled = await rolldown({ input: join(project, `${name}.ts`), platform: 'node' })
  const file = join(project, `${name}.mjs`)
  await bundled.write({ file })
  await bundled.close()
  return pathToFileURL(file).href
}
