/** Reads scenarios from YAML or JSON: their form, by the JSON Schema. */
import type { ErrorObject, ValidateFunction } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { type Document, LineCounter, parseDocument, visit } from 'yaml'
import { walk } from '../openapi/document.ts'
import { type Path, parsePointer, toPointer } from '../openapi/json-pointer.ts'
import { suggest } from './closest-name.ts'
import { type ScenarioProblem, ScenariosInvalid, YamlPlaces } from './scenario-errors.ts'
import { type ScenarioFile, scenariosSchema } from './scenarios-schema.ts'

/** Returns what is wrong with scenarios whose form is right. */
export type CheckScenarios = (file: ScenarioFile) => ScenarioProblem[]

const problemsMax = 20

/**
 * @param source names the text in errors.
 * @throws {ScenariosInvalid}
 */
export function readYaml(text: string, source: string, check: CheckScenarios): ScenarioFile {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const places = new YamlPlaces(document, lines)
  const [wrong] = [...document.errors, ...document.warnings]
  if (wrong) throw new ScenariosInvalid([{ pointer: '', detail: wrong.message, ...places.at(wrong.pos[0]) }], source)
  const value = toValue(document, source, places)
  const problems = findProblems(value, check)
  if (problems.length === 0) return value as ScenarioFile
  throw new ScenariosInvalid(
    problems.slice(0, problemsMax).map((problem) => places.place(problem)),
    source,
  )
}

function toValue(document: Document.Parsed, source: string, places: YamlPlaces): unknown {
  const refuse = (detail: string, offset = 0) =>
    new ScenariosInvalid([{ pointer: '', detail, ...places.at(offset) }], source)
  visit(document, {
    Alias(_, alias) {
      if (!alias.resolve(document)) throw refuse(`No anchor has the name "${alias.source}"`, alias.range?.[0])
    },
  })
  try {
    return document.toJS()
  } catch (error) {
    // Aliases of aliases, which would exhaust the memory.
    throw refuse((error as Error).message)
  }
}

/** @throws {ScenariosInvalid} */
export function readJson(value: unknown, check: CheckScenarios): ScenarioFile {
  const problems = findProblems(value, check)
  if (problems.length === 0) return value as ScenarioFile
  const placed = problems.map(({ path, detail }) => ({ pointer: toPointer(path), detail }))
  throw new ScenariosInvalid(placed.slice(0, problemsMax), undefined)
}

function findProblems(value: unknown, check: CheckScenarios): ScenarioProblem[] {
  validate ??= compile()
  if (!validate(value)) return (validate.errors ?? []).map(toProblem)
  const numbers = [...walk(value)].filter((each) => typeof each.value === 'number' && !Number.isFinite(each.value))
  if (numbers.length > 0) return numbers.map(({ path }) => ({ path, detail: 'is not a number that JSON has' }))
  return check(value as ScenarioFile)
}

let validate: ValidateFunction | undefined

function compile(): ValidateFunction {
  const ajv = new Ajv2020({ allErrors: true, verbose: true, strictTypes: false, ownProperties: true })
  return addFormats.default(ajv).compile(scenariosSchema)
}

// Sentences about values that do not fit the schema.

function toProblem({ instancePath, keyword, params, parentSchema, data, message }: ErrorObject): ScenarioProblem {
  const path = parsePointer(instancePath)
  switch (keyword) {
    case 'additionalProperties':
      return unknownMember(path, params.additionalProperty, Object.keys(parentSchema?.properties ?? {}))
    case 'required':
      return { path, detail: `${path.length === 0 ? 'The file ' : ''}lacks the member "${params.missingProperty}"` }
    case 'type':
      return wrongValue(path, `must be ${[params.type].flat().map(withArticle).join(' or ')}`, data)
    case 'enum':
      return wrongName(path, data, params.allowedValues)
    case 'minProperties':
    case 'maxProperties':
      return { path, detail: countOfMembers(path, Object.keys(parentSchema?.properties ?? {}), Object(data)) }
    default:
      return wrongValue(path, message ?? 'is invalid', data)
  }
}

function unknownMember(path: Path, name: string, members: readonly string[]): ScenarioProblem {
  return { path: [...path, name], isName: true, detail: `is not a known member: ${suggest(name, members, 'members')}` }
}

function wrongName(path: Path, value: unknown, values: readonly string[]): ScenarioProblem {
  return { path, detail: `cannot be ${show(value)}: ${suggest(String(value), values, 'values')}` }
}

function wrongValue(path: Path, rule: string, value: unknown): ScenarioProblem {
  const place = path.length === 0 ? 'The file ' : ''
  return { path, detail: `${place}${rule}, and not ${show(value)}` }
}

function countOfMembers(path: Path, members: readonly string[], value: object): string {
  if (path.at(-1) === 'sleep') return 'must have a name, and either "seconds" or "until"'
  const names = Object.keys(value).map((name) => `"${name}"`)
  const found = names.length === 0 ? 'none' : names.join(' and ')
  return `must have exactly one of ${members.map((name) => `"${name}"`).join(', ')}, and has ${found}`
}

function withArticle(type: string): string {
  return type === 'null' ? 'null' : `${/^[aio]/.test(type) ? 'an' : 'a'} ${type}`
}

const shownMax = 60

function show(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object' && value !== null) return 'an object'
  const json = JSON.stringify(value)
  return json.length > shownMax ? `${json.slice(0, shownMax)}…` : json
}
