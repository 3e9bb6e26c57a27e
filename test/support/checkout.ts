/** Copies this checkout, for tests that change it. */
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Not copied: generated files and pictures. */
const excluded = new Set(['.git', 'node_modules', 'data', 'dist', 'coverage', 'screenshots'])

export interface Checkout {
  directory: string
  read(file: string): string
  /** Replaces the file atomically. */
  write(file: string, text: string): void
  /** @param from must occur in the file exactly once. */
  replace(file: string, from: string, to: string): void
  remove(): void
}

export function copyCheckout(): Checkout {
  const directory = mkdtempSync(join(tmpdir(), 'checkout-'))
  cpSync(root, directory, { recursive: true, filter: (source) => !excluded.has(basename(source)) })
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  const read = (file: string) => readFileSync(join(directory, file), 'utf8')
  const write = (file: string, text: string) => {
    // Outside the watched directories.
    const draft = join(directory, 'written~')
    writeFileSync(draft, text)
    renameSync(draft, join(directory, file))
  }
  return {
    directory,
    read,
    write,
    replace(file, from, to) {
      const parts = read(file).split(from)
      if (parts.length !== 2)
        throw new Error(`${file} must contain this once, but contains it ${parts.length - 1} times: ${from}`)
      write(file, parts.join(to))
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  }
}
