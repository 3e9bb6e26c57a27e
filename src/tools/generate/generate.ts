/** What is generated from the documents in openapi/: a writer for each file. */
import { join } from 'node:path'
import { type Document, type DocumentName, documentNames } from '../../openapi/document.ts'
import { writeBruno } from './bruno.ts'
import { bundle } from './bundle.ts'
import { writeClient } from './client.ts'
import { documentText } from './document.ts'
import { bringTo } from './folder.ts'
import { writeServer } from './server.ts'
import { writeTypes } from './types.ts'

type Writer = (document: Document, name: DocumentName) => string | Promise<string>

/** Writes a file for each document. */
const writers: Record<string, Writer> = {
  'document.json': documentText,
  'types.ts': writeTypes,
  'server.ts': writeServer,
  'client.ts': writeClient,
}

/** The text of every file of generated/, by its path within it. */
async function write(): Promise<Map<string, string>> {
  const bundled = await Promise.all(documentNames.map(async (name) => [name, await bundle(name)] as const))
  const files = new Map<string, string>()
  for (const [name, document] of bundled) {
    for (const [file, writer] of Object.entries(writers)) {
      files.set(join(name, file), await writer(document, name))
    }
  }
  const collection = writeBruno(Object.fromEntries(bundled) as Record<DocumentName, Document>)
  for (const [path, text] of collection) files.set(join('bruno', path), text)
  return files
}

/**
 * Brings generated/ to what the documents want, and tells each file that it changed. Nothing is changed when one of the
 * documents is refused.
 *
 * @param check whether nothing is to be written at all.
 * @throws {DocumentRefused}
 */
export async function generate({ check = false } = {}): Promise<string[]> {
  return bringTo(await write(), 'generated', check)
}
