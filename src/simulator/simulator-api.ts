/**
 * What `execution-service/simulator` exports: the service itself in memory, with a clock that the caller sets and scripted
 * outcomes, within a test runner. Types alone, so that declarations of the package need nothing of the service.
 */
import type { FaultsByOperation } from './faults.ts'
import type { Scenario } from './scenarios-schema.ts'

export interface SimulatorOptions {
  /** Directory of the workflows. Their code is loaded to read their definitions, and is never run. */
  workflows: string
  /** When the world begins. By default the time of the machine. */
  now?: Date
  /** The same seed, times and requests lead to the same responses. */
  seed?: string
  /** Simulated seconds in a second; 0, the default: the clock stands still until it is advanced. */
  speed?: number
  /** What runs do, or the path of a YAML file that says it. By default, each succeeds after some seconds. */
  scenarios?: readonly Scenario[] | string
  /** How many attempts run at the same time; 1000 by default. */
  slots?: number
  /** The value of the API key: a UUID. */
  apiKey?: string
  /** Further settings of the service, such as ports. By default, ports are free ones. */
  settings?: Readonly<Record<string, string>>
}

/** Of a world in addition to the first one. */
export interface WorldOptions {
  /** A UUID, by which requests reach the world; by default a new one. */
  apiKey?: string
  /** By default as the first world. */
  now?: Date
  seed?: string
  /** 0 by default. */
  speed?: number
  /** By default those that the first world began with. */
  scenarios?: readonly Scenario[]
}

export interface Simulator extends World {
  /** Makes another world in this process, at the same addresses: requests with its API key reach it. */
  createWorld(options?: WorldOptions): Promise<World>
  /** Ends all worlds. */
  stop(): Promise<void>
}

/** Where a world is reached, and what moves its time. */
export interface World {
  readonly executionUrl: string
  readonly browserContextUrl: string
  readonly dashboardUrl: string
  /** Serves `/simulator/…`, besides what the management address of a service has. */
  readonly managementUrl: string
  /** Signs up the admin of the account in the dashboard. Works once in each world. */
  readonly welcomeUrl: string | undefined
  /** An API key with full access. */
  readonly apiKey: string
  /** The time of the world. */
  now(): Promise<Date>
  /** Does everything that is due until then, in its order. */
  advance(by: { seconds: number }): Promise<void>
  /** @throws {Error} for a time before that of the world. */
  advanceTo(to: Date): Promise<void>
  setSpeed(speed: number): Promise<void>
  /** The run's attempt ends at once; if none runs, the next one ends like this. @throws {Error} as the response says. */
  decide(runId: string, outcome: RunOutcome): Promise<void>
  /** Replaces all scenarios. Attempts that have started go on as before. @throws {Error} as the response says. */
  setScenarios(scenarios: readonly Scenario[]): Promise<void>
  /** Replaces all faults; `*` is for all other operations. @throws {Error} as the response says. */
  setFaults(operations: FaultsByOperation): Promise<void>
  /** Begins again with a new world, at the same time as the first. */
  reset(): Promise<void>
  /** Keeps the world as it is now, under a name. */
  snapshot(name: string): Promise<void>
  /** Returns to the snapshot. @throws {Error} if there is none of this name. */
  restore(name: string): Promise<void>
  /** Ends the world. */
  stop(): Promise<void>
}

export type RunOutcome =
  | { status: 'succeeded'; output?: unknown }
  /** With `retry`, another attempt follows if the workflow's policy has one left. */
  | { status: 'failed'; error?: { name?: string; message?: string }; retry?: boolean }
  | { status: 'timedOut' | 'workerLost' }

/** Starts a simulator, whose clock stands still by default. @throws {Error} that says what to change. */
export declare function startSimulator(options: SimulatorOptions): Promise<Simulator>
