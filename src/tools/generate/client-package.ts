/**
 * `npm run build:client`: writes dist/client/, which is published as `execution-service-client`. It has the client's
 * files and, beside them, what was generated for callers; so imports of generated/ become shorter by the way up.
 */
import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const source = join(root, 'src/client')

const options: ts.CompilerOptions = {
  // What Node 20 and the browsers of its time have.
  target: ts.ScriptTarget.ES2022,
  lib: ['lib.es2022.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  // Of Node there is nothing to be seen, so that nothing of it can be used.
  types: [],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: true,
  declaration: true,
  rewriteRelativeImportExtensions: true,
  rootDir: root,
}

/** @throws {Error} with what the compiler says, when the client is not well typed on its own. */
export async function buildClient(directory: string): Promise<void> {
  const files = new Map<string, string>()
  const program = ts.createProgram([join(source, 'index.ts')], options)
  const host = { getCanonicalFileName: (name: string) => name, getCurrentDirectory: () => root, getNewLine: () => '\n' }
  const { diagnostics } = program.emit(undefined, (path, text) => files.set(path, text))
  const found = [...ts.getPreEmitDiagnostics(program), ...diagnostics]
  if (found.length > 0) throw new Error(ts.formatDiagnostics(found, host))
  await rm(directory, { recursive: true, force: true })
  for (const [path, text] of files) {
    // A file of types alone is nothing at run time.
    if (text.replaceAll(/\/\*.*?\*\//gs, '').trim() === 'export {};') continue
    const target = join(directory, placeOf(path))
    await mkdir(dirname(target), { recursive: true })
    await writeFile(target, placed(path, text))
  }
  for (const name of ['package.json', 'README.md']) await copyFile(join(source, name), join(directory, name))
  await copyFile(join(root, 'LICENSE'), join(directory, 'LICENSE'))
}

/** Where a compiled file stands in the package: the client's at its root, and generated/ beside them. */
function placeOf(path: string): string {
  const fromClient = relative(source, path)
  return fromClient.startsWith('..') ? relative(root, path) : fromClient
}

const specifierPattern = /(?<=(?:\bfrom |\bimport\()['"])(\.[^'"]+)(?=['"])/g

/** With its imports as they are from there; the compiler leaves `.ts` in declarations. */
function placed(path: string, text: string): string {
  return text.replaceAll(specifierPattern, (specifier) => {
    const target = placeOf(join(dirname(path), specifier)).replace(/\.ts$/, '.js')
    const found = relative(dirname(placeOf(path)), target)
    return found.startsWith('.') ? found : `./${found}`
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await buildClient(join(root, 'dist/client'))
  process.stdout.write('wrote: dist/client/\n')
}
