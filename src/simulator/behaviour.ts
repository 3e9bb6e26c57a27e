/** What callers change about a world while it runs: its scenarios and its faults. */
import express, { type RequestHandler } from 'express'
import { invalidRequest, Problem, type ProblemMember } from '../contract/problem.ts'
import type { Workflows } from '../domain/workflows/workflows.ts'
import { listOperations } from '../openapi/document.ts'
import { browserContextContract, executionContract } from '../openapi/served-documents.ts'
import { Faults, type FaultyOperation, type SavedFaults } from './faults.ts'
import { ScenariosInvalid } from './scenario-errors.ts'
import { Scenarios } from './scenarios.ts'
import type { Scenario } from './scenarios-schema.ts'

export interface SavedBehaviour {
  scenarios: readonly Scenario[]
  faults: SavedFaults
}

export class Behaviour {
  readonly faults: Faults
  #scenarios: Scenarios

  constructor(seed: string, saved?: SavedBehaviour) {
    this.#scenarios = new Scenarios(saved?.scenarios ?? [])
    this.faults = new Faults(seed, documentedOperations())
    if (saved) this.faults.restore(saved.faults)
  }

  /** @param scenarios that were checked. */
  useScenarios(scenarios: readonly Scenario[]): void {
    this.#scenarios = new Scenarios(scenarios)
  }

  get scenarios(): Scenarios {
    return this.#scenarios
  }

  /** Attempts that have started go on as before. Returns what is wrong with the body, and then changes nothing. */
  setScenarios(body: unknown, workflows: Workflows): ProblemMember[] {
    try {
      this.#scenarios = Scenarios.from(body, workflows)
      return []
    } catch (error) {
      if (error instanceof ScenariosInvalid) return error.problems.map(({ pointer, detail }) => ({ pointer, detail }))
      throw error
    }
  }

  save(): SavedBehaviour {
    return { ...this.#scenarios.toJSON(), faults: this.faults.save() }
  }
}

function documentedOperations(): FaultyOperation[] {
  return [executionContract, browserContextContract]
    .flatMap(({ document }) => listOperations(document))
    .map(({ operation: { operationId: id = '', responses = {} } }) => ({
      id,
      responses: new Set(Object.keys(responses).map(Number)),
    }))
}

interface Behaving {
  behaviour: Behaviour
  /** The workflows that scenarios may name. */
  workflows(): Promise<Workflows>
}

/** @param opened throws a problem while the world is not open. */
export function behaviourRoutes(opened: () => Behaving): RequestHandler {
  const router = express.Router({ caseSensitive: true, strict: true })
  router.get('/simulator/scenarios', (_request, response) => void response.json(opened().behaviour.scenarios))
  router.post('/simulator/scenarios', async (request, response) => {
    const { behaviour, workflows } = opened()
    refuse(behaviour.setScenarios(request.body, await workflows()))
    response.json(behaviour.scenarios)
  })
  router.get('/simulator/faults', (_request, response) => void response.json(opened().behaviour.faults.current))
  router.post('/simulator/faults', (request, response) => {
    const { faults } = opened().behaviour
    refuse(faults.set(request.body))
    response.json(faults.current)
  })
  return router
}

function refuse(errors: ProblemMember[]): void {
  if (errors.length > 0) throw new Problem(invalidRequest(errors).problem)
}
