/** Brings a folder to what was generated: writes what differs, and removes what is not generated any more. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** What was done to the folder; with `check`, what would be, and nothing is done. One line for each file. */
export async function bringTo(files: Map<string, string>, folder: string, check: boolean): Promise<string[]> {
  const changes: string[] = []
  for (const [file, text] of files) {
    const path = join(folder, file)
    if (text === (await readFile(path, 'utf8').catch(() => undefined))) continue
    changes.push(`${check ? 'out of date' : 'wrote'}: ${path}`)
    if (check) continue
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, text)
  }
  for (const file of await filesOf(folder)) {
    if (files.has(file)) continue
    changes.push(`${check ? 'no longer generated' : 'removed'}: ${join(folder, file)}`)
    if (!check) await rm(join(folder, file))
  }
  return changes
}

async function filesOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return files.map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
}
