/** Lints the documents with the rules of the OWASP API Security Top 10, tuned to what these interfaces promise. */
import { Spectral } from '@stoplight/spectral-core'
import owasp from '@stoplight/spectral-owasp-ruleset'
import { describePlace, requestPointers } from '../../openapi/document.ts'
import { toPointer } from '../../openapi/json-pointer.ts'
import type { CheckedContract, Finding, Report } from './finding.ts'
import { exceptions, tuned } from './security-rules.ts'

interface Ruleset {
  aliases: unknown
  formats: unknown
  rules: Record<string, { description: string } & Record<string, unknown>>
}

/** The package is CommonJS: Node's import of it has its default export as a member. */
const imported = owasp as unknown as Ruleset & { default?: Ruleset }
const { aliases, formats, rules } = imported.default ?? imported

const linter = new Spectral()
const used = Object.entries(rules).filter(([name]) => !tuned[name]?.off)
linter.setRuleset({ aliases, formats, rules: Object.fromEntries(used.map(strict)) } as never)

function strict([name, rule]: [string, object]): [string, object] {
  const { requestsOnly, components, rule: other } = tuned[name] ?? {}
  return [name, { ...rule, ...other, severity: 'error', resolved: !requestsOnly && !components }]
}

export async function checkSecurity(guarded: readonly Pick<CheckedContract, 'name' | 'current'>[]): Promise<Report> {
  const unknown = Object.keys(tuned).filter((name) => !(name in rules))
  const stale = new Set([...Object.keys(exceptions), ...unknown])
  const findings = new Map<string, Finding>()
  for (const { name, current } of guarded) {
    const requests = requestPointers(current)
    for (const { code, message, path } of await linter.run(current as never)) {
      const rule = String(code)
      const pointer = toPointer(path)
      if (tuned[rule]?.requestsOnly && !requests.has(pointer)) continue
      const exception = Object.keys(exceptions).find((it) => `${rule} ${pointer}`.startsWith(it))
      if (exception) stale.delete(exception)
      else findings.set(`${name} ${rule} ${pointer}`, finding(rule, message, describePlace(name, current, path)))
    }
  }
  return { looked: `${used.length} security rules`, findings: [...findings.values(), ...[...stale].map(excuse)] }
}

function finding(rule: string, what: string, where: string): Finding {
  return {
    severity: 'error',
    what,
    where,
    why: rules[rule]?.description.split('\n')[0] ?? '',
    mend: `Mend the document, or say in src/tools/contract-checks/security-rules.ts why \`${rule}\` does not hold there.`,
  }
}

function excuse(name: string): Finding {
  return {
    severity: 'error',
    what: `The exception \`${name}\` excuses nothing any more.`,
    where: 'src/tools/contract-checks/security-rules.ts',
    why: 'It would excuse what comes to stand there later.',
    mend: 'Take it out.',
  }
}
