/** Generates generated/ from the documents in openapi/. */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { buildSnapshot } from '../../domain/deployments/build-snapshot.ts'
import { type Document, type DocumentName, documentNames } from '../../openapi/document.ts'
import { writeBruno } from './bruno.ts'
import { bundle } from './bundle.ts'
import { stringifyDocument, writeClient, writeServer, writeTypes } from './typescript.ts'

type Writer = (document: Document, name: DocumentName) => string | Promise<string>

const writers: Record<string, Writer> = {
  'document.json': stringifyDocument,
  'types.ts': writeTypes,
  'server.ts': writeServer,
  'client.ts': writeClient,
}

/**
 * Updates generated/, unless a document cannot be bundled.
 *
 * @param check changes nothing.
 * @returns a line for each file that was, or would be, changed.
 * @throws {DocumentError}
 */
export async function generate({ check = false } = {}): Promise<string[]> {
  return updateFolder(await renderFiles(), 'generated', check)
}

async function renderFiles(): Promise<Map<string, string>> {
  const bundled = await Promise.all(documentNames.map(async (name) => [name, await bundle(name)] as const))
  const files = new Map<string, string>()
  for (const [name, document] of bundled) {
    for (const [file, write] of Object.entries(writers)) files.set(join(name, file), await write(document, name))
  }
  const collection = writeBruno(Object.fromEntries(bundled) as Record<DocumentName, Document>)
  for (const [path, text] of collection) files.set(join('bruno', path), text)
  files.set('example-workflows.json', await describeExamples())
  return files
}

/** The definitions of the examples, which the docs describe. */
async function describeExamples(): Promise<string> {
  const { workflows } = await buildSnapshot('examples/workflows')
  const described = workflows.map(({ module: _module, ...workflow }) => workflow)
  return `${JSON.stringify(described, null, 2)}\n`
}

/** Writes the files that differ and removes those that are not generated. */
export async function updateFolder(files: Map<string, string>, folder: string, check: boolean): Promise<string[]> {
  const changes: string[] = []
  for (const [file, text] of files) {
    const path = join(folder, file)
    if (text === (await readFile(path, 'utf8').catch(() => undefined))) continue
    changes.push(`${check ? 'out of date' : 'wrote'}: ${path}`)
    if (check) continue
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, text)
  }
  for (const file of await listFiles(folder)) {
    if (files.has(file)) continue
    changes.push(`${check ? 'no longer generated' : 'removed'}: ${join(folder, file)}`)
    if (!check) await rm(join(folder, file))
  }
  return changes
}

async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  return files.map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
}
