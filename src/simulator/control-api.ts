/** What the management address serves in a simulator: the clock, outcomes by hand, and the state of the world. */
import express, { type ErrorRequestHandler, type Request, type RequestHandler } from 'express'
import { Problem } from '../contract/problem.ts'
import type { Accounts } from '../domain/accounts/accounts.ts'
import type { Deployments } from '../domain/deployments/deployments.ts'
import type { RunStatistics } from '../domain/statistics/run-statistics.ts'
import { readColumns } from '../storage/runs/run-lookups.ts'
import type { Store } from '../storage/store.ts'
import { type Behaviour, behaviourRoutes } from './behaviour.ts'
import { bodyLimit, invalid, notFound, refuseOtherSites, sendProblem } from './control-problems.ts'
import { readNumber, timePattern } from './control-values.ts'
import { ClockWaits, type Driver, speedMax } from './driver.ts'
import { readOutcome } from './outcome-by-hand.ts'
import type { ScriptedWorker } from './scripted-worker.ts'
import type { VirtualClock } from './virtual-clock.ts'

export interface Controlled {
  clock: VirtualClock
  driver: Driver
  worker: ScriptedWorker
  domain: { accounts: Accounts; statistics: RunStatistics }
  deployments: Deployments
  store: Store
  behaviour: Behaviour
}

/** Changes that replace the world. */
export interface WorldChanges {
  reset(): Promise<void>
  /** Returns whether there is room for it. */
  snapshot(name: string): Promise<boolean>
  restore(name: string): Promise<boolean>
  listSnapshots(): Promise<readonly { name: string; now: number }[]>
}

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/
const secondsMax = 100 * 365 * 24 * 3600
const timeMax = Date.parse('9999-12-31T23:59:59Z')

export function controlRoutes(changes: WorldChanges): { routes: RequestHandler; open(controlled: Controlled): void } {
  let controlled: Controlled | undefined
  const opened = () => {
    if (!controlled) throw new Problem({ kind: 'unavailable', detail: 'The simulator is starting.' })
    return controlled
  }
  const router = express.Router({ caseSensitive: true, strict: true })
  router.use('/simulator', (request, _response, next) => {
    refuseOtherSites(request)
    next()
  })
  router.use('/simulator', express.json({ limit: bodyLimit, strict: false, type: () => true }))
  router.get('/simulator/clock', async (_request, response) => void response.json(await describeClock(opened())))
  router.post('/simulator/clock', async (request, response) => {
    await setClock(opened(), readMembers(request)).catch((error: unknown) => {
      throw error instanceof ClockWaits ? invalid([{ pointer: '', detail: error.message }]) : error
    })
    response.json(await describeClock(opened()))
  })
  router.use(
    behaviourRoutes(() => {
      const { behaviour, domain, deployments } = opened()
      const workflows = async () => {
        const [account] = await domain.accounts.list()
        return account ? deployments.current(account.id) : deployments.installation
      }
      return { behaviour, workflows }
    }),
  )
  router.put('/simulator/runs/:runId/outcome', async (request, response) => {
    await decide(opened(), String(request.params.runId), request.body)
    response.status(204).end()
  })
  router.post('/simulator/reset', async (_request, response) => {
    await changes.reset()
    response.status(204).end()
  })
  router.get('/simulator/snapshots', async (_request, response) => {
    const snapshots = await changes.listSnapshots()
    response.json({ data: snapshots.map(({ name, now }) => ({ name, now: new Date(now).toISOString() })) })
  })
  router.post('/simulator/snapshots', async (request, response) => {
    const { name } = readMembers(request)
    if (typeof name !== 'string' || !namePattern.test(name)) throw invalid([{ pointer: '/name', detail: nameRule }])
    if (!(await changes.snapshot(name)))
      throw invalid([{ pointer: '/name', detail: 'must be the name of a snapshot, since there is no room for more' }])
    response.status(201).json({ name, now: new Date(opened().clock.now()).toISOString() })
  })
  router.post('/simulator/snapshots/:name/restore', async (request, response) => {
    const name = String(request.params.name)
    if (!(await changes.restore(name))) throw notFound(`There is no snapshot "${name}".`)
    response.status(204).end()
  })
  router.use('/simulator', (_request, _response) => {
    throw notFound('The simulator has no such path or method.')
  })
  router.use(onError)
  return {
    routes: router,
    open(given) {
      controlled = given
    },
  }
}

