/**
 * A real worker whose surroundings a scheduler controls: its queue is in memory, its executors are in this process, and its
 * clock stands still. What happens next is chosen at random among everything that could: each commit, each response, each
 * message between a worker and an executor, and the next timer.
 */
import { type Clock, install } from '@sinonjs/fake-timers'
import { pino } from 'pino'
import type { Claim, Lease } from '../../src/domain/queue/attempts.ts'
import type { ReachedWait, WaitResults } from '../../src/domain/queue/run-options.ts'
import type { RunQueue, StartedCall } from '../../src/domain/queue/run-queue.ts'
import type { Outcome } from '../../src/domain/runs/run-state.ts'
import type { RunContext } from '../../src/domain/workflows/define-workflow.ts'
import { noValues } from '../../src/domain/workflows/workflow.ts'
import { StoreUnavailable } from '../../src/storage/store.ts'
import { executeWorkflow } from '../../src/worker/executors/execute-workflow.ts'
import type { Reply } from '../../src/worker/executors/executor-process.ts'
import type { AttemptMessage, ToExecutor } from '../../src/worker/executors/messages.ts'
import { RunningAttempt, type Start } from '../../src/worker/executors/run-context.ts'
import { Worker, type WorkerDependencies } from '../../src/worker/worker.ts'

const nextTurn = setImmediate
const leaseSeconds = 15

export type Workflow = (context: RunContext<object>) => Promise<unknown>

/** Chooses what happens next. */
export class Scheduler {
  readonly random: () => number
  readonly clock: Clock
  /** Whether time passes only when nothing else can happen. */
  readonly isPatient: boolean
  #pending: (() => void)[] = []

  constructor(random: () => number) {
    this.random = random
    this.isPatient = this.isLikely(0.3)
    this.clock = install({ now: 0, ignoreMissingTimers: true })
  }

