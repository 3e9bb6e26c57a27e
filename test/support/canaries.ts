/** Searches stored data for values that must not be in it, in every likely encoding. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Returns a value in every likely encoding. */
function encodeCanary(canary: string): Buffer[] {
  const quoted = (text: string) => JSON.stringify(text).slice(1, -1)
  const texts = [canary, canary.toUpperCase(), quoted(canary), quoted(quoted(canary)), encodeURIComponent(canary)]
  const binary = Buffer.from(canary.replaceAll('-', ''), 'hex')
  const encoded = [Buffer.from(canary).toString('base64').replace(/=+$/, ''), Buffer.from(canary).toString('hex')]
  const wide = Buffer.from(canary, 'utf16le')
  return [...[...texts, ...encoded].map((text) => Buffer.from(text)), wide, ...(binary.length === 16 ? [binary] : [])]
}

/** Reads every file below the directory. */
export function readFiles(directory: string): [path: string, bytes: Buffer][] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return entries.flatMap((entry): [string, Buffer][] => {
    const path = join(entry.parentPath, entry.name)
    try {
      return [[path, readFileSync(path)]]
    } catch (error) {
      // A temporary file of the database, deleted in the meantime.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
      throw error
    }
  })
}

/** Returns the names of the contents that contain one of the canaries. */
export function findCanaries(places: [name: string, content: Buffer | string][], canaries: string[]): string[] {
  const forms = canaries.flatMap(encodeCanary)
  return places.filter(([, content]) => forms.some((form) => Buffer.from(content).includes(form))).map(([name]) => name)
}
