/** Around all fault tests: a directory for their figures, which are printed as one table when the last has ended. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { directoryVariable, type Finding } from './figures.ts'
import { reliabilityOf, tableOf } from './report.ts'

const document = new URL('../../docs/reliability.md', import.meta.url)

export default function setUp(): (() => void) | undefined {
  // Each project of a run that counts sets up; one is enough.
  if (process.env[directoryVariable]) return undefined
  const directory = mkdtempSync(join(tmpdir(), 'execution-service-'))
  process.env[directoryVariable] = directory
  return () => {
    const findings = readdirSync(directory).map(
      (name): Finding => JSON.parse(readFileSync(join(directory, name), 'utf8')),
    )
    rmSync(directory, { recursive: true })
    if (findings.length === 0) return
    process.stdout.write(`\n${tableOf(findings)}\n\n`)
    if (process.env.npm_lifecycle_event === 'reliability')
      writeFileSync(document, reliabilityOf(findings, circumstances()))
  }
}

function circumstances() {
  const machine = `${availableParallelism()} cores and Node ${process.versions.node}`
  return { date: new Date().toISOString().slice(0, 10), machine, command: 'npm run reliability' }
}
