/**
 * `npm run build:client` builds the package `execution-service-client` for callers in dist/, and packs it into a file, from
 * which npm installs it. With Python there, it also builds the wheel of the Python package. `npm run build:package` builds
 * the package of the service, which has what authors of workflows need.
 */
import { spawnSync } from 'node:child_process'
import { copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compilePackage } from '../../commands/project/compile-package.ts'
import { packPackage } from '../../commands/project/workflow-package.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))

const compilerOptions = {
  // Supported by Node 20 and the browsers of its time.
  target: 'es2022',
  lib: ['es2022', 'dom', 'dom.iterable'],
  module: 'nodenext',
  moduleResolution: 'nodenext',
  // Without Node's types, so that the client cannot use Node.
  types: [],
}

/** The command is a program of Node; what applications import is not. */
const commandOptions = {
  ...compilerOptions,
  lib: ['es2023'],
  types: ['node'],
  // openapi-typescript's own types refer to packages that it does not install.
  skipLibCheck: true,
}

/** @throws {Error} with the compiler's diagnostics. */
export async function buildClient(directory: string): Promise<void> {
  const library = { entries: ['src/client/index.ts'], compilerOptions, prune: false }
  const command = { entries: ['src/client/types-command.ts'], compilerOptions: commandOptions, prune: true }
  await compilePackage([command, library], directory)
  const source = join(root, 'src/client')
  for (const name of ['package.json', 'README.md']) await copyFile(join(source, name), join(directory, name))
  await copyFile(join(root, 'LICENSE'), join(directory, 'LICENSE'))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const dist = join(root, 'dist')
  const name = 'execution-service-client'
  const directory = join(dist, name)
  await buildClient(directory)
  process.stdout.write(`wrote: dist/${name}/ and dist/${await packPackage(directory, dist)}\n`)
  const wheel = spawnSync('python3', [join(root, 'clients/python/build_backend.py'), dist], { encoding: 'utf8' })
  if (wheel.error) process.stdout.write('not built: the wheel of the Python package, since there is no python3\n')
  else if (wheel.status === 0) process.stdout.write(`wrote: dist/${wheel.stdout.trim()}\n`)
  else throw new Error(wheel.stderr)
}
