/** Decides what each attempt of a simulated run does. */
import type { Workflow } from '../domain/workflows/workflow.ts'
import type { Workflows } from '../domain/workflows/workflows.ts'
import type { AttemptScript } from './attempt-script.ts'
import { buildScript, namedSeconds } from './build-script.ts'
import { checkScenarios } from './check-scenarios.ts'
import { contains } from './contains.ts'
import { makeOutput } from './example-output.ts'
import { readJson, readYaml } from './read-scenarios.ts'
import type { Scenario, ScenarioFile } from './scenarios-schema.ts'
import { seededFraction } from './seeded-fraction.ts'

export interface SimulatedAttempt {
  workflow: Workflow
  /** As the run shows them. */
  variables: Record<string, unknown>
  /** From 1. */
  attempt: number
  runId: string
  seed: string | number
}

/** Of runs whose scenario names no duration. */
const [shortestMilliseconds, longestMilliseconds] = [2000, 6000]

export class Scenarios {
  /** Without any, each run succeeds with an output that fits its workflow's schema. */
  static readonly none = new Scenarios([])

  /**
   * @param text YAML, which includes JSON.
   * @param source names the text in errors.
   * @throws {ScenariosInvalid} with one sentence that names the place.
   */
  static read(text: string, workflows: Workflows, source = 'scenarios.yaml'): Scenarios {
    return new Scenarios(readYaml(text, source, (file) => checkScenarios(file, workflows)).scenarios)
  }

  /** @param value as `JSON.parse` returns it. @throws {ScenariosInvalid} */
  static from(value: unknown, workflows: Workflows): Scenarios {
    return new Scenarios(readJson(value, (file) => checkScenarios(file, workflows)).scenarios)
  }

  readonly #scenarios: readonly Scenario[]
  readonly #outputs = new WeakMap<Workflow, { output: unknown }>()

  /** @param scenarios that were checked. */
  constructor(scenarios: readonly Scenario[]) {
    this.#scenarios = scenarios
  }

  /** As `from` reads them; for `JSON.stringify`. */
  toJSON(): ScenarioFile {
    return { scenarios: this.#scenarios }
  }

  /** The same arguments give the same script. */
  scriptOf(request: SimulatedAttempt): AttemptScript {
    const { workflow, attempt } = request
    const scenario = this.#find(request) ?? { workflow: workflow.id }
    const durationMilliseconds = durationOf(request, scenario)
    const { output = this.#outputOf(workflow) } = scenario
    return buildScript({ workflow, scenario, attempt, durationMilliseconds, output })
  }

  #find({ workflow, variables }: SimulatedAttempt): Scenario | undefined {
    return this.#scenarios.find((each) => each.workflow === workflow.id && contains(variables, each.variables ?? {}))
  }

  #outputOf(workflow: Workflow): unknown {
    const made = this.#outputs.get(workflow) ?? { output: makeOutput(workflow) ?? null }
    this.#outputs.set(workflow, made)
    return structuredClone(made.output)
  }
}

function durationOf({ workflow, runId, seed }: SimulatedAttempt, { durationSeconds, actions = [] }: Scenario): number {
  if (durationSeconds !== undefined) return durationSeconds * 1000
  const named = 1000 * namedSeconds(actions)
  if (named > 0) return named
  const fraction = seededFraction(seed, runId, 'duration')
  const milliseconds = shortestMilliseconds + fraction * (longestMilliseconds - shortestMilliseconds)
  // No attempt without a scenario exceeds its time limit.
  return Math.round(Math.min(milliseconds, workflow.timeLimitSeconds * 500))
}
