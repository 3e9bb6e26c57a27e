/** `doctor`: checks an installation and prints each finding with what to do about it. */
import { styleText } from 'node:util'
import packageJson from '../../../package.json' with { type: 'json' }
import { print } from '../output.ts'
import { examine, type Result } from './examine.ts'
import { pluralize, type Status } from './finding.ts'

export async function doctor(options: { json?: boolean }): Promise<void> {
  const results: Result[] = []
  for await (const result of examine(process.env)) {
    results.push(result)
    // Printed one by one, because some checks take seconds.
    if (!options.json) print(formatResult(result))
  }
  const failed = results.some(({ status }) => status === 'fail')
  if (options.json) print(JSON.stringify({ ok: !failed, version: packageJson.version, checks: results }))
  else print(`\n${summarize(results)}`)
  process.exitCode = failed ? 1 : 0
}

const nameWidth = 'BROWSER_CONTEXT_PORT'.length
const colors = { ok: 'green', warn: 'yellow', fail: 'red' } as const satisfies Record<Status, string>

function formatResult({ status, name, detail, advice }: Result): string {
  // Uncoloured when standard output is not a terminal or NO_COLOR is set.
  const colored = styleText(colors[status], status.padEnd(4), { stream: process.stdout })
  return `${colored}  ${name.padEnd(nameWidth)}  ${advice === null ? detail : `${detail}. ${advice}`}`
}

function summarize(results: readonly Result[]): string {
  const count = (wanted: Status) => results.filter(({ status }) => status === wanted).length
  const [failures, warnings] = [count('fail'), count('warn')]
  if (failures + warnings === 0) return 'No problems found.'
  const counts = [failures > 0 && pluralize(failures, 'failure'), warnings > 0 && pluralize(warnings, 'warning')]
  return `${counts.filter(Boolean).join(' and ')} in ${results.length} checks.`
}
