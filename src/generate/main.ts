/**
 * `npm run generate`: writes generated/ from the documents in openapi/.
 * `npm run generate -- --check` writes nothing and fails when a file is not what it would write, or is one too many.
 */
import { join } from 'node:path'
import { writeBruno } from './bruno.ts'
import { writeClient } from './client.ts'
import { bundle, type Document, type DocumentName, documentNames, documentText } from './document.ts'
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

async function generate(check: boolean): Promise<void> {
  report(await bringTo(await write(), 'generated', check), check)
}

function report(changed: string[], check: boolean): void {
  const out = (line: string): void => void process.stdout.write(`${line}\n`)
  if (changed.length === 0) return out('generated/ is up to date.')
  for (const line of changed) out(line)
  if (!check) return
  out('The documents and generated/ differ. Run `npm run generate` and commit what it writes.')
  process.exitCode = 1
}

await generate(process.argv.includes('--check'))
