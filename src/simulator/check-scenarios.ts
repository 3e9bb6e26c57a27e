/** What scenarios must fit besides their JSON Schema: the workflows that they name, and the limits of runs. */
import { ArtifactError, checkArtifact, checkArtifactsOfRun } from '../domain/runs/artifact.ts'
import { lossesMax } from '../domain/runs/run-state.ts'
import { isObject, resolveSchema, toMembers } from '../domain/workflows/example-values.ts'
import { type JsonSchema, type Workflow, WorkflowSchemaError } from '../domain/workflows/workflow.ts'
import { type VariableError, Workflows } from '../domain/workflows/workflows.ts'
import { type Path, parsePointer, toPointer } from '../openapi/json-pointer.ts'
import { namedSeconds, outcomeOf, toArtifact } from './build-script.ts'
import { suggest } from './closest-name.ts'
import { contains } from './contains.ts'
import { defaultActions } from './default-actions.ts'
import type { ScenarioProblem } from './scenario-errors.ts'
import type { Action, Continuation, OutcomeName, Report, Scenario, ScenarioFile } from './scenarios-schema.ts'

export function checkScenarios({ scenarios }: ScenarioFile, workflows: Workflows): ScenarioProblem[] {
  const ids = workflows.list().map(({ id }) => id)
  return scenarios.flatMap((scenario, index) => {
    const path = ['scenarios', index]
    const workflow = workflows.get(scenario.workflow)
    if (!workflow) return unknownWorkflow([...path, 'workflow'], scenario.workflow, ids)
    const check = new ScenarioCheck(scenario, workflow, workflows, path)
    return [...check.problems(), ...findUnreachable(scenarios, index)]
  })
}

function unknownWorkflow(path: Path, id: string, ids: readonly string[]): ScenarioProblem[] {
  return [{ path, detail: `names no workflow: ${suggest(id, ids, 'workflows')}` }]
}

/** A scenario that never matches, since an earlier one matches all its runs. */
function findUnreachable(scenarios: readonly Scenario[], index: number): ScenarioProblem[] {
  const { workflow, variables = {} } = scenarios[index] as Scenario
  const first = scenarios.findIndex((each) => each.workflow === workflow && contains(variables, each.variables ?? {}))
  if (first === index) return []
  return [
    { path: ['scenarios', index], detail: `never matches, since /scenarios/${first} matches all its runs before` },
  ]
}

/** What the actions before an action have used. */
interface Used {
  seconds: number
  /** Where steps and waits are, by their names. */
  names: Map<string, Path>
  /** Sizes in bytes. */
  artifacts: Map<string, number>
}

class ScenarioCheck {
  readonly #scenario: Scenario
  readonly #workflow: Workflow
  readonly #workflows: Workflows
  readonly #path: Path

  constructor(scenario: Scenario, workflow: Workflow, workflows: Workflows, path: Path) {
    this.#scenario = scenario
    this.#workflow = workflow
    this.#workflows = workflows
    this.#path = path
  }

  problems(): ScenarioProblem[] {
    const { actions = [], output } = this.#scenario
    return [
      ...this.#checkVariables(),
      ...this.#checkDuration(),
      ...this.#checkOutcome(),
      ...this.#checkActions(actions, ['actions'], { seconds: 0, names: new Map(), artifacts: new Map() }),
      ...this.#checkOutput(output, ['output']),
    ]
  }

