/**
 * `npm run generate`: writes generated/ from the documents in openapi/.
 * `npm run generate -- --check` writes nothing and fails when a file is not what it would write.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { writeClient } from './client.ts'
import { bundle, type Document, type DocumentName, documentNames, documentText } from './document.ts'
import { writeServer } from './server.ts'
import { writeTypes } from './types.ts'

type Writer = (document: Document, name: DocumentName) => string | Promise<string>

const writers: Record<string, Writer> = {
  'document.json': documentText,
  'types.ts': writeTypes,
  'server.ts': writeServer,
  'client.ts': writeClient,
}

async function generate(check: boolean): Promise<void> {
  const stale: string[] = []
  for (const name of documentNames) {
    const document = await bundle(name)
    for (const [file, write] of Object.entries(writers)) {
      const path = `generated/${name}/${file}`
      const text = await write(document, name)
      if (text === (await readFile(path, 'utf8').catch(() => undefined))) continue
      stale.push(path)
      if (check) continue
      await mkdir(dirname(path), { recursive: true })
      await writeFile(path, text)
    }
  }
  report(stale, check)
}

function report(stale: string[], check: boolean): void {
  const out = (line: string): void => void process.stdout.write(`${line}\n`)
  if (stale.length === 0) return out('generated/ is up to date.')
  for (const path of stale) out(`${check ? 'out of date' : 'wrote'}: ${path}`)
  if (!check) return
  out('The documents and generated/ differ. Run `npm run generate` and commit what it writes.')
  process.exitCode = 1
}

await generate(process.argv.includes('--check'))
