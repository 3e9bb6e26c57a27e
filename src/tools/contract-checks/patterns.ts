/** Finds patterns that take exponential or quadratic time on some input: a caller could hold the service with them. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isSafePattern } from 'redos-detector'
import { parseAst } from 'rolldown/parseAst'
import { describePlace, walk } from '../../openapi/document.ts'
import type { CheckedContract, Finding, Report } from './finding.ts'

/** The longest safe pattern here takes less than half of it. With ten times as many, an unsafe one can take 5 s. */
const maxSteps = 2000

/** The code that sees what strangers send; the rest reads what the service itself has written. */
const codeOfRequests = [
  'src/{contract,domain/api-keys,domain/accounts,surfaces/dashboard}/**/*.ts',
  'src/surfaces/docs/docs-handler.ts',
  'src/domain/*/*-operations.ts',
]

/** Patterns of code that are unsafe by the book, and harmless where they are. */
export const harmless: Record<string, string> = {
  '^[^\\s\\p{Cc}@<>()]+@[^\\s\\p{Cc}@<>()]+$': 'Neither side may hold the @ between them: one way to match.',
  'at position [0-9]+ \\(line [0-9]+ column [0-9]+\\)$': "It reads the JSON parser's own message.",
  '\\{([^}]+)\\}': 'It reads paths of the documents.',
  '\\{[^}]+\\}': 'It reads paths of the documents.',
}

interface Found {
  pattern: string
  flags: string
  where: string
}

export function patternsOfDocument({ name, current }: Pick<CheckedContract, 'name' | 'current'>): Found[] {
  return [...walk(current)].flatMap(({ value, path }) =>
    patternsAt(path.at(-1), value).map((pattern) => {
      // Ajv compiles patterns with this flag.
      return { pattern, flags: 'u', where: describePlace(name, current, path) }
    }),
  )
}

function patternsAt(keyword: unknown, value: unknown): string[] {
  if (keyword === 'pattern' && typeof value === 'string') return [value]
  return keyword === 'patternProperties' && typeof value === 'object' ? Object.keys(value ?? {}) : []
}

/** Every regular expression that is written out in the code that sees requests. */
export function patternsOfCode(root: string): Found[] {
  return codeOfRequests
    .flatMap((glob) => globSync(glob, { cwd: root }).sort())
    .flatMap((file) => literals(readFileSync(join(root, file), 'utf8'), file))
}

function literals(text: string, file: string): Found[] {
  return literalsIn(parseAst(text, { lang: 'ts' })).map(({ regex: { pattern, flags }, start }) => ({
    pattern,
    flags,
    where: `${file}:${text.slice(0, start).split('\n').length}`,
  }))
}

interface Literal {
  regex: { pattern: string; flags: string }
  start: number
}

function literalsIn(node: object): Literal[] {
  if ('regex' in node && node.regex) return [node as Literal]
  return Object.values(node).flatMap((each) => (typeof each === 'object' && each !== null ? literalsIn(each) : []))
}

export function checkPatterns(found: readonly Found[]): Report {
  const distinct = new Map(found.map((it) => [`${it.flags} ${it.pattern}`, it]))
  const unsafe = [...distinct.values()].filter((it) => !(it.pattern in harmless) && !isLinear(it))
  return { looked: `${distinct.size} patterns`, findings: unsafe.map(finding) }
}

/** Excuses for patterns that are not there any more. */
export function unusedExcuses(found: readonly Found[]): Finding[] {
  const unused = Object.keys(harmless).filter((pattern) => !found.some((it) => it.pattern === pattern))
  return unused.map((pattern) => ({
    severity: 'error',
    what: `The pattern \`${pattern}\` is excused, and nowhere any more.`,
    where: 'src/tools/contract-checks/patterns.ts',
    why: 'It would excuse one that is written elsewhere later.',
    mend: 'Take it out.',
  }))
}

export function isLinear({ pattern, flags }: Pick<Found, 'pattern' | 'flags'>): boolean {
  return isSafePattern(pattern, {
    maxSteps,
    unicode: /[uv]/.test(flags),
    caseInsensitive: flags.includes('i'),
    multiLine: flags.includes('m'),
    dotAll: flags.includes('s'),
  }).safe
}

function finding({ pattern, where }: Found): Finding {
  return {
    severity: 'error',
    what: `The pattern \`${pattern}\` may take very long on some input.`,
    where,
    why: 'There are several ways to match the same characters, and a value that fits none makes the server try them all.',
    mend: 'Begin it with ^, and let no two repetitions beside or inside each other match the same character.',
  }
}
