/**
 * `npm run generate`: writes generated/ from the documents in openapi/.
 * `npm run generate -- --check` writes nothing and fails when a file is not what it would write, or is one too many.
 */
import { DocumentError } from './bundle.ts'
import { generate } from './generate.ts'

const check = process.argv.includes('--check')
try {
  report(await generate({ check }))
} catch (error) {
  if (!(error instanceof DocumentError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}

function report(changed: string[]): void {
  const out = (line: string): void => void process.stdout.write(`${line}\n`)
  if (changed.length === 0) return out('generated/ is up to date.')
  for (const line of changed) out(line)
  if (!check) return
  out('The documents and generated/ differ. Run `npm run generate` and commit what it writes.')
  process.exitCode = 1
}
