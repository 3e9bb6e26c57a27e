/** Lints the documents with the rules of the OWASP API Security Top 10, adjusted in security-rules.ts. */
import { Spectral } from '@stoplight/spectral-core'
import owasp from '@stoplight/spectral-owasp-ruleset'
import { describePlace, requestPointers } from '../../openapi/document.ts'
import { toPointer } from '../../openapi/json-pointer.ts'
import type { CheckedContract, Finding, Report } from './checked-contract.ts'
import { adjustments, exceptions } from './security-rules.ts'

interface Ruleset {
  aliases: unknown
  formats: unknown
  rules: Record<string, { description: string } & Record<string, unknown>>
}

/** The package is CommonJS: Node imports its default export as a member. */
const imported = owasp as unknown as Ruleset & { default?: Ruleset }
const { aliases, formats, rules } = imported.default ?? imported

const linter = new Spectral()
const enabledRules = Object.entries(rules).filter(([name]) => !adjustments[name]?.off)
linter.setRuleset({ aliases, formats, rules: Object.fromEntries(enabledRules.map(adjustRule)) } as never)

function adjustRule([name, rule]: [string, object]): [string, object] {
  const { requestsOnly, components, rule: changes } = adjustments[name] ?? {}
  return [name, { ...rule, ...changes, severity: 'error', resolved: !requestsOnly && !components }]
}

const rulesFile = 'src/tools/contract-checks/security-rules.ts'

export async function checkSecurity(contracts: readonly Pick<CheckedContract, 'name' | 'current'>[]): Promise<Report> {
  const unknownRules = Object.keys(adjustments).filter((name) => !(name in rules))
  const unused = new Set([...Object.keys(exceptions), ...unknownRules])
  const findings = new Map<string, Finding>()
  for (const { name, current } of contracts) {
    const requests = requestPointers(current)
    for (const { code, message, path } of await linter.run(current as never)) {
      const rule = String(code)
      const pointer = toPointer(path)
      if (adjustments[rule]?.requestsOnly && !requests.has(pointer)) continue
      const exception = Object.keys(exceptions).find((it) => `${rule} ${pointer}`.startsWith(it))
      if (exception) unused.delete(exception)
      else
        findings.set(`${name} ${rule} ${pointer}`, {
          severity: 'error',
          message,
          location: describePlace(name, current, path),
          reason: rules[rule]?.description.split('\n')[0] ?? '',
          fix: `Fix the document, or add an exception for \`${rule}\` with its reason to ${rulesFile}.`,
        })
    }
  }
  return {
    summary: `${enabledRules.length} security rules`,
    findings: [...findings.values(), ...[...unused].map(toUnusedFinding)],
  }
}

function toUnusedFinding(name: string): Finding {
  return {
    severity: 'error',
    message: `The exception \`${name}\` is unused.`,
    location: rulesFile,
    reason: 'It would hide a finding that is introduced later.',
    fix: 'Remove it.',
  }
}
