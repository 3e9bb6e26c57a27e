/**
 * `execution-service/check`: drives situations against a program that calls the service, or gets its webhooks, and reports
 * what the program does wrong. The service is a simulator, behind a proxy for each use.
 */
import { hash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { suggest } from '../simulator/closest-name.ts'
import type { Scenario } from '../simulator/scenarios-schema.ts'
import { type Simulator, startSimulator, type World } from '../simulator/simulator.ts'
import type { ConsumerCheck, Finding, Receiver, Report, Result, Service, UseEnd } from './check-consumer-api.ts'
import { WebhookDriver } from './deliver-webhooks.ts'
import { RecordingProxy, type Target } from './recording-proxy.ts'
import { plainUse, requestSituations } from './request-situations.ts'
import { runSituations } from './run-situations.ts'
import type { Situation, Use, UseSituation, WebhookSituation, WorldName } from './situation.ts'
import { webhookSituations } from './webhook-situations.ts'

export type * from './check-consumer-api.ts'
export type { Situation } from './situation.ts'

export const situations: readonly Situation[] = [...requestSituations, ...runSituations, ...webhookSituations]

/** The program cannot be checked; the message says what to change. */
export class CheckError extends Error {
  override readonly name = 'CheckError'
}

const speed = 30

/** By world: the scenario of every workflow. The clock of `long` stands still. */
const scenarioOf: Record<WorldName, Omit<Scenario, 'workflow'>> = {
  succeeding: { durationSeconds: 30 },
  failing: { durationSeconds: 30, outcome: 'failed', error: { message: 'The shop has closed.' } },
  retrying: { durationSeconds: 15, outcome: 'workerLost', firstAttempts: 2 },
  waiting: { durationSeconds: 5, actions: [{ sleep: { name: 'check', seconds: 3 * 86_400 } }] },
  long: {},
  timingOut: { outcome: 'timedOut' },
}

/** Keeps worlds for several checks, which a test suite shares. */
export class Checker {
  readonly #simulator: Simulator
  readonly #worlds = new Map<WorldName, Promise<World>>()

  private constructor(simulator: Simulator) {
    this.#simulator = simulator
  }

  static async start(workflows: string, seed = 'seed'): Promise<Checker> {
    return new Checker(await startSimulator({ workflows, seed, speed }))
  }

  stop(): Promise<void> {
    return this.#simulator.stop()
  }

  /** @throws {CheckError} if the program cannot be checked. */
  async check(consumer: Omit<ConsumerCheck, 'workflows'>): Promise<Report> {
    const { seed = 'seed', only } = consumer
    checkIds(only)
    const isChosen = ({ id }: Situation) => only === undefined || only.includes(id)
    const uses = [...requestSituations, ...runSituations].filter(isChosen)
    const results = [
      ...(consumer.use && uses.length > 0 ? await this.#checkUses(consumer, uses, seed) : []),
      ...(consumer.webhook ? await this.#checkWebhooks(consumer, webhookSituations.filter(isChosen), seed) : []),
    ]
    return { seed, results, findings: results.flatMap(({ findings }) => findings) }
  }

  async #checkUses(consumer: Omit<ConsumerCheck, 'workflows'>, chosen: UseSituation[], seed: string) {
    const plain = await this.#use(consumer, plainUse, seed)
    if (plain.exchanges.length === 0)
      throw new CheckError(`The program sent no request: it ${plain.ended}. Let it call the address in EXECUTION_URL.`)
    const plainFindings = judgeUse(plainUse, plain, plain, seed)
    if (!plain.done) return [toResult(plainUse, plainFindings)]
    const atOnce = consumer.port === undefined ? (consumer.atOnce ?? 6) : 1
    return inParallel(chosen, atOnce, async (situation) => {
      if (situation === plainUse) return toResult(plainUse, plainFindings)
      const use = await this.#use(consumer, situation, seed)
      if (isSpared(situation, use)) return toResult(situation, undefined)
      return toResult(situation, judgeUse(situation, use, plain, seed))
    })
  }

  async #use(consumer: Omit<ConsumerCheck, 'workflows'>, situation: UseSituation, seed: string): Promise<Use> {
    const { use, port = 0, limitSeconds = 20 } = consumer
    const target = await this.#target(situation.world, consumer.apiKey)
    const proxy = new RecordingProxy(target, situation, inventName(seed, situation.id))
    const { interfere } = situation
    const ended = new AbortController()
    proxy.onFollowed = (runId) => {
      if (!interfere) return
      proxy.applied += 1
      const call = async (method: string, path: string) => {
        const headers = { Authorization: `Bearer ${target.apiKey}` }
        await fetch(`${target.executionUrl}/v1/execution/runs/${runId}${path}`, { method, headers })
      }
      const shows = async (text: string) => {
        const headers = { Authorization: `Bearer ${target.apiKey}` }
        const read = async () => (await fetch(`${target.executionUrl}/v1/execution/runs/${runId}`, { headers })).text()
        while (!ended.signal.aborted && !(await read()).includes(text)) await delay(50)
      }
      const advance = (seconds: number) => target.world.advance({ seconds })
      interfere({ call, advance, shows }).catch((error) => ended.abort(error))
    }
    const executionUrl = await proxy.open(port)
    try {
      const limit = Math.min(situation.seconds ?? limitSeconds, limitSeconds)
      const service = { executionUrl, apiKey: target.shownKey }
      const end = await useOnce(use as NonNullable<typeof use>, service, limit, ended)
      const { exchanges, runs, applied, keyLeaked } = proxy
      return { ...end, exchanges: [...exchanges], runs: new Set(runs), applied, keyLeaked }
    } finally {
      await proxy.close()
    }
  }

  async #checkWebhooks(
    consumer: Omit<ConsumerCheck, 'workflows'>,
    chosen: readonly WebhookSituation[],
    seed: string,
  ): Promise<Result[]> {
    const target = await this.#target('succeeding', consumer.apiKey)
    const proxy = new RecordingProxy(target, {}, '')
    await proxy.open(consumer.port ?? 0)
    try {
      const driver = await WebhookDriver.create(consumer.webhook as Receiver, target.world)
      if (!(await driver.isReached()))
        throw new CheckError(`Nothing answers at ${consumer.webhook?.url}: start the receiver, or correct --webhook.`)
      return await inParallel(chosen, 4, async (situation) => {
        const did = await driver.drive(situation)
        return toResult(situation, did.map(toFinding(situation, seed)))
      })
    } finally {
      await proxy.close()
    }
  }

  async #target(name: WorldName = 'succeeding', shownKey?: string): Promise<Target & { world: World }> {
    const world = await this.#world(name)
    return {
      executionUrl: world.executionUrl,
      apiKey: world.apiKey,
      shownKey: shownKey ?? this.#simulator.apiKey,
      world,
    }
  }

  #world(name: WorldName): Promise<World> {
    const known = this.#worlds.get(name)
    if (known) return known
    const made = this.#makeWorld(name)
    this.#worlds.set(name, made)
    return made
  }

  async #makeWorld(name: WorldName): Promise<World> {
    const { executionUrl, apiKey } = this.#simulator
    const headers = { Authorization: `Bearer ${apiKey}` }
    const response = await fetch(`${executionUrl}/v1/execution/workflows?limit=100`, { headers })
    const { data } = (await response.json()) as { data: { id: string }[] }
    const scenarios = data.map(({ id }) => ({ workflow: id, ...scenarioOf[name] }))
    if (name !== 'succeeding') return this.#simulator.createWorld({ scenarios, speed: name === 'long' ? 0 : speed })
    await this.#simulator.setScenarios(scenarios)
    return this.#simulator
  }
}

