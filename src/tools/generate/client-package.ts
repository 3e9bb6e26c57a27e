/**
 * `npm run build:client` compiles the client to dist/client/, which is published as `execution-service-client`. The
 * package keeps the folders of the repository, src/client/ and generated/, so that imports stay as they are.
 */
import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const source = join(root, 'src/client')

const options: ts.CompilerOptions = {
  // Supported by Node 20 and the browsers of its time.
  target: ts.ScriptTarget.ES2022,
  lib: ['lib.es2022.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  // Without Node's types, so that the client cannot use Node.
  types: [],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: true,
  declaration: true,
  rewriteRelativeImportExtensions: true,
  rootDir: root,
}

/** @throws {Error} with the compiler's diagnostics. */
export async function buildClient(directory: string): Promise<void> {
  const files = new Map<string, string>()
  const program = ts.createProgram([join(source, 'index.ts')], options)
  const host = { getCanonicalFileName: (name: string) => name, getCurrentDirectory: () => root, getNewLine: () => '\n' }
  const { diagnostics } = program.emit(undefined, (path, text) => files.set(path, text))
  const found = [...ts.getPreEmitDiagnostics(program), ...diagnostics]
  if (found.length > 0) throw new Error(ts.formatDiagnostics(found, host))
  await rm(directory, { recursive: true, force: true })
  for (const [path, text] of files) {
    const target = join(directory, relative(root, path))
    await mkdir(dirname(target), { recursive: true })
    await writeFile(target, text)
  }
  for (const name of ['package.json', 'README.md']) await copyFile(join(source, name), join(directory, name))
  await copyFile(join(root, 'LICENSE'), join(directory, 'LICENSE'))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await buildClient(join(root, 'dist/client'))
  process.stdout.write('wrote: dist/client/\n')
}
