/** A copy of this checkout that a test may change. */
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** What is made here and not written by hand, and the pictures. */
const left = new Set(['.git', 'node_modules', 'data', 'dist', 'coverage', 'screenshots'])

export interface Checkout {
  directory: string
  read(file: string): string
  /** At once: nobody sees the file half written. */
  write(file: string, text: string): void
  /** @param from stands in the file exactly once. */
  replace(file: string, from: string, to: string): void
  remove(): void
}

export function copyCheckout(): Checkout {
  const directory = mkdtempSync(join(tmpdir(), 'checkout-'))
  cpSync(root, directory, { recursive: true, filter: (source) => !left.has(basename(source)) })
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  const read = (file: string) => readFileSync(join(directory, file), 'utf8')
  const write = (file: string, text: string) => {
    // Where nobody watches.
    const aside = join(directory, 'written~')
    writeFileSync(aside, text)
    renameSync(aside, join(directory, file))
  }
  return {
    directory,
    read,
    write,
    replace(file, from, to) {
      const parts = read(file).split(from)
      if (parts.length !== 2)
        throw new Error(`${file} should have this once, and has it ${parts.length - 1} times: ${from}`)
      write(file, parts.join(to))
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  }
}
