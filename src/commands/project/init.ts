/** `workflows init DIR`: makes a project for workflows outside this repository, with everything that it needs in it. */
import { cp, mkdir, readdir, writeFile } from 'node:fs/promises'
import { basename, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createTemporaryDirectory } from '../../storage/temporary-directory.ts'
import { CommandError, print } from '../output.ts'
import { buildWorkflowPackage, packPackage, readManifest } from './workflow-package.ts'

const template = fileURLToPath(new URL('./template', import.meta.url))

/** @throws {CommandError} when the directory is not empty, or cannot be made. */
export async function initProject(path: string): Promise<void> {
  const directory = resolve(path)
  await requireEmpty(directory, path)
  const built = createTemporaryDirectory('project')
  try {
    const packageDirectory = join(built.path, 'package')
    await mkdir(packageDirectory)
    await buildWorkflowPackage(packageDirectory)
    // npm installs from a file, because no registry has the package. In the project, it moves with it.
    const packageFile = await packPackage(packageDirectory, directory)
    await writeProject(directory, packageFile)
  } finally {
    built.remove()
  }
  const near = relative('', directory)
  const shown = near.startsWith('..') ? directory : near || '.'
  print(`A project with one workflow and its test is in ${shown}. Next:\n`)
  print(`  cd ${shown}\n  npm install\n  npm test\n`)
  print(`To run it while you write, and to deploy it to a running service, from ${process.cwd()}:\n`)
  const workflows = join(directory, 'workflows')
  print(`  WORKFLOWS_DIR=${workflows} npm run dev\n  npm run --silent cli -- workflows deploy ${workflows}`)
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

async function writeProject(directory: string, packageFile: string): Promise<void> {
  const { name, devDependencies, optionalDependencies } = await readManifest()
  const manifest = {
    name: toPackageName(basename(directory)),
    private: true,
    type: 'module',
    scripts: { test: 'node --test', types: 'tsc' },
    devDependencies: {
      '@types/node': devDependencies['@types/node'],
      [name]: `file:${packageFile}`,
      typescript: devDependencies.typescript,
    },
    // Node 24, which runs TypeScript, on machines that have an older one.
    optionalDependencies,
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
  await writeFile(join(directory, 'package.json'), toJson(manifest))
  await writeFile(join(directory, 'tsconfig.json'), toJson({ compilerOptions, include: ['workflows'] }))
  await writeFile(join(directory, '.gitignore'), 'node_modules/\n')
}

/** npm accepts lower case, digits, dots, underscores and hyphens. */
function toPackageName(name: string): string {
  const accepted = name.toLowerCase().replaceAll(/[^a-z0-9._-]+/g, '-')
  return accepted.replace(/^[._-]+/, '') || 'workflows'
}