/** Checks a program once. @throws {CheckError} if the program cannot be checked. */
export async function checkConsumer(consumer: ConsumerCheck): Promise<Report> {
  const checker = await Checker.start(consumer.workflows, consumer.seed)
  try {
    return await checker.check(consumer)
  } finally {
    await checker.stop()
  }
}

function checkIds(only: readonly string[] = []): void {
  const ids = situations.map(({ id }) => id)
  const unknown = only.find((id) => !ids.includes(id))
  if (unknown !== undefined)
    throw new CheckError(`"${unknown}" is no situation: ${suggest(unknown, ids, 'situations')}`)
}

/** The program sent no request that the situation is about. */
function isSpared({ change, events, interfere }: UseSituation, { applied }: Use): boolean {
  return applied === 0 && (change ?? events ?? interfere) !== undefined
}

async function useOnce(
  use: NonNullable<ConsumerCheck['use']>,
  service: Omit<Service, 'signal'>,
  seconds: number,
  ended: AbortController,
): Promise<UseEnd> {
  const late = { done: false, isObserved: true, ended: `did not end within ${seconds} s` }
  const timer = setTimeout(() => ended.abort(), seconds * 1000)
  const isLate = new Promise<UseEnd>((resolve) => ended.signal.addEventListener('abort', () => resolve(late)))
  const using = async (): Promise<UseEnd> => {
    const done = await use({ ...service, signal: ended.signal })
    if (typeof done === 'object') return ended.signal.aborted ? late : done
    return { done: done !== false, isObserved: done !== undefined, ended: done === false ? 'returned false' : 'ended' }
  }
  const failed = (error: unknown): UseEnd => {
    if (error instanceof CheckError) throw error
    return { done: false, isObserved: true, ended: `threw ${error instanceof Error ? error.name : 'a value'}` }
  }
  try {
    return await Promise.race([using().catch(failed), isLate])
  } finally {
    clearTimeout(timer)
    ended.abort()
    // Lets a program that was stopped close its connections before the port is used again.
    await delay(0)
  }
}

function judgeUse(situation: UseSituation, use: Use, plain: Use, seed: string): Finding[] {
  const did = situation.judges.map((judge) => judge(use, plain)).filter((text) => text !== undefined)
  return did.map(toFinding(situation, seed))
}

const toFinding =
  ({ id, title, rule, docs, source }: Situation, seed: string) =>
  (program: string): Finding => ({
    ...{ situation: id, service: title, program, rule },
    ...{ docs: `docs/${docs}`, source, seed },
  })

function toResult({ id, group }: Situation, findings: readonly Finding[] | undefined): Result {
  const outcome = findings === undefined ? 'notApplicable' : findings.length > 0 ? 'finding' : 'passed'
  return { situation: id, group, outcome, findings: findings ?? [] }
}

/** A name that no document has, and that the seed decides. */
function inventName(seed: string, id: string): string {
  return `new${hash('sha256', `${seed}/${id}`).slice(0, 8)}`
}

/** Keeps the order of the items. */
async function inParallel<Item, Value>(
  items: readonly Item[],
  atOnce: number,
  act: (item: Item) => Promise<Value>,
): Promise<Value[]> {
  const values: Value[] = []
  const entries = items.entries()
  const work = async () => {
    for (const [index, item] of entries) values[index] = await act(item)
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return values
}
