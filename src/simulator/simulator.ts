/** Starts simulators. Imported as `execution-service/simulator`. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { buildSnapshot } from '../domain/deployments/build-snapshot.ts'
import type { Snapshot } from '../domain/deployments/snapshot.ts'
import { Workflows } from '../domain/workflows/workflows.ts'
import { speedMax } from './driver.ts'
import { type HostedWorld, snapshotsMax } from './hosted-world.ts'
import { ScenariosInvalid } from './scenario-errors.ts'
import { Scenarios } from './scenarios.ts'
import type { Scenario } from './scenarios-schema.ts'
import type { startSimulator as declared, Simulator, SimulatorOptions, World } from './simulator-api.ts'
import { Worlds, worldsMax } from './worlds.ts'
import { controlWorlds, newWorld } from './worlds-api.ts'

export type { RunOutcome, Simulator, SimulatorOptions, World, WorldOptions } from './simulator-api.ts'

/** The valid key of the mock. */
export const defaultApiKey = '00000000-0000-4000-8000-000000000200'

/** The key without scopes of the mock. */
const powerlessApiKey = '00000000-0000-4000-8000-000000000403'

const defaultSlots = 1000

export const startSimulator: typeof declared = (options) => simulate(buildSnapshot(resolve(options.workflows)), options)

/** @param building the workflows. */
export async function simulate(
  building: Promise<Snapshot>,
  options: Omit<SimulatorOptions, 'workflows'> = {},
): Promise<Simulator> {
  const {
    apiKey = defaultApiKey,
    now = new Date(),
    seed = 'seed',
    speed = 0,
    slots = defaultSlots,
    settings = {},
  } = options
  building.catch(() => {})
  checkSpeed(speed)
  if (Number.isNaN(now.getTime())) throw new Error('now is no valid time.')
  const worlds = new Worlds({
    ...{ seed, speed, slots, now: now.getTime() },
    settings: { ...quiet, ...settings },
    apiKeys: [
      { name: 'simulator', value: apiKey.toLowerCase(), scopes: null },
      { name: 'without scopes', value: powerlessApiKey, scopes: [] },
    ].filter(({ value }, index) => index === 0 || value !== apiKey),
  })
  const built = building.then(async (workflows) => {
    return { workflows, scenarios: await readScenarios(options.scenarios, workflows) }
  })
  await worlds.open(built, controlWorlds)
  return Object.assign(
    worldApi(worlds.first, apiKey, () => worlds.stop()),
    {
      async createWorld({ now: start, ...given } = {}) {
        if (start && Number.isNaN(start.getTime())) throw new Error('now is no valid time.')
        const added = newWorld(worlds, { ...given, ...(start && { now: start.toISOString() }) })
        const world = await worlds.create(added)
        if (!world) throw new Error(`There are ${worldsMax} worlds: stop one of them.`)
        return worldApi(world, added.apiKey, () => worlds.end(added.apiKey))
      },
    } satisfies Pick<Simulator, 'createWorld'>,
  )
}

function checkSpeed(speed: number): number {
  if (speed >= 0 && speed <= speedMax) return speed
  throw new Error(`The speed is ${speed}: use a number from 0 to ${speedMax}.`)
}

/** A clock that stands still would let no window of a rate limit end. */
const quiet = { LOG_LEVEL: 'error', RATE_LIMIT_PER_MINUTE: '1000000' }

function worldApi(world: HostedWorld, apiKey: string, stop: () => Promise<void>): World {
  const { managementUrl } = world.addresses
  const now = async () => new Date(await world.call<number>('now'))
  const advanceTo = async (to: Date) => {
    if (Number.isNaN(to.getTime())) throw new Error('The time is not valid.')
    const present = await now()
    if (to < present) {
      const message = `${to.toISOString()} is before the present of this world, ${present.toISOString()}: the clock cannot be set back.`
      throw new Error(message)
    }
    await world.call('advanceTo', to.getTime())
  }
  const control = (method: string, path: string, body: object) =>
    send(`${managementUrl}/simulator/${path}`, {
      method,
      body: JSON.stringify(body),
      headers: { Authorization: `Bearer ${apiKey}` },
    })
  return {
    ...world.addresses,
    get welcomeUrl() {
      return world.welcomeUrl
    },
    apiKey,
    now,
    advance: async ({ seconds }) => advanceTo(new Date((await now()).getTime() + Math.round(seconds * 1000))),
    advanceTo,
    setSpeed: async (speed) => world.call('setSpeed', checkSpeed(speed)),
    decide: (runId, outcome) => control('PUT', `runs/${encodeURIComponent(runId)}/outcome`, outcome),
    setScenarios: (scenarios) => control('POST', 'scenarios', { scenarios }),
    setFaults: (operations) => control('POST', 'faults', { operations }),
    reset: () => world.reset(),
    snapshot: async (name) => {
      if (!(await world.snapshot(name))) throw new Error(`There are ${snapshotsMax} snapshots: use the name of one.`)
    },
    restore: async (name) => {
      if (!(await world.restore(name))) throw new Error(`There is no snapshot "${name}".`)
    },
    stop,
  }
}

async function send(url: string, request: RequestInit): Promise<void> {
  const response = await fetch(url, request)
  if (response.ok) return
  const { detail, errors = [] } = (await response.json()) as { detail: string; errors?: Record<string, string>[] }
  throw new Error([detail, ...errors.map((each) => `${each.pointer} ${each.detail}.`)].join(' '))
}

/** @throws {ScenariosInvalid} */
async function readScenarios(given: SimulatorOptions['scenarios'], snapshot: Snapshot): Promise<readonly Scenario[]> {
  if (given === undefined) return []
  const workflows = new Workflows(snapshot.workflows)
  if (typeof given === 'string') {
    const text = await readFile(given, 'utf8').catch((error: Error) => {
      throw new ScenariosInvalid([{ pointer: '', detail: `cannot be read: ${error.message}` }], given)
    })
    return Scenarios.read(text, workflows, given).toJSON().scenarios
  }
  return Scenarios.from({ scenarios: given }, workflows).toJSON().scenarios
}