  /** Resolves when it is chosen. */
  step(): Promise<void> {
    return new Promise((resolve) => this.#pending.push(resolve))
  }

  isLikely(probability: number): boolean {
    return this.random() < probability
  }

  pick<Value>(values: readonly Value[]): Value | undefined {
    return values[Math.floor(this.random() * values.length)]
  }

  /** @throws {Error} if it is not so after very many steps. */
  async until(isSo: () => boolean): Promise<void> {
    for (let count = 0; !isSo(); count += 1) {
      if (count === 20_000) throw new Error('The worker does not come to an end.')
      const index = Math.floor(this.random() * this.#pending.length)
      if (this.#pending.length === 0 || (!this.isPatient && this.isLikely(0.15))) this.clock.next()
      else this.#pending.splice(index, 1)[0]?.()
      await new Promise((resolve) => nextTurn(resolve))
    }
  }

  close(): void {
    this.clock.uninstall()
  }
}

interface Wait {
  request: ReachedWait
  child: ModelRun | undefined
  endsAt: number
  isDelivered: boolean
}

export interface ModelRun {
  id: string
  workflow: Workflow
  parent: ModelRun | undefined
  isDetached: boolean
  status: 'queued' | 'running' | 'waiting' | 'succeeded' | 'failed' | 'timedOut' | 'cancelled'
  attempt: number
  workerId: string
  leaseUntil: number
  cancelRequested: boolean
  output: unknown
  executedMilliseconds: number
  steps: Map<string, string>
  waits: Map<string, Wait>
}

/** What the attempts of all workers do, and must not do. */
class WatchedAttempts {
  readonly violations = new Set<string>()
  /** Workers that have begun to stop. */
  readonly stopping = new Set<string>()
  readonly #slots: number
  readonly #started = new Set<string>()
  /** Attempts that have a process, or wait for one. */
  readonly #live = new Map<string, Lease>()
  /** Callers whose slots called runs have. */
  readonly #waiting = new Set<string>()

  constructor(slots: number) {
    this.#slots = slots
  }

  begin(lease: Lease): void {
    this.#live.set(keyOf(lease), lease)
    this.#check(lease)
  }

  start(lease: Lease): void {
    if (this.#started.has(keyOf(lease))) this.violations.add('An attempt is executed twice.')
    this.#started.add(keyOf(lease))
  }

  lend(caller: Lease): void {
    if (this.#live.has(keyOf(caller))) this.#waiting.add(keyOf(caller))
  }

  goOn(lease: Lease): void {
    this.#waiting.delete(keyOf(lease))
    if (this.#live.has(keyOf(lease))) this.#check(lease)
  }

  end(lease: Lease): void {
    this.#waiting.delete(keyOf(lease))
    this.#live.delete(keyOf(lease))
  }

  write(lease: Lease): void {
    if (!this.#live.has(keyOf(lease))) this.violations.add('An attempt that has ended writes.')
  }

  of(workerId: string): Lease[] {
    return [...this.#live.values()].filter((lease) => lease.workerId === workerId)
  }

  #check({ workerId }: Lease): void {
    const live = this.of(workerId)
    const waiting = live.filter((lease) => this.#waiting.has(keyOf(lease)))
    if (live.length - waiting.length > this.#slots) this.violations.add('More attempts execute than there are slots.')
    if (live.length > 2 * this.#slots) this.violations.add('More callers wait than there are slots.')
  }
}

function keyOf({ runId, attempt }: Lease): string {
  return `${runId}/${attempt}`
}

type Queue = WorkerDependencies['queue']

/** What the store does for workers, one atomic change at a time. */
export class ModelQueue {
  readonly runs: ModelRun[] = []
  /** How often the store is unavailable, before a change or after it. */
  faults = 0.02
  /** The free slots of the worker that has claimed last. */
  free: () => number = () => 0
  readonly attempts: WatchedAttempts
  readonly #scheduler: Scheduler
  readonly #workflows: Readonly<Record<string, Workflow>>
  readonly #listeners: Record<string, Set<() => void>> = { queue: new Set(), cancellations: new Set() }

  constructor(scheduler: Scheduler, workflows: Readonly<Record<string, Workflow>>, slots: number) {
    this.#scheduler = scheduler
    this.#workflows = workflows
    this.attempts = new WatchedAttempts(slots)
    setInterval(() => this.#expireLeases(), 1000)
  }

  add(workflow: Workflow, parent?: ModelRun, isDetached = false): ModelRun {
    const started = { attempt: 0, workerId: '', leaseUntil: 0, cancelRequested: false, executedMilliseconds: 0 }
    const run: ModelRun = {
      ...{
        id: `run-${this.runs.length}`,
        workflow,
        parent,
        isDetached,
        status: 'queued',
        output: undefined,
        ...started,
      },
      ...{ steps: new Map(), waits: new Map() },
    }
    this.runs.push(run)
    this.#notify('queue')
    return run
  }

  get hasEnded(): boolean {
    return this.runs.every(({ status }) => isFinal(status))
  }

  cancel(run: ModelRun): void {
    if (run.status === 'queued' || run.status === 'waiting') this.#finish(run, 'cancelled')
    else if (run.status === 'running') run.cancelRequested = true
    this.#notify('cancellations')
  }

  /** As if the lease had expired. */
  loseLease(run: ModelRun): void {
    if (run.status !== 'running') return
    if (run.cancelRequested) return this.#finish(run, 'cancelled')
    run.status = 'queued'
    this.#notify('queue')
  }

  listen(topic: string, listener: () => void): () => void {
    this.#listeners[topic]?.add(listener)
    return () => this.#listeners[topic]?.delete(listener)
  }

  #notify(topic: 'queue' | 'cancellations'): void {
    void this.#scheduler.step().then(() => {
      for (const listener of this.#listeners[topic] ?? []) listener()
    })
  }

  #expireLeases(): void {
    for (const run of this.runs) if (run.status === 'running' && run.leaseUntil < Date.now()) this.loseLease(run)
  }

  async #change<Result>(change: () => Result): Promise<Result> {
    await this.#scheduler.step()
    if (this.#scheduler.isLikely(this.faults)) throw new StoreUnavailable('Before the change.')
    const result = change()
    await this.#scheduler.step()
    if (this.#scheduler.isLikely(this.faults)) throw new StoreUnavailable('After the change.')
    return result
  }

  #leased({ runId, attempt, workerId }: Lease): ModelRun | undefined {
    return this.runs.find(
      (run) => run.id === runId && run.status === 'running' && run.attempt === attempt && run.workerId === workerId,
    )
  }

  #start(run: ModelRun, workerId: string): Claim {
    run.status = 'running'
    run.attempt += 1
    Object.assign(run, { workerId, leaseUntil: Date.now() + leaseSeconds * 1000 })
    const { id: runId, attempt, executedMilliseconds } = run
    return {
      ...{ runId, attempt, workerId, accountId: 'account', workflowId: 'any', deploymentId: null, variables: {} },
      ...{ number: 1, hasWaits: run.waits.size > 0, executedMilliseconds, secrets: null, browserContextId: null },
      ...{ persistContext: 'never', contextLease: null, hasSignIn: false, signsIn: null, availableAt: 0 },
      ...{ parentRunId: run.parent?.id ?? null, traceContext: null },
      steps: [...run.steps].map(([name, json]) => ({ name, value: Buffer.from(json) })),
    }
  }

  #finish(run: ModelRun, status: ModelRun['status'], output?: unknown): void {
    Object.assign(run, { status, output })
    for (const each of this.runs)
      if (each.parent === run && !each.isDetached && !isFinal(each.status)) this.cancel(each)
    if (run.parent?.status === 'waiting') run.parent.status = 'queued'
    this.#notify('queue')
  }

  readonly workerQueue: Queue = {
    claim: (workerId, _workflows, slots) =>
      this.#change(() => {
        this.free = typeof slots === 'number' ? () => slots : slots
        const ready = this.runs.filter(({ status }) => status === 'queued')
        return ready.slice(0, Math.max(0, this.free())).map((run) => this.#start(run, workerId))
      }),
    renew: (_workerId, leases) =>
      this.#change(() => {
        const leased = leases.filter((lease) => this.#leased(lease))
        for (const lease of leased) Object.assign(this.#leased(lease) ?? {}, { leaseUntil: Date.now() + 15_000 })
        return leased
      }),
    cancelRequested: async (workerId) => {
      const runs = this.runs.filter(
        (run) => run.cancelRequested && run.status === 'running' && run.workerId === workerId,
      )
      return runs.map(({ id, attempt }) => ({ runId: id, attempt, workerId }))
    },
    report: (lease) => this.#change(() => this.#leased(lease) !== undefined),
    finishStep: (lease, { name }, encrypt) => {
      this.attempts.write(lease)
      return this.#change(() => {
        const run = this.#leased(lease)
        run?.steps.set(name, Buffer.from(encrypt()).toString())
        return run !== undefined
      })
    },
    wait: (lease, request) => {
      if (request.reached.length > 0) this.attempts.write(lease)
      return this.#change(() => this.#wait(lease, request))
    },
    complete: (lease, outcome) => this.#change(() => this.#complete(lease, outcome)),
    handBack: async () => false,
    waitForValue: async () => false,
    useCode: async () => undefined,
    keepArtifact: async () => false,
  }

  #wait(lease: Lease, { reached, names, suspend, slot }: Parameters<RunQueue['wait']>[1]) {
    const run = this.#leased(lease)
    if (!run) return undefined
    const results: WaitResults = { ended: [], refused: [], deadlines: {}, isSuspended: false }
    if (run.cancelRequested) return results
    const isNew = reached.filter(({ name }) => !run.waits.has(name)).map((request) => this.#reach(run, request))
    const [only] = isNew
    if (slot && only?.child && names.length === 1) {
      const { child } = only
      const claim = this.#start(child, lease.workerId)
      this.attempts.lend(lease)
      const outcome = async () => (isFinal(child.status) ? outcomeOf(child) : undefined)
      return { ...results, started: { claim, outcome } satisfies StartedCall }
    }
    const awaited = names.flatMap((name) => run.waits.get(name) ?? []).filter(hasEnded)
    const undelivered = awaited.filter(({ isDelivered }) => !isDelivered)
    for (const wait of undelivered.length > 0 ? undelivered : awaited) {
      wait.isDelivered = true
      const outcome = wait.child ? outcomeOf(wait.child) : 'null'
      run.steps.set(wait.request.name, outcome)
      results.ended.push({ name: wait.request.name, outcome })
    }
    if (suspend && results.ended.length === 0) {
      Object.assign(run, {
        status: 'waiting',
        executedMilliseconds: run.executedMilliseconds + suspend.executedMilliseconds,
      })
      results.isSuspended = true
    }
    return results
  }

  #reach(run: ModelRun, request: ReachedWait): Wait {
    const isCall = request.kind === 'run'
    const workflow = isCall ? this.#workflows[request.workflowId] : undefined
    const child = isCall && workflow ? this.add(workflow, run, request.isDetached) : undefined
    const endsAt = isCall ? Number.POSITIVE_INFINITY : request.deadline
    const wait = { request, child, endsAt, isDelivered: false }
    run.waits.set(request.name, wait)
    const resume = () => {
      if (run.status === 'waiting') run.status = 'queued'
      this.#notify('queue')
    }
    if (!isCall) setTimeout(resume, endsAt - Date.now())
    return wait
  }

  #complete(lease: Lease, outcome: Outcome): boolean {
    const run = this.#leased(lease)
    if (!run) return false
    const isReturned = outcome.kind === 'workerStopped' || outcome.kind === 'workerLost'
    if (run.cancelRequested) this.#finish(run, 'cancelled')
    else if (isReturned) this.loseLease(run)
    else
      this.#finish(run, outcome.kind as ModelRun['status'], outcome.kind === 'succeeded' ? outcome.output : undefined)
    return true
  }
}

function isFinal(status: ModelRun['status']): boolean {
  return status !== 'queued' && status !== 'running' && status !== 'waiting'
}

function hasEnded({ child, endsAt }: Wait): boolean {
  return child ? isFinal(child.status) : endsAt <= Date.now()
}

function outcomeOf({ id, status, output }: ModelRun): string {
  return JSON.stringify(status === 'succeeded' ? { ok: true, output } : { ok: false, runId: id, status, error: null })
}

/** Executes workflows in this process. Each message arrives when the scheduler chooses it, in order. */
class ModelExecutors {
  readonly #scheduler: Scheduler
  readonly #queue: ModelQueue

