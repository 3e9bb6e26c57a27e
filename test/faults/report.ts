/** The table of what fault tests have counted, for the terminal and for docs/reliability.md. */
import type { Figures, Finding } from './figures.ts'
import { promises } from './promises.ts'

const columns = ['acknowledged', 'killed', 'lost', 'doubled', 'refused', 'seconds'] as const satisfies (keyof Figures)[]
const head = ['promise', 'store', 'fault', ...columns, 'remark']

const numberOf = ({ id }: { id: string }) => Number(id.slice(1))

function inOrder(findings: readonly Finding[]): Finding[] {
  const place = ({ promise, fault, store }: Finding) => `${promise.slice(1).padStart(2, '0')} ${fault} ${store}`
  return findings.toSorted((a, b) => (place(a) < place(b) ? -1 : 1))
}

function rowsOf(findings: readonly Finding[]): string[][] {
  return inOrder(findings).map((finding) => {
    const { promise, store, fault } = finding
    if ('skipped' in finding) return [promise, store, fault, ...columns.map(() => ''), `not tried: ${finding.skipped}`]
    const numbers = columns.map((name) => shown(finding.figures[name]))
    return [promise, store, fault, ...numbers, finding.remark ?? '']
  })
}

function shown(value: number | undefined): string {
  if (value === undefined) return ''
  return Number.isInteger(value) ? String(value) : value.toFixed(1)
}

/** Columns in line, for a terminal. */
export function tableOf(findings: readonly Finding[]): string {
  const rows = [head, ...rowsOf(findings)]
  const widths = head.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

export interface Circumstances {
  date: string
  machine: string
  command: string
}

/** docs/reliability.md. */
export function reliabilityOf(findings: readonly Finding[], { date, machine, command }: Circumstances): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const table = [line(head), line(head.map(() => '---')), ...rowsOf(findings).map(line)].join('\n')
  const sections = promises
    .toSorted((a, b) => numberOf(a) - numberOf(b))
    .map(({ id, sentence, faults, small }) => {
      const links = (paths: readonly string[]) => paths.map((path) => `[\`${path}\`](../${path})`).join(', ')
      const long = faults.length > 0 ? `Through faults: ${links(faults)}.` : 'Through faults: the same on PostgreSQL.'
      return `- **${id}. ${sentence}** ${long} In \`npm test\`: ${links(small)}.`
    })
  return `# What is promised, and what proves it

Each promise holds on both stores: the embedded one, and PostgreSQL. A step of a run may run more than once; a run's
outcome is recorded once.

${sections.join('\n')}

## Measured

By \`${command}\` on ${date}, with ${machine}. The command writes this page; \`npm run test:faults\` prints the same table.
*Lost* is what was acknowledged and not there afterwards, *doubled* what happened twice and may happen once. What a
machine does not allow is not tried there, and its row says why.

${table}
`
}
