/** Reads scenarios from YAML or JSON: their form, by the JSON Schema. */
import { type Document, LineCounter, parseDocument, visit } from 'yaml'
import { walk } from '../openapi/document.ts'
import { toPointer } from '../openapi/json-pointer.ts'
import { compileForm } from './check-form.ts'
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
    problems.slice(0, problemsMax).map((problem) => places.place(withSubject(problem))),
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
  const placed = problems.map(withSubject).map(({ path, detail }) => ({ pointer: toPointer(path), detail }))
  throw new ScenariosInvalid(placed.slice(0, problemsMax), undefined)
}

/** Without a path, a sentence lacks its subject. */
function withSubject({ path, detail, ...problem }: ScenarioProblem): ScenarioProblem {
  return { ...problem, path, detail: path.length === 0 ? `The file ${detail}` : detail }
}

let checkForm: ReturnType<typeof compileForm> | undefined

function findProblems(value: unknown, check: CheckScenarios): ScenarioProblem[] {
  checkForm ??= compileForm(scenariosSchema)
  const wrong = checkForm(value)
  if (wrong.length > 0) return wrong
  const numbers = [...walk(value)].filter((each) => typeof each.value === 'number' && !Number.isFinite(each.value))
  if (numbers.length > 0) return numbers.map(({ path }) => ({ path, detail: 'is not a number that JSON has' }))
  return check(value as ScenarioFile)
}
