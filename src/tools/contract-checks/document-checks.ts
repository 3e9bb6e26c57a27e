/** Finds regular expressions with exponential or quadratic run time, which callers could use for denial of service. */
import { globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { parseAst } from 'rolldown/parseAst'
import {
  describePlace,
  listOperations,
  type MediaTypeObject,
  type ResponseObject,
  resolve,
  responsePointers,
  walk,
} from '../../openapi/document.ts'
import { type Path, toPointer } from '../../openapi/json-pointer.ts'
import { isSafePattern, patternsIn, safePatternAdvice } from '../../openapi/patterns.ts'
import type { CheckedContract, Finding, Report } from './checked-contract.ts'

/** Code that handles input from callers. Other code reads what the service itself has written. */
const requestHandlingCode = [
  'src/{contract,domain,surfaces/dashboard}/**/*.ts',
  'src/surfaces/{known-hosts,docs/docs-handler}.ts',
]

/** Patterns that the detector rejects but that are harmless where they are used, with the reason. */
const exceptions: Record<string, string> = {
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
    location: 'src/tools/contract-checks/document-checks.ts',
    reason: 'It would hide an unsafe use that is added later.',
    fix: 'Remove it.',
  }))
}

// Refuses names of components for which client generators write code that does not compile.

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

// Checks that no list of many items has another in its items. Generators that write a list as a tuple of all its items,
// as openapi-client-axios does, need memory for the product.

const itemsTogetherMax = 100_000

export function checkNestedLists(contracts: readonly Pick<CheckedContract, 'name' | 'current'>[]): Finding[] {
  return contracts.flatMap(({ name, current }) => {
    const lists = new Map<string, number>()
    for (const { value, path } of walk(current)) {
      const { maxItems } = Object(value) as { maxItems?: number }
      if (typeof maxItems === 'number') lists.set(toPointer(path), maxItems)
    }
    return [...lists].flatMap(([pointer, maxItems]) => {
      const outer = [...lists].filter(([it]) => pointer.startsWith(`${it}/`))
      const together = outer.reduce((product, [, max]) => product * max, maxItems)
      if (outer.length === 0 || together <= itemsTogetherMax) return []
      return {
        severity: 'error' as const,
        message: `Nested lists have up to ${together} items.`,
        location: `openapi/${name}.yaml, ${pointer}`,
        reason: 'Some generators of clients write a type for each item, and run out of memory.',
        fix: 'Make the items of the outer list a schema in `components`.',
      }
    })
  })
}

// Checks that no schema of a response forbids unknown members: a later version may add some.

export function checkOpenResponses(contracts: readonly Pick<CheckedContract, 'name' | 'current'>[]): Finding[] {
  return contracts.flatMap(({ name, current }) => {
    const responses = responsePointers(current)
    const isSchema = (path: Path) => !path.includes('example') && !path.includes('examples')
    const closed = [...walk(current)].filter(
      ({ value, path }) => isClosed(value) && isSchema(path) && responses.has(toPointer(path)),
    )
    return closed.map(({ path }) => ({
      severity: 'error' as const,
      message: 'A schema of a response forbids unknown members.',
      location: describePlace(name, current, path),
      reason: 'Clients that validate by the document would refuse the members that a later version adds.',
      fix: 'Remove `additionalProperties: false`, `unevaluatedProperties: false` or `maxProperties`; the service itself sends only documented members.',
    }))
  })
}

function isClosed(schema: unknown): boolean {
  const { properties, additionalProperties, unevaluatedProperties, maxProperties } = Object(schema) as Record<
    string,
    unknown
  >
  if (additionalProperties === false || unevaluatedProperties === false) return true
  return properties !== undefined && maxProperties !== undefined
}

// Checks that examples come in pairs: a response has the name of the request that it answers.

export function checkExamplePairs(contracts: readonly Pick<CheckedContract, 'name' | 'current'>[]): Finding[] {
  return contracts.flatMap(({ name, current }) =>
    listOperations(current).flatMap(({ path, method, operation }) => {
      const requests = namesOf(operation.requestBody?.content)
      if (requests === undefined) return []
      return Object.entries(operation.responses).flatMap(([status, reference]) => {
        const responses = namesOf(resolve<ResponseObject>(current, reference).content)
        const isPaired = requests.every((it) => responses?.includes(it)) && responses?.length === requests.length
        if (!status.startsWith('2') || responses === undefined || isPaired) return []
        return {
          severity: 'error' as const,
          message: `The examples of the response ${status} are not those of the request: ${responses.join(', ') || 'none'} instead of ${requests.join(', ')}.`,
          location: describePlace(name, current, ['paths', path, method]),
          reason: 'A reader, and a caller of the mock, looks for the response to a request by its name.',
          fix: 'Name both examples alike.',
        }
      })
    }),
  )
}

/** The names of all examples; `undefined` without a body. */
function namesOf(content: Record<string, MediaTypeObject> | undefined): string[] | undefined {
  return content && Object.values(content).flatMap(({ examples = {} }) => Object.keys(examples))
}
