/** Finds regular expressions with exponential or quadratic run time, which callers could use for denial of service. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAst } from 'rolldown/parseAst'
import { describePlace } from '../../openapi/document.ts'
import { isSafePattern, patternsIn, safePatternAdvice } from '../../openapi/patterns.ts'
import type { CheckedContract, Finding, Report } from './checked-contract.ts'

/** Code that handles input from callers. Other code reads what the service itself has written. */
const requestHandlingCode = [
  'src/{contract,domain,surfaces/dashboard}/**/*.ts',
  'src/surfaces/{known-hosts,docs/docs-handler}.ts',
]

/** Patterns that the detector rejects but that are harmless where they are used, with the reason. */
export const exceptions: Record<string, string> = {
  '^[^\\s\\p{Cc}@<>()]+@[^\\s\\p{Cc}@<>()]+$': 'Neither side can match the @, so there is one way to match.',
  'at position [0-9]+ \\(line [0-9]+ column [0-9]+\\)$': 'Its input is a message of the JSON parser.',
  '\\{([^}]+)\\}': 'Its input is a path of the documents.',
  '^[^\\p{L}]+|[^\\p{L}]+$': 'Its input is a password of at most 200 characters.',
  '^(.+?)\\1+$': 'Its input is a password of at most 200 characters.',
}

interface Pattern {
  pattern: string
  flags: string
  location: string
}

export function listDocumentPatterns({ name, current }: Pick<CheckedContract, 'name' | 'current'>): Pattern[] {
  // Ajv compiles patterns with the flag u.
  return [...patternsIn(current)].map(({ pattern, path }) => ({
    pattern,
    flags: 'u',
    location: describePlace(name, current, path),
  }))
}

export function listCodePatterns(root: string): Pattern[] {
  const files = requestHandlingCode.flatMap((glob) => globSync(glob, { cwd: root }).sort())
  return files.flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8')
    return findLiterals(parseAst(text, { lang: 'ts' })).map(({ regex, start }) => ({
      ...regex,
      location: `${file}:${text.slice(0, start).split('\n').length}`,
    }))
  })
}

interface Literal {
  regex: { pattern: string; flags: string }
  start: number
}

function findLiterals(node: object): Literal[] {
  if ('regex' in node && node.regex) return [node as Literal]
  return Object.values(node).flatMap((each) => (typeof each === 'object' && each !== null ? findLiterals(each) : []))
}

export function checkPatterns(patterns: readonly Pattern[]): Report {
  const distinct = new Map(patterns.map((it) => [`${it.flags} ${it.pattern}`, it]))
  const unsafe = [...distinct.values()].filter(
    (it) => !(it.pattern in exceptions) && !isSafePattern(it.pattern, it.flags),
  )
  return {
    summary: `${distinct.size} patterns`,
    findings: unsafe.map(({ pattern, location }) => ({
      severity: 'error',
      message: `The pattern \`${pattern}\` may take very long on some input.`,
      location,
      reason: 'It can match the same characters in several ways, and tries all of them on a value that does not match.',
      fix: safePatternAdvice,
    })),
  }
}

export function findUnusedExceptions(patterns: readonly Pattern[]): Finding[] {
  const unused = Object.keys(exceptions).filter((pattern) => !patterns.some((it) => it.pattern === pattern))
  return unused.map((pattern) => ({
    severity: 'error',
    message: `The exception for the pattern \`${pattern}\` is unused.`,
    location: 'src/tools/contract-checks/patterns.ts',
    reason: 'It would hide an unsafe use that is added later.',
    fix: 'Remove it.',
  }))
}
