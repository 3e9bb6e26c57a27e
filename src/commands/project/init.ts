/**
 * `init DIR`: makes a project for workflows outside this repository, with everything that it needs in it. In the package, it
 * runs on Node 20: modules that need a later one are loaded when they are used.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, cp, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isPublished } from '../../config/command-line.ts'
import { CommandError } from '../command-error.ts'
import { hasRequiredNode } from '../required-node.ts'
import { root } from './compile-package.ts'
import { projectLock } from './lock-file.ts'
import { readManifest } from './manifest.ts'
import { buildWorkflowPackage, packPackage } from './workflow-package.ts'

const template = fileURLToPath(new URL('./template', import.meta.url))

/**
 * @param install whether npm installs the project's packages, so that `npm start` works at once.
 * @throws {CommandError} when the directory is not empty, or cannot be made, or when npm fails.
 */
export async function initProject(path: string, { install }: { install: boolean }): Promise<void> {
  const directory = resolve(path)
  await requireEmpty(directory, path)
  await writeProject(directory, await findPackage(directory))
  if (install) await installPackages(directory)
  const near = relative('', directory)
  const shown = near.startsWith('..') ? directory : near || '.'
  print(`A project with workflows and their tests is in ${shown}. Next:\n`)
  const steps = [...(near ? [`cd ${shown}`] : []), ...(install ? [] : ['npm install']), 'npm test']
  if (isPublished)
    return print(
      [...steps.toSpliced(-1, 0, 'npm start'), '']
        .map((step) => `  ${step}`)
        .join('\n')
        .trimEnd(),
    )
  print(`${steps.map((step) => `  ${step}`).join('\n')}\n`)
  print(`To run it while you write, and to deploy it to a running service, from ${process.cwd()}:\n`)
  const workflows = join(directory, 'workflows')
  print(`  WORKFLOWS_DIR=${workflows} npm run dev\n  npm run --silent cli -- workflows deploy ${workflows}`)
}

/**
 * Returns the version of the package for the project's manifest. A package that npm has installed from a registry is
 * installed from there; any other is packed into the project, and moves with it.
 */
async function findPackage(directory: string): Promise<string> {
  if (isPublished) {
    const { version } = await readManifest()
    const source = await findSource()
    if (/^https?:/.test(source)) return version
    return `file:${(await copyPackage(source, directory)) ?? (await packPackage(root, directory))}`
  }
  const { createTemporaryDirectory } = await import('../../storage/temporary-directory.ts')
  const built = createTemporaryDirectory('project')
  print('Building the package that the project needs.')
  try {
    const packageDirectory = join(built.path, 'package')
    await mkdir(packageDirectory)
    await buildWorkflowPackage(packageDirectory)
    return `file:${await packPackage(packageDirectory, directory)}`
  } finally {
    built.remove()
  }
}

/** Returns the address or `file:` that npm has installed this package from, by the lock file that it keeps in `node_modules`. */
async function findSource(): Promise<string> {
  try {
    const lock = JSON.parse(await readFile(join(root, '../.package-lock.json'), 'utf8'))
    return lock.packages[`node_modules/${basename(root)}`].resolved ?? ''
  } catch {
    return ''
  }
}

/** Returns the name of the copy, or undefined unless the package was installed from a file that still exists. */
async function copyPackage(source: string, directory: string): Promise<string | undefined> {
  if (!/^file:.*\.tgz$/.test(source)) return undefined
  const file = resolve(root, '../..', source.slice('file:'.length))
  try {
    await copyFile(file, join(directory, basename(file)))
    return basename(file)
  } catch {
    return undefined
  }
}

async function installPackages(directory: string): Promise<void> {
  print('Installing its packages with npm.')
  // What npm has just fetched for `npx` is not fetched again, nor asked about.
  const options = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']
  const child = spawn('npm', ['install', ...options], { cwd: directory, stdio: ['ignore', 2, 2] })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new CommandError('npm could not install the packages: see its message above.')
}

async function requireEmpty(directory: string, path: string): Promise<void> {
  let files: string[]
  try {
    await mkdir(directory, { recursive: true })
    files = await readdir(directory)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new CommandError(`${path} cannot be made (${code}): name a directory that you may write to.`)
  }
  if (files.length > 0) throw new CommandError(`${path} is not empty: name a new or an empty directory.`)
}

async function writeProject(directory: string, packageVersion: string): Promise<void> {
  const { name, devDependencies, projectDependencies, optionalDependencies } = await readManifest()
  const versions = { ...devDependencies, ...projectDependencies }
  const manifest = {
    name: toPackageName(basename(directory)),
    private: true,
    type: 'module',
    scripts: {
      ...(isPublished && { start: 'WORKFLOWS_DIR=workflows execution-service start --watch' }),
      test: 'node --test',
      types: 'tsc',
    },
    devDependencies: {
      '@types/node': versions['@types/node'],
      [name]: packageVersion,
      typescript: versions.typescript,
    },
    // Node 24, which runs TypeScript, on machines that have an older one.
    ...(needsNode() && { optionalDependencies: optionalDependencies ?? nodePackages(projectDependencies) }),
  }
  const compilerOptions = {
    target: 'es2024',
    module: 'nodenext',
    types: ['node'],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    // Node runs TypeScript by removing its types.
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
    allowImportingTsExtensions: true,
  }
  const toJson = (value: object) => `${JSON.stringify(value, undefined, 2)}\n`
  await cp(template, directory, { recursive: true })
  if (isPublished) await rename(join(directory, 'README.published.md'), join(directory, 'README.md'))
  else await rm(join(directory, 'README.published.md'))
  await writeFile(join(directory, 'package.json'), toJson(manifest))
  const lock = isPublished ? await projectLock(directory, manifest) : undefined
  if (lock) await writeFile(join(directory, 'package-lock.json'), toJson(lock))
  await writeFile(join(directory, 'tsconfig.json'), toJson({ compilerOptions, include: ['workflows'] }))
  await writeFile(join(directory, '.gitignore'), 'data/\nnode_modules/\n')
}

/** In the repository always: the machine that has it need not be the one that the project goes to. */
function needsNode(): boolean {
  return !isPublished || !hasRequiredNode || process.execPath.includes(`${sep}node_modules${sep}`)
}

function nodePackages(versions: Record<string, string> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(versions).filter(([name]) => name.startsWith('node-')))
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** npm accepts lower case, digits, dots, underscores and hyphens. */
function toPackageName(name: string): string {
  const accepted = name.toLowerCase().replaceAll(/[^a-z0-9._-]+/g, '-')
  return accepted.replace(/^[._-]+/, '') || 'workflows'
}