  constructor(scheduler: Scheduler, queue: ModelQueue) {
    this.#scheduler = scheduler
    this.#queue = queue
  }

  async acquire(claim: Claim) {
    this.#queue.attempts.begin(claim)
    await this.#scheduler.step()
    const run = this.#queue.runs.find(({ id }) => id === claim.runId) as ModelRun
    const process = { isAlive: true }
    const start = (message: Omit<Start, 'type' | 'attempt'>, onEvent: (event: AttemptMessage) => void) => {
      this.#queue.attempts.start(claim)
      const channel = this.#execute(run, message, (event) => void (process.isAlive && onEvent(event)))
      const reply = (message: Reply) => {
        if (message.type === 'waitsEnded') this.#queue.attempts.goOn(claim)
        channel.reply(message)
      }
      return { ...channel, reply }
    }
    const workflow = {
      timeLimitSeconds: run.parent ? 5 : 1,
      usesBrowser: false,
      evidence: 'off',
      retry: { maxAttempts: 1 },
    }
    const workflows = {
      get: () => workflow,
      secretsOfOutcome: () => [],
      checkOutput: (_id: string, output: unknown) => ({ masked: output }),
    }
    return { executor: { start, process, claim }, deploymentId: '', workflows }
  }

  #execute(run: ModelRun, message: Omit<Start, 'type' | 'attempt'>, onEvent: (event: AttemptMessage) => void) {
    const inOrder = () => {
      let last = Promise.resolve()
      return (act: () => void) => {
        last = last.then(() => this.#scheduler.step()).then(act)
      }
    }
    const [toWorker, toExecutor] = [inOrder(), inOrder()]
    const send = (event: AttemptMessage) => toWorker(() => onEvent(event))
    const start: Start = { type: 'start', attempt: 1, ...message }
    const running = new RunningAttempt(start, send, undefined, { checkReusable: async () => true })
    const execute = () =>
      executeWorkflow(
        running,
        () => run.workflow(running.context()),
        async () => true,
        '/',
      )
    toExecutor(() => void execute().then(send))
    type ToAttempt = Exclude<ToExecutor, Start | { type: 'load' }>
    const receive = (reply: ToAttempt) => toExecutor(() => running.onMessage(reply))
    return {
      abort: (reason: string, timedOut: boolean) => receive({ type: 'abort', attempt: 1, reason, timedOut }),
      reply: (reply: Reply) => receive({ ...reply, attempt: 1 } as ToAttempt),
      leave: () => {},
    }
  }

