/** Looks for values that must stand nowhere, in every form in which they could. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The forms in which a canary could stand somewhere. */
function formsOf(canary: string): Buffer[] {
  const quoted = (text: string) => JSON.stringify(text).slice(1, -1)
  const texts = [canary, canary.toUpperCase(), quoted(canary), quoted(quoted(canary)), encodeURIComponent(canary)]
  const binary = Buffer.from(canary.replaceAll('-', ''), 'hex')
  const encoded = [Buffer.from(canary).toString('base64').replace(/=+$/, ''), Buffer.from(canary).toString('hex')]
  const wide = Buffer.from(canary, 'utf16le')
  return [...[...texts, ...encoded].map((text) => Buffer.from(text)), wide, ...(binary.length === 16 ? [binary] : [])]
}

/** Every file below the directory. */
export function readFiles(directory: string): [path: string, bytes: Buffer][] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return entries.flatMap((entry): [string, Buffer][] => {
    const path = join(entry.parentPath, entry.name)
    try {
      return [[path, readFileSync(path)]]
    } catch (error) {
      // A database's own, which was removed meanwhile.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
      throw error
    }
  })
}

/** Where one of the canaries stands. */
export function findCanaries(places: [name: string, content: Buffer | string][], canaries: string[]): string[] {
  const forms = canaries.flatMap(formsOf)
  return places.filter(([, content]) => forms.some((form) => Buffer.from(content).includes(form))).map(([name]) => name)
}
