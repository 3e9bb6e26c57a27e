/** `doctor`: checks an installation, and says in words what is wrong and what to do. */
import { styleText } from 'node:util'
import packageJson from '../../../package.json' with { type: 'json' }
import { print } from '../output.ts'
import { examine, type Result } from './examine.ts'
import { pluralize, type Status } from './finding.ts'

export async function doctor(options: { json?: boolean }): Promise<void> {
  const results: Result[] = []
  for await (const result of examine(process.env)) {
    results.push(result)
    // One by one: some take seconds.
    if (!options.json) print(lineOf(result))
  }
  const failed = results.some(({ status }) => status === 'fail')
  if (options.json) print(JSON.stringify({ ok: !failed, version: packageJson.version, checks: results }))
  else print(`\n${verdictOf(results)}`)
  process.exitCode = failed ? 1 : 0
}

/** The longest name is BROWSER_CONTEXT_PORT. */
const nameWidth = 20
const colors = { ok: 'green', warn: 'yellow', fail: 'red' } as const satisfies Record<Status, string>

function lineOf({ status, name, detail, advice }: Result): string {
  // Plain where standard output is no terminal, or NO_COLOR is set.
  const colored = styleText(colors[status], status.padEnd(4), { stream: process.stdout })
  const said = advice === null ? detail : `${detail}. ${advice}`
  return `${colored}  ${name.padEnd(nameWidth)}  ${said}`
}

function verdictOf(results: readonly Result[]): string {
  const count = (wanted: Status) => results.filter(({ status }) => status === wanted).length
  const [failed, warned] = [count('fail'), count('warn')]
  if (failed + warned === 0) return 'All is well.'
  const counts = [failed > 0 && pluralize(failed, 'failure'), warned > 0 && pluralize(warned, 'warning')]
  return `${counts.filter(Boolean).join(' and ')} among ${results.length} checks.`
}
