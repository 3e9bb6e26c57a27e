/** Global setup of fault tests: prints their figures as a table, and with `npm run reliability` writes docs/reliability.md. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { directoryVariable, type Figures, type Finding } from './figures.ts'
import { promises } from './promises.ts'

const page = new URL('../../docs/reliability.md', import.meta.url)

export default function setUp(): (() => void) | undefined {
  // Runs once for each project; the first creates the directory.
  if (process.env[directoryVariable]) return undefined
  const directory = mkdtempSync(join(tmpdir(), 'execution-service-'))
  process.env[directoryVariable] = directory
  return () => {
    const files = readdirSync(directory).map((name) => readFileSync(join(directory, name), 'utf8'))
    rmSync(directory, { recursive: true })
    if (files.length === 0) return
    const findings = files.map((text): Finding => JSON.parse(text))
    process.stdout.write(`\n${formatTable(findings)}\n\n`)
    if (process.env.npm_lifecycle_event === 'reliability') writeFileSync(page, formatPage(findings) + plantedFaults())
  }
}

const figureNames = [
  'acknowledged',
  'killed',
  'lost',
  'duplicated',
  'refused',
  'seconds',
] as const satisfies (keyof Figures)[]
const header = ['promise', 'store', 'fault', ...figureNames, 'remark']

function toRows(findings: readonly Finding[]): string[][] {
  const sortKey = ({ promise, fault, store }: Finding) => `${promise.slice(1).padStart(2, '0')} ${fault} ${store}`
  const sorted = findings.toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1))
  return sorted.map((finding) => {
    const { promise, store, fault } = finding
    if ('skipped' in finding)
      return [promise, store, fault, ...figureNames.map(() => ''), `skipped: ${finding.skipped}`]
    return [
      promise,
      store,
      fault,
      ...figureNames.map((name) => formatNumber(finding.figures[name])),
      finding.remark ?? '',
    ]
  })
}

function formatNumber(value: number | undefined): string {
  if (value === undefined) return ''
  return Number.isInteger(value) ? String(value) : value.toFixed(1)
}

/** Aligned columns, for a terminal. */
function formatTable(findings: readonly Finding[]): string {
  const rows = [header, ...toRows(findings)]
  const widths = header.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const pad = (row: string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return rows.map((row) => pad(row).trimEnd()).join('\n')
}

/** The page's last section, which other tests measure. */
function plantedFaults(): string {
  const text = readFileSync(page, 'utf8')
  return text.slice(text.indexOf('\n## Planted faults'))
}

function formatPage(findings: readonly Finding[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const table = [line(header), line(header.map(() => '---')), ...toRows(findings).map(line)].join('\n')
  const links = (paths: readonly string[]) => paths.map((path) => `[\`${path}\`](../${path})`).join(', ')
  const sections = promises.map(({ id, sentence, faults, others }) => {
    const slow = faults.length > 0 ? links(faults) : 'the others, on PostgreSQL'
    return `- **${id}. ${sentence}** Fault tests: ${slow}. Other tests: ${links(others)}.`
  })
  const date = new Date().toISOString().slice(0, 10)
  return `# What the service promises, and the tests that verify it

Each promise holds on both stores, the embedded one and PostgreSQL. A step of a run may execute more than once; the
outcome of a run is recorded once.

${sections.join('\n')}

## Measured results

Written by \`npm run reliability\` on ${date}, on ${availableParallelism()} cores with Node ${process.versions.node}.
\`npm run test:faults\` prints the same table. *Lost*: acknowledged, but missing afterwards. *Duplicated*: happened twice,
but may happen only once. A fault that a machine does not allow is skipped there, with the reason in its row.

${table}
`
}
