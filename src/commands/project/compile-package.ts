/** Compiles modules of the repository to JavaScript and declarations, for packages that are published. */
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type ts from 'typescript'
import { CommandError } from '../command-error.ts'

export const root = fileURLToPath(new URL('../../..', import.meta.url))

/** What all packages have in common. */
const options = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: true,
  declaration: true,
  rewriteRelativeImportExtensions: true,
  rootDir: root,
} satisfies ts.CompilerOptions

export interface PackageSource {
  /** Modules by their path in the repository. */
  entries: readonly string[]
  /** In the form of tsconfig.json; they win over those of all packages. */
  compilerOptions: Record<string, unknown>
  /** Whether files are left out that are reached by types alone, and that no declaration of an entry names. */
  prune: boolean
}

/**
 * Writes the package to the directory, with the folders of the repository, so that imports stay as they are.
 *
 * @throws {Error} with the compiler's diagnostics.
 * @throws {CommandError} when TypeScript is not installed.
 */
export async function compilePackage(sources: readonly PackageSource[], directory: string): Promise<void> {
  const { default: compiler } = await import('typescript').catch(() => {
    throw new CommandError(
      'Compiling the package needs TypeScript, which is not installed: run `npm ci` without `--omit=dev`.',
    )
  })
  const files = new Map(sources.flatMap((source) => [...compile(compiler, source)]))
  await rm(directory, { recursive: true, force: true })
  for (const [path, text] of files) {
    const target = join(directory, relative(root, path))
    await mkdir(dirname(target), { recursive: true })
    await writeFile(target, text)
  }
}

function compile(compiler: typeof ts, source: PackageSource): Map<string, string> {
  const parsed = compiler.convertCompilerOptionsFromJson(source.compilerOptions, root)
  const files = new Map<string, string>()
  const entries = source.entries.map((path) => join(root, path))
  const program = compiler.createProgram(entries, { ...options, ...parsed.options })
  const { diagnostics } = program.emit(undefined, (path, text) => files.set(path, text))
  const found = [...parsed.errors, ...compiler.getPreEmitDiagnostics(program), ...diagnostics]
  const host = { getCanonicalFileName: (name: string) => name, getCurrentDirectory: () => root, getNewLine: () => '\n' }
  if (found.length > 0) throw new Error(compiler.formatDiagnostics(found, host))
  if (!source.prune) return files
  const kept = new Set(reachable(compiler, entries, files))
  return new Map([...files].filter(([path]) => kept.has(path)))
}

/** The files that the entries import: JavaScript by JavaScript, and declarations by declarations. */
function reachable(compiler: typeof ts, entries: readonly string[], files: ReadonlyMap<string, string>): string[] {
  const reached = new Set<string>()
  const visit = (path: string) => {
    const text = files.get(path)
    if (text === undefined || reached.has(path)) return
    reached.add(path)
    const extension = path.endsWith('.d.ts') ? '.d.ts' : '.js'
    for (const { fileName } of compiler.preProcessFile(text).importedFiles) {
      if (fileName.startsWith('.')) visit(resolve(dirname(path), fileName).replace(/\.[jt]s$/, extension))
    }
  }
  for (const entry of entries) for (const extension of ['.js', '.d.ts']) visit(entry.replace(/\.ts$/, extension))
  return [...reached]
}