  #problem(path: Path, detail: string, isName = false): ScenarioProblem {
    return { path: [...this.#path, ...path], detail, isName }
  }

  /** A variable that no run can have. */
  #checkVariables(): ScenarioProblem[] {
    const { variables: schema } = this.#workflow
    const { properties, additionalProperties, patternProperties } = toMembers(resolveSchema(schema, schema))
    if (additionalProperties !== false || patternProperties !== undefined) return []
    const names = Object.keys(toMembers(properties))
    const unknown = Object.keys(this.#scenario.variables ?? {}).filter((name) => !names.includes(name))
    return unknown.map((name) => {
      const variables = `variables of "${this.#workflow.id}"`
      return this.#problem(['variables', name], `is not a variable: ${suggest(name, names, variables)}`, true)
    })
  }

  #checkDuration(): ScenarioProblem[] {
    const { durationSeconds, actions = [] } = this.#scenario
    const { timeLimitSeconds } = this.#workflow
    const named = namedSeconds(actions)
    if (durationSeconds !== undefined && named > durationSeconds) {
      return [this.#problem(['durationSeconds'], `is ${durationSeconds}, while the actions take ${named} seconds`)]
    }
    const duration = durationSeconds ?? named
    if (duration <= timeLimitSeconds) return []
    const place = durationSeconds === undefined ? ['actions'] : ['durationSeconds']
    const limit = `the time limit of "${this.#workflow.id}" is ${timeLimitSeconds} seconds`
    return [this.#problem(place, `takes ${duration} seconds, while ${limit}: use the outcome "timedOut"`)]
  }

  #checkOutcome(): ScenarioProblem[] {
    const { endsInStep, actions = defaultActions(this.#workflow, false), evidence, error } = this.#scenario
    const outcome = outcomeOf(this.#scenario)
    const problems: ScenarioProblem[] = []
    for (const name of ['firstAttempts', 'endsInStep'] as const) {
      if (outcome !== 'succeeded' || this.#scenario[name] === undefined) continue
      problems.push(this.#problem([name], 'needs an outcome other than "succeeded"', true))
    }
    problems.push(...this.#checkFirstAttempts(outcome))
    if (error && outcome !== 'failed')
      problems.push(this.#problem(['error'], `needs the outcome "failed", and not "${outcome}"`, true))
    const steps = actions.flatMap(({ step }) => (step === undefined ? [] : nameOf(step)))
    if (endsInStep !== undefined && !steps.includes(endsInStep))
      problems.push(this.#problem(['endsInStep'], `names no step: ${suggest(endsInStep, steps, 'steps')}`))
    if (evidence && !this.#workflow.usesBrowser)
      problems.push(
        this.#problem(['evidence'], `needs a workflow with a browser, which "${this.#workflow.id}" is not`, true),
      )
    return problems
  }

  /** Attempts after which no other one follows that could succeed. */
  #checkFirstAttempts(outcome: OutcomeName): ScenarioProblem[] {
    const { firstAttempts } = this.#scenario
    const { maxAttempts } = this.#workflow.retry
    const most: Record<OutcomeName, [number, string]> = {
      succeeded: [Number.POSITIVE_INFINITY, ''],
      failed: [maxAttempts, `the retry policy of "${this.#workflow.id}" has ${maxAttempts} in all`],
      timedOut: [1, 'no attempt follows one that times out'],
      workerLost: [lossesMax, `a run fails when it has lost ${lossesMax} workers`],
    }
    const [max, rule] = most[outcome]
    if (firstAttempts === undefined || firstAttempts < max) return []
    return [
      this.#problem(['firstAttempts'], `is ${firstAttempts}, while ${rule}: leave it out if the run is not to succeed`),
    ]
  }

  /** @param used is added to. */
  #checkActions(actions: readonly Action[], path: Path, used: Used): ScenarioProblem[] {
    return actions.flatMap((action, index) => {
      const place = [...path, index]
      const problems = [
        ...this.#checkName(action, place, used),
        ...this.#checkArtifacts(action, place, used),
        ...this.#checkCall(action, place),
      ]
      used.seconds += namedSeconds([action])
      return [...problems, ...this.#checkAsk(action, place, used)]
    })
  }

  #checkName(action: Action, path: Path, { names }: Used): ScenarioProblem[] {
    const name = nameOfAction(action)
    if (name === undefined) return []
    const earlier = names.get(name)
    names.set(name, earlier ?? path)
    if (!earlier) return []
    const detail = `has the name "${name}" of ${toPointer(earlier)}: steps and waits need different names`
    return [this.#problem(path, detail)]
  }

  #checkAsk({ ask }: Action, path: Path, used: Used): ScenarioProblem[] {
    if (ask === undefined) return []
    const { waits = {} } = this.#workflow
    const name = nameOfAction({ ask }) as string
    if (!Object.hasOwn(waits, name)) {
      const declared = suggest(name, Object.keys(waits), `waits of "${this.#workflow.id}"`)
      const place = typeof ask === 'string' ? ['ask'] : ['ask', 'wait']
      return [this.#problem([...path, ...place], `is "${name}", which the workflow does not declare: ${declared}`)]
    }
    const { answers = [] } = Object(ask) as { answers?: readonly Continuation[] }
    return answers.flatMap((answer, index) => {
      const place = [...path, 'ask', 'answers', index]
      const earlier = answers.findIndex((each) => matchesAll(each, answer))
      return [
        ...this.#checkAnswer(answer, name, place),
        ...(earlier === index
          ? []
          : [this.#problem(place, `never matches, since /answers/${earlier} matches all its answers before`)]),
        ...this.#checkContinuation(answer, place, used),
      ]
    })
  }

  #checkAnswer({ value, timedOut }: Continuation, name: string, path: Path): ScenarioProblem[] {
    if ((value === undefined) === (timedOut === undefined))
      return [this.#problem(path, 'must have either "value" or "timedOut"')]
    if (value === undefined) return []
    const workflows = isObject(value) ? this.#withPartialAnswers(name) : this.#workflows
    try {
      const checked = workflows.checkAnswer(this.#workflow.id, name, structuredClone(value))
      if (!checked || !('errors' in checked)) return []
      return this.#schemaProblems([...path, 'value'], checked.errors, `answers to "${name}"`)
    } catch (error) {
      // The schema refers to a part that was left out, or to another schema.
      if (error instanceof WorkflowSchemaError) return []
      throw error
    }
  }

  /** Accepts some members of an answer in place of all. */
  #withPartialAnswers(name: string): Workflows {
    const { waits = {} } = this.#workflow
    const wait = waits[name] as (typeof waits)[string]
    const partial = { ...wait, schema: withoutRequired(wait.schema) }
    return new Workflows([{ ...this.#workflow, waits: { [name]: partial } }])
  }

  #checkContinuation({ actions = [], error, output }: Continuation, path: Path, before: Used): ScenarioProblem[] {
    const used = { ...before, names: new Map(before.names), artifacts: new Map(before.artifacts) }
    const { id, timeLimitSeconds } = this.#workflow
    const seconds = before.seconds + namedSeconds(actions)
    const limit = `the time limit of "${id}" is ${timeLimitSeconds} seconds`
    return [
      ...(seconds > timeLimitSeconds
        ? [this.#problem([...path, 'actions'], `lead to a duration of ${seconds} seconds, while ${limit}`)]
        : []),
      ...(error && output !== undefined ? [this.#problem(path, 'must have at most one of "error" and "output"')] : []),
      ...this.#checkActions(actions, [...path, 'actions'], used),
      ...this.#checkOutput(output, [...path, 'output']),
    ]
  }

  #checkCall({ call }: Action, path: Path): ScenarioProblem[] {
    if (!call) return []
    const called = [...path, 'call']
    if (!this.#workflows.get(call.workflow)) {
      const ids = this.#workflows.list().map(({ id }) => id)
      return unknownWorkflow([...this.#path, ...called, 'workflow'], call.workflow, ids)
    }
    const checked = this.#workflows.checkVariables(call.workflow, structuredClone(call.variables ?? {}))
    if (!('errors' in checked)) return []
    return this.#schemaProblems([...called, 'variables'], checked.errors, `the variables of "${call.workflow}"`)
  }

  #checkOutput(output: unknown, path: Path): ScenarioProblem[] {
    if (output === undefined) return []
    const { id } = this.#workflow
    const checked = this.#workflows.checkOutput(id, structuredClone(output))
    return 'errors' in checked ? this.#schemaProblems(path, checked.errors, `the output of "${id}"`) : []
  }

  #schemaProblems(path: Path, errors: readonly VariableError[], what: string): ScenarioProblem[] {
    return errors.map(({ pointer, detail }) =>
      this.#problem([...path, ...parsePointer(pointer)], `${detail}, by the schema of ${what}`),
    )
  }

  #checkArtifacts(action: Action, path: Path, { artifacts }: Used): ScenarioProblem[] {
    return reportsOf(action, path).flatMap(({ report: { artifact }, path: place }) => {
      if (!artifact) return []
      const { name, text, base64, sizeBytes } = artifact
      const at = [...place, 'artifact']
      if ([text, base64, sizeBytes].filter((each) => each !== undefined).length > 1)
        return [this.#problem(at, 'must have at most one of "text", "base64" and "sizeBytes"')]
      if (base64 !== undefined && Buffer.from(base64, 'base64').toString('base64') !== base64)
        return [this.#problem([...at, 'base64'], 'must be base64')]
      const made = toArtifact(artifact)
      const others = [...artifacts].filter(([other]) => other !== name)
      const bytes = others.reduce((sum, [, each]) => sum + each, made.content.length)
      artifacts.set(name, made.content.length)
      try {
        checkArtifact(made)
        checkArtifactsOfRun({ count: others.length, bytes })
        return []
      } catch (error) {
        if (!(error instanceof ArtifactError)) throw error
        return [this.#problem(at, `is refused: ${error.message}`)]
      }
    })
  }
}

function reportsOf(action: Action, path: Path): { report: Report; path: Path }[] {
  const { actions = [] } = Object(action.step) as { actions?: Report[] }
  const inStep = actions.map((report, at) => ({ report, path: [...path, 'step', 'actions', at] }))
  return [{ report: action, path }, ...inStep]
}

/** Whether every answer that matches the second one matches the first one. */
function matchesAll({ value }: Continuation, other: Continuation): boolean {
  return value === undefined || other.value === undefined ? value === other.value : contains(other.value, value)
}

/** Keywords that can refuse an object for what it lacks, or whose schemas permit what they refuse. */
const aboutMissing = [
  ...['required', 'minProperties', 'dependentRequired', 'dependentSchemas', 'dependencies', 'unevaluatedProperties'],
  ...['oneOf', 'not', 'if', 'then', 'else'],
]

/** Keywords whose members are schemas by names. */
const schemasByName = ['properties', 'patternProperties', '$defs', 'definitions']

/** A schema of objects that have some members of those that the given schema permits. */
function withoutRequired(schema: JsonSchema): JsonSchema {
  const relax = (value: unknown): unknown =>
    Array.isArray(value) ? value.map(relax) : isObject(value) ? withoutRequired(value) : value
  const relaxMembers = (value: unknown) =>
    Object.fromEntries(Object.entries(toMembers(value)).map(([name, each]) => [name, relax(each)]))
  const isKept = (keyword: string, value: unknown) =>
    ['const', 'enum'].includes(keyword) ? ![value].flat().some(isObject) : !aboutMissing.includes(keyword)
  const kept = Object.entries(schema).filter(([keyword, value]) => isKept(keyword, value))
  return Object.fromEntries(
    kept.map(([keyword, value]) => [keyword, schemasByName.includes(keyword) ? relaxMembers(value) : relax(value)]),
  )
}

function nameOf(step: NonNullable<Action['step']>): string {
  return typeof step === 'string' ? step : step.name
}

function nameOfAction({ step, sleep, ask, call }: Action): string | undefined {
  if (step !== undefined) return nameOf(step)
  if (ask !== undefined) return typeof ask === 'string' ? ask : ask.wait
  return (sleep ?? call)?.name
}