const nameRule = 'must be 1 to 100 letters, digits, dots, hyphens and underscores, and begin with a letter or a digit'

async function describeClock({ clock, driver, worker, domain }: Controlled): Promise<object> {
  const next = await driver.next()
  const pending = { queued: 0, delayed: 0, waiting: 0, running: 0 }
  for (const { id } of await domain.accounts.list()) {
    const { ready, delayed, waiting, running } = await domain.statistics.current(id)
    pending.queued += ready
    pending.delayed += delayed
    pending.waiting += waiting
    pending.running += running
  }
  return {
    now: new Date(clock.now()).toISOString(),
    speed: driver.speed,
    next: next ? { at: new Date(next.at).toISOString(), kind: next.kind } : null,
    pending: { ...pending, attempts: worker.attempts },
  }
}

async function setClock({ clock, driver }: Controlled, members: Record<string, unknown>): Promise<void> {
  const names = Object.keys(members)
  const [name] = names
  if (names.length !== 1 || (name !== 'advanceSeconds' && name !== 'advanceTo' && name !== 'speed'))
    throw invalid([{ pointer: '', detail: 'must have exactly one of advanceSeconds, advanceTo and speed' }])
  const value = members[name]
  if (name === 'speed') return driver.setSpeed(readNumber('/speed', value, speedMax))
  if (name === 'advanceSeconds') {
    const milliseconds = Math.round(readNumber('/advanceSeconds', value, secondsMax) * 1000)
    if (milliseconds > timeMax - clock.now())
      throw invalid([{ pointer: '/advanceSeconds', detail: 'leads to a time after the year 9999' }])
    return driver.advanceTo(clock.now() + milliseconds)
  }
  return driver.advanceTo(readTime(value, clock.now()))
}

function readTime(value: unknown, now: number): number {
  const time = typeof value === 'string' && timePattern.test(value) ? Date.parse(value) : Number.NaN
  if (Number.isNaN(time))
    throw invalid([{ pointer: '/advanceTo', detail: 'must be a time such as 2026-01-31T12:00:00Z' }])
  if (time < now) {
    const detail = `is before the present of this world, ${new Date(now).toISOString()}: the clock cannot be set back`
    throw invalid([{ pointer: '/advanceTo', detail }])
  }
  return time
}

async function decide({ store, worker, deployments, driver }: Controlled, runId: string, body: unknown): Promise<void> {
  const columns = ['id', 'workflow_id', 'deployment_id', 'status'] as const
  const [run] = await readColumns(store.read, [...columns], [runId])
  if (!run || run.status === 'deleted') throw notFound(`There is no run ${runId}.`)
  const workflows = run.deployment_id === null ? undefined : await deployments.findWorkflows(run.deployment_id)
  const workflow = workflows?.get(run.workflow_id)
  if (!workflows || !workflow) throw notFound(`The run's workflow ${run.workflow_id} is not deployed.`)
  const outcome = readOutcome(body, workflow, workflows)
  if ('errors' in outcome) throw invalid(outcome.errors)
  await driver.exclusively(async () => {
    const [present] = await readColumns(store.read, ['finished_at', 'status'], [runId])
    if (!present || present.finished_at !== null)
      throw invalid([{ pointer: '', detail: `comes too late: the run has ended as ${present?.status ?? 'deleted'}` }])
    await worker.decide(runId, outcome)
  })
}

function readMembers({ body }: Request): Record<string, unknown> {
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body
  throw invalid([{ pointer: '', detail: 'must be an object' }])
}

const onError: ErrorRequestHandler = (error, _request, response, _next) => sendProblem(response, error)
