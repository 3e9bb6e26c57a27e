/** Refuses names of components for which client generators write code that does not compile. */
import { globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { describePlace } from '../../openapi/document.ts'
import type { CheckedContract, Finding, Report } from './checked-contract.ts'

/** Generators write a type, and often a file, for each component of these kinds. */
const kinds = ['schemas', 'parameters', 'responses', 'requestBodies']

let globals: Set<string> | undefined

/** Every global value and type of JavaScript and browsers, as TypeScript declares them. */
function findGlobals(): Set<string> {
  if (globals) return globals
  const library = dirname(createRequire(import.meta.url).resolve('typescript'))
  const texts = globSync('lib.{es*,dom*}.d.ts', { cwd: library }).map((it) => readFileSync(join(library, it), 'utf8'))
  const declaration = /^(?:declare (?:var|function|class|type|namespace)|interface|type) (\w+)/gm
  globals = new Set(texts.flatMap((text) => [...text.matchAll(declaration)].map(([, name = '']) => name)))
  return globals
}

export function checkNames(contracts: readonly Pick<CheckedContract, 'name' | 'current'>[]): Report {
  const findings = contracts.flatMap(checkDocument)
  return { summary: '', findings }
}

function checkDocument({ name: document, current }: Pick<CheckedContract, 'name' | 'current'>): Finding[] {
  const findings: Finding[] = []
  const seen = new Map<string, string>()
  for (const kind of kinds) {
    for (const name of Object.keys(current.components[kind] ?? {})) {
      const report = (message: string, reason: string, fix: string) => {
        const location = describePlace(document, current, ['components', kind, name])
        findings.push({ severity: 'error', message, location, reason, fix })
      }
      const other = seen.get(name.toLowerCase())
      const sameName = 'Generators give both the same type or file, also where file names ignore case.'
      if (other)
        report(`\`${kind}/${name}\` has the name of \`${other}\`.`, sameName, 'Append the kind: `NameParameter`.')
      const shadowing = 'In generated TypeScript, its type shadows the global one.'
      if (findGlobals().has(name)) report(`\`${name}\` is a global of TypeScript.`, shadowing, 'Say what it contains.')
      seen.set(name.toLowerCase(), `${kind}/${name}`)
    }
  }
  return findings
}