  release({ executor }: Awaited<ReturnType<ModelExecutors['acquire']>>): void {
    executor.process.isAlive = false
    this.#queue.attempts.end(executor.claim)
  }
}

const plain = {
  encrypt: (text: string) => Buffer.from(text),
  decrypt: (value: Uint8Array) => Buffer.from(value).toString(),
}

/** @param queue the same for all workers of an installation. */
export function createInterleavedWorker(scheduler: Scheduler, queue: ModelQueue, id: string, slots: number): Worker {
  const executors = new ModelExecutors(scheduler, queue)
  const nothing = async () => {}
  // For a claim, and for the offer of a slot.
  const claimable = () => {
    const { stopping, violations } = queue.attempts
    if (stopping.has(id)) violations.add('A stopping worker offers a slot.')
    return {}
  }
  const dependencies = {
    store: { listen: (topic: string, listener: () => void) => queue.listen(topic, listener) },
    queue: queue.workerQueue,
    workers: { announce: nothing, leave: nothing },
    maintenance: { start: () => {}, stop: nothing },
    encryption: plain,
    runContexts: { read: nothing, save: async (_claim: Claim, outcome: Outcome) => ({ outcome, reports: [] }) },
    usage: { refusal: () => undefined, add: () => {} },
    files: { prepare: nothing, close: () => {} },
    readDeclared: async () => ({ kind: 'values', values: noValues }),
    deployments: { listAll: () => [], claimable },
    executors: {
      ...{ open: nothing, drain: () => {}, close: nothing, withinQuantum: () => [], keeping: () => [] },
      ...{ endQuantum: () => {}, acquire: (claim: Claim) => executors.acquire(claim) },
      release: (execution: never) => executors.release(execution),
    },
    browser: { acquire: nothing, release: () => {}, close: nothing },
    liveViews: { add: () => {}, remove: () => {}, start: () => {}, stop: () => {} },
    observers: [],
    log: pino({ level: 'silent' }),
    onFatal: (error: unknown) => {
      throw error
    },
  }
  const settings = { id, slots, leaseSeconds, abortGraceSeconds: 0.2 }
  return new Worker(dependencies as unknown as WorkerDependencies, settings)
}
