/** What scenarios must fit besides their JSON Schema: the workflows that they name, and the limits of runs. */
import { ArtifactError, checkArtifact, checkArtifactsOfRun } from '../domain/runs/artifact.ts'
import { lossesMax } from '../domain/runs/run-state.ts'
import { resolveSchema, toMembers } from '../domain/workflows/example-values.ts'
import type { Workflow } from '../domain/workflows/workflow.ts'
import type { VariableError, Workflows } from '../domain/workflows/workflows.ts'
import { type Path, parsePointer } from '../openapi/json-pointer.ts'
import { namedSeconds, outcomeOf, toArtifact } from './build-script.ts'
import { suggest } from './closest-name.ts'
import { contains } from './contains.ts'
import { defaultActions } from './default-actions.ts'
import type { ScenarioProblem } from './scenario-errors.ts'
import type { Action, OutcomeName, Report, Scenario, ScenarioFile } from './scenarios-schema.ts'

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
      ...this.#checkNames(),
      ...actions.flatMap((action, index) => this.#checkAction(action, ['actions', index])),
      ...this.#checkArtifacts(),
      ...(output === undefined ? [] : this.#checkOutput(output)),
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

  #checkNames(): ScenarioProblem[] {
    const seen = new Map<string, number>()
    return (this.#scenario.actions ?? []).flatMap((action, index) => {
      const name = nameOfAction(action)
      const earlier = name === undefined ? undefined : seen.get(name)
      if (name !== undefined) seen.set(name, earlier ?? index)
      if (earlier === undefined) return []
      return [
        this.#problem(
          ['actions', index],
          `has the name "${name}" of /actions/${earlier}: steps and waits need different names`,
        ),
      ]
    })
  }

  #checkAction({ ask, call }: Action, path: Path): ScenarioProblem[] {
    if (ask !== undefined) {
      const { waits = {} } = this.#workflow
      const name = nameOfAction({ ask }) as string
      if (Object.hasOwn(waits, name)) return []
      const declared = suggest(name, Object.keys(waits), `waits of "${this.#workflow.id}"`)
      const place = typeof ask === 'string' ? ['ask'] : ['ask', 'wait']
      return [this.#problem([...path, ...place], `is "${name}", which the workflow does not declare: ${declared}`)]
    }
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

  #checkOutput(output: unknown): ScenarioProblem[] {
    const { id } = this.#workflow
    const checked = this.#workflows.checkOutput(id, structuredClone(output))
    return 'errors' in checked ? this.#schemaProblems(['output'], checked.errors, `the output of "${id}"`) : []
  }

  #schemaProblems(path: Path, errors: readonly VariableError[], what: string): ScenarioProblem[] {
    return errors.map(({ pointer, detail }) =>
      this.#problem([...path, ...parsePointer(pointer)], `${detail}, by the schema of ${what}`),
    )
  }

  #checkArtifacts(): ScenarioProblem[] {
    const stored = new Map<string, number>()
    return this.#reports().flatMap(({ report: { artifact }, path }) => {
      if (!artifact) return []
      const { name, text, base64, sizeBytes } = artifact
      const place = [...path, 'artifact']
      if ([text, base64, sizeBytes].filter((each) => each !== undefined).length > 1)
        return [this.#problem(place, 'must have at most one of "text", "base64" and "sizeBytes"')]
      if (base64 !== undefined && Buffer.from(base64, 'base64').toString('base64') !== base64)
        return [this.#problem([...place, 'base64'], 'must be base64')]
      const made = toArtifact(artifact)
      const others = [...stored].filter(([other]) => other !== name)
      const bytes = others.reduce((sum, [, each]) => sum + each, made.content.length)
      stored.set(name, made.content.length)
      try {
        checkArtifact(made)
        checkArtifactsOfRun({ count: others.length, bytes })
        return []
      } catch (error) {
        if (!(error instanceof ArtifactError)) throw error
        return [this.#problem(place, `is refused: ${error.message}`)]
      }
    })
  }

  #reports(): { report: Report; path: Path }[] {
    return (this.#scenario.actions ?? []).flatMap((action, index) => {
      const path = ['actions', index]
      const { actions = [] } = Object(action.step) as { actions?: Report[] }
      const inStep = actions.map((report, at) => ({ report, path: [...path, 'step', 'actions', at] }))
      return [{ report: action, path }, ...inStep]
    })
  }
}

function nameOf(step: NonNullable<Action['step']>): string {
  return typeof step === 'string' ? step : step.name
}

function nameOfAction({ step, sleep, ask, call }: Action): string | undefined {
  if (step !== undefined) return nameOf(step)
  if (ask !== undefined) return typeof ask === 'string' ? ask : ask.wait
  return (sleep ?? call)?.name
}
