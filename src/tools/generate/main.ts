/** `npm run generate` updates generated/; with `--check` it changes nothing and fails if a file is out of date. */
import { DocumentError } from './bundle.ts'
import { generate } from './generate.ts'

const check = process.argv.includes('--check')
try {
  const changes = await generate({ check })
  const lines = changes.length === 0 ? ['generated/ is up to date.'] : changes
  if (check && changes.length > 0) {
    lines.push('generated/ is out of date. Run `npm run generate` and commit the result.')
    process.exitCode = 1
  }
  process.stdout.write(`${lines.join('\n')}\n`)
} catch (error) {
  if (!(error instanceof DocumentError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}
