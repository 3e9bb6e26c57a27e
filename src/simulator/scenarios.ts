/** Decides what each attempt of a simulated run does. */
import { isDeepStrictEqual } from 'node:util'
import type { Workflow } from '../domain/workflows/workflow.ts'
import type { AttemptScript } from './attempt-script.ts'
import { buildScript, namedSeconds } from './build-script.ts'
import { defaultActions } from './default-actions.ts'
import { makeOutput } from './example-output.ts'
import type { Scenario } from './scenarios-schema.ts'
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

  readonly #scenarios: readonly Scenario[]
  readonly #outputs = new WeakMap<Workflow, { output: unknown }>()

  /** @param scenarios that were checked. */
  constructor(scenarios: readonly Scenario[]) {
    this.#scenarios = scenarios
  }

  /** The same arguments give the same script. */
  scriptOf(request: SimulatedAttempt): AttemptScript {
    const { workflow, attempt } = request
    const scenario = this.#find(request) ?? { workflow: workflow.id }
    const durationMilliseconds = durationOf(request, scenario)
    const { actions = defaultActions(workflow), output = this.#outputOf(workflow) } = scenario
    return buildScript({ workflow, scenario: { ...scenario, actions }, attempt, durationMilliseconds, output })
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

/** Whether the value has every member of the pattern, in objects at any depth. Other values must be equal. */
export function contains(value: unknown, pattern: unknown): boolean {
  if (!isObject(pattern)) return isDeepStrictEqual(value, pattern)
  if (!isObject(value)) return false
  return Object.entries(pattern).every(([name, each]) => Object.hasOwn(value, name) && contains(value[name], each))
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
