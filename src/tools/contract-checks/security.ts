/** Lints the documents with the rules of the OWASP API Security Top 10. */
import { Spectral } from '@stoplight/spectral-core'
import owasp from '@stoplight/spectral-owasp-ruleset'
import { describePlace, requestPointers } from '../../openapi/document.ts'
import { toPointer } from '../../openapi/json-pointer.ts'
import type { CheckedContract, Finding, Report } from './checked-contract.ts'

// Adjustments of and exceptions from the OWASP rules, each with its reason. All other rules apply as errors.

const lastEventId = toPointer(['paths', '/v1/execution/runs/{runId}/events', 'get', 'parameters', 0])
const apiKeyFilter = toPointer(['paths', '/v1/execution/runs', 'get', 'parameters', 5])

interface Adjustment {
  because: string
  off?: true
  /** Applies the rule only to what callers send, and reports components once instead of at every reference. */
  requestsOnly?: true
  /** Reports components once instead of at every reference. */
  components?: true
  /** Overrides members of the rule. */
  rule?: Record<string, unknown>
}

const adjustments: Record<string, Adjustment> = {
  'owasp:api4:2023-array-limit': {
    components: true,
    because: 'A component that many operations refer to is one finding.',
  },
  'owasp:api4:2023-integer-limit': {
    requestsOnly: true,
    because: 'Only numbers that callers choose can exhaust resources.',
  },
  'owasp:api4:2023-string-limit': { requestsOnly: true, because: 'Only text that callers send can exhaust resources.' },
  'owasp:api4:2023-string-restricted': {
    requestsOnly: true,
    because: 'Text for people, such as titles and details of problems, has no format.',
  },
  'owasp:api4:2023-integer-format': {
    off: true,
    because: 'Numbers that callers send have bounds, which say more than 32 or 64 bits.',
  },
  'owasp:api4:2023-rate-limit': {
    rule: { given: '$.paths[*]..responses[?(@property !== "401")]' },
    because: 'The limit is that of an API key, which a response 401 does not know.',
  },
  'owasp:api8:2023-define-cors-origin': {
    off: true,
    because: 'Operators name the origins whose pages may call; by default, browsers block all of them.',
  },
  'owasp:api8:2023-no-server-http': {
    rule: { given: '$.servers[?(!@.url.match(/^http:.*127\\.0\\.0\\.1:/))].url' },
    because: 'The default address is on loopback; a proxy in front of it provides TLS.',
  },
  'owasp:api9:2023-inventory-access': {
    off: true,
    because: 'The only server is the default address; operators decide who can reach others.',
  },
  'owasp:api9:2023-inventory-environment': {
    off: true,
    because: 'The only server is the default address on the local machine.',
  },
}

const storageState = 'The body as a whole is limited to 5 MiB; sites and Playwright determine its contents.'

/** Single places: a rule and the beginning of a JSON Pointer. An unused exception is an error. */
export const exceptions: Record<string, string> = {
  [`owasp:api2:2023-no-credentials-in-url ${apiKeyFilter}/`]: 'It is the id of the key, which is not secret.',
  'owasp:api4:2023-array-limit /components/schemas/OriginStorage/': storageState,
  'owasp:api4:2023-array-limit /components/schemas/StorageState/': storageState,
  'owasp:api4:2023-string-limit /components/schemas/ArtifactName': 'Its pattern limits it.',
  'owasp:api4:2023-string-limit /components/schemas/Cookie/': storageState,
  'owasp:api4:2023-string-limit /components/schemas/NameValue/': storageState,
  'owasp:api4:2023-string-limit /components/schemas/OriginStorage/': storageState,
  'owasp:api4:2023-string-limit /components/schemas/Timestamp':
    'Its format limits it, and all headers and the path together are limited to 16 KiB.',
  'owasp:api4:2023-string-limit /components/schemas/FileContent': 'FILE_MAX_MB limits it while it is read.',
  [`owasp:api4:2023-string-limit ${lastEventId}/`]: 'Its pattern limits it.',
  'owasp:api4:2023-string-restricted /components/parameters/IfFileRange/':
    'A value that is no entity tag matches none.',
  'owasp:api4:2023-string-restricted /components/parameters/IfRange/': 'A value that is no entity tag matches none.',
  'owasp:api4:2023-string-restricted /components/parameters/ByteRange/': 'Malformed ranges are ignored (RFC 9110).',
  'owasp:api4:2023-string-restricted /components/parameters/Prefer/': 'Unknown preferences are ignored (RFC 7240).',
  'owasp:api4:2023-string-restricted /components/schemas/Cookie/': storageState,
  'owasp:api4:2023-string-restricted /components/schemas/DeploymentFile/': 'The content of a file can be any text.',
  'owasp:api4:2023-string-restricted /components/schemas/DeploymentModule/': 'Messages repeat the name of the source.',
  'owasp:api4:2023-string-restricted /components/schemas/NameValue/': storageState,
}

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

const rulesFile = 'src/tools/contract-checks/security.ts'

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
