/**
 * Owns the executor processes of a worker. Each executes runs of one account by one deployment: the one to which the run
 * is pinned. Processes are started ahead, so that a claimed run begins within milliseconds.
 */
import { statSync } from 'node:fs'
import { totalmem } from 'node:os'
import type { Logger } from 'pino'
import { DeploymentUnavailable } from '../../domain/deployments/deployment-files.ts'
import type { Claim } from '../../domain/queue/attempts.ts'
import type { RetryPolicy } from '../../domain/runs/run-state.ts'
import { type ProcessEnd, ProcessReaper } from '../../domain/workflows/process-reaper.ts'
import type { Workflows } from '../../domain/workflows/workflows.ts'
import { type ExecutorOptions, ExecutorProcess, LoadError } from './executor-process.ts'
import type { DeployedWorkflows, WorkerDeployments } from './worker-deployments.ts'

/** For how long a process keeps its account while others with running runs wait: a start takes 40 ms of CPU time. */
const quantumMilliseconds = 1000
/** A quantum starts with a time in which a process keeps its account while any other waits. */
const keepMillisecondsMin = 100
/** It is this many times as long as the start of a process took, if that is longer: on a busy machine, runs take longer too. */
const keepPerStart = 2

/** All idle processes but one are killed after this time. */
const idleMilliseconds = 30_000
/** Of accounts whose runs alternate, while their idle processes are within the limit of memory. */
const processesPerSlotMax = 8
/** An idle process is measured after an attempt, at most this often: it takes 0.2 ms. */
const measureMilliseconds = 1000
/** For idle processes: of the memory of the container or the machine, which may be small. */
const idleDefault = { share: 0.1, bytesMin: 128 * 1024 ** 2 }

interface Pooled {
  process: ExecutorProcess
  deploymentId: string
  /** The only workflow that it has loaded, or `undefined` if it has loaded all of its deployment. */
  workflowId: string | undefined
  /** The account whose runs it executes, so that nothing of another remains in it. */
  accountId: string | undefined
  quantumStartedAt: number
  /** The account had no ready run since the quantum began. */
  hasWaited: boolean
  /** Its memory after an attempt. */
  bytes: number
  measuredAt: number
}

/** The processes of a worker. */
export interface ProcessCount {
  busy: number
  /** With the one that has served no account. */
  idle: number
  idleBytes: number
}

/** The process and the definitions of the deployment that executes a run. */
export interface Execution {
  executor: ExecutorProcess
  deploymentId: string
  workflows: Workflows
}

/** The workflow's module ended its process or did not load in time, which fails the attempt. */
export class WorkflowNotLoaded extends Error {
  readonly end: ProcessEnd
  readonly retry: RetryPolicy

  constructor(end: ProcessEnd, retry: RetryPolicy) {
    super(end.message)
    this.end = end
    this.retry = retry
  }
}

export class Executors {
  readonly #deployments: WorkerDeployments
  readonly #options: ExecutorOptions
  readonly #size: number
  readonly #idleBytesMax: number
  readonly #log: Logger
  readonly #reaper: ProcessReaper
  /** In the order of their last use. */
  #idle: Pooled[] = []
  readonly #busy = new Map<ExecutorProcess, Pooled>()
  /** The deployment that is current, whose files are kept and which the spare process has loaded. */
  #current: DeployedWorkflows | undefined
  #preparing: Promise<void> = Promise.resolve()
  /** Deployments with a module that ends its process: their processes load only the module of the run. */
  readonly #loadSeparately = new Set<string>()
  #trim: NodeJS.Timeout | undefined
  #draining = false
  #closed = false

  /** @param size how many attempts there are at the same time. */
  constructor(
    deployments: WorkerDeployments,
    { idleMegabytesMax, ...options }: ExecutorOptions & { idleMegabytesMax: number | undefined },
    size: number,
    log: Logger,
  ) {
    const { share, bytesMin } = idleDefault
    const bytesMax = idleMegabytesMax === undefined ? undefined : idleMegabytesMax * 1024 ** 2
    this.#idleBytesMax = bytesMax ?? Math.max(bytesMin, share * memoryOfMachine())
    this.#deployments = deployments
    this.#options = options
    this.#size = size
    this.#log = log
    this.#reaper = new ProcessReaper({
      graceSeconds: 0,
      identity: options.identity,
      filesPrefix: () => deployments.filesPrefix,
    })
  }

  /** Resolves when executors of what is current are being started. @param onChange called when that changes. */
  async open(onChange: () => void): Promise<void> {
    await this.#deployments.open(() => {
      void this.#prepare()
      onChange()
    })
    await this.#prepare()
  }

  /** Stops reacting to deployments. */
  drain(): void {
    this.#draining = true
    this.#deployments.drain()
  }

  /** Kills all processes and removes the files of deployments. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#trim)
    for (const { process } of this.#idle.splice(0)) process.kill()
    this.#reaper.close()
    this.#options.users?.close()
    await this.#preparing
    await this.#deployments.close()
  }

  /**
   * A process that has loaded the workflow, and has executed runs of this account only, or none. It is the run's until
   * `release`.
   *
   * @throws {DeploymentUnavailable} if this worker cannot get the deployment. {WorkflowNotLoaded} because of its code.
   * Another error if no process can be started.
   */
  async acquire(claim: Claim): Promise<Execution> {
    const { accountId, workflowId } = claim
    const deployment = await this.#deployments.acquire(this.#deployments.idFor(claim))
    const { id: deploymentId, workflows } = deployment
    const workflow = workflows.get(workflowId)
    try {
      if (!workflow) throw new DeploymentUnavailable(`It has no workflow ${workflowId}.`)
      return { executor: await this.#acquireProcess(accountId, deployment, workflowId), deploymentId, workflows }
    } catch (error) {
      this.#releaseDeployment(deploymentId)
      throw error instanceof LoadError && workflow ? new WorkflowNotLoaded(error.end, workflow.retry) : error
    }
  }

  count(): ProcessCount {
    const idleBytes = this.#idle.reduce((sum, { bytes }) => sum + bytes, 0)
    return { busy: this.#busy.size, idle: this.#idle.length, idleBytes }
  }

  /** The account of each idle process within its quantum. */
  withinQuantum(): string[] {
    return this.#idle.flatMap((pooled) =>
      isWithinQuantum(pooled) && pooled.process.alive ? (pooled.accountId ?? []) : [],
    )
  }

  /** The accounts whose only process is idle at the start of its quantum. */
  keeping(): string[] {
    const busy = new Set([...this.#busy.values()].map(({ accountId }) => accountId))
    const keeps = (pooled: Pooled) => {
      const milliseconds = Math.max(keepMillisecondsMin, keepPerStart * pooled.process.startMilliseconds)
      return isWithinQuantum(pooled, milliseconds) && !pooled.hasWaited && !busy.has(pooled.accountId)
    }
    return this.#idle.flatMap((pooled) => (keeps(pooled) && pooled.process.alive ? (pooled.accountId ?? []) : []))
  }

  /** Call it when the account has no ready run. */
  endQuantum(accountId: string): void {
    for (const pooled of this.#idle) if (pooled.accountId === accountId) pooled.hasWaited = true
  }

  /** @param reusable false when code of the attempt may still run in the process. */
  release({ executor, deploymentId }: Execution, reusable: boolean): void {
    this.#releaseProcess(executor, reusable)
    this.#releaseDeployment(deploymentId)
  }

  /** Loads the current deployment ahead of its first run. */
  #prepare(): Promise<void> {
    const prepare = async () => {
      const { currentId } = this.#deployments
      if (currentId === this.#current?.id || this.#draining) return
      try {
        const deployment = currentId === undefined ? undefined : await this.#deployments.acquire(currentId)
        const before = this.#current
        this.#current = deployment
        this.#killIdle((each) => each.accountId === undefined && each.deploymentId !== currentId)
        this.#startSpare()
        if (before) this.#releaseDeployment(before.id)
      } catch (error) {
        this.#log.warn({ deploymentId: currentId, err: error }, 'deployment unavailable; its runs wait')
      }
    }
    this.#preparing = this.#preparing.then(prepare)
    return this.#preparing
  }

  /** Kills the idle processes of deployments whose files are about to be removed. */
  #releaseDeployment(id: string): void {
    for (const removed of this.#deployments.release(id)) {
      this.#loadSeparately.delete(removed)
      this.#killIdle(({ deploymentId }) => deploymentId === removed)
    }
  }

  async #acquireProcess(
    accountId: string,
    deployment: DeployedWorkflows,
    workflowId: string,
  ): Promise<ExecutorProcess> {
    for (;;) {
      this.#removeDead()
      const isSeparate = this.#loadSeparately.has(deployment.id)
      const fits = (each: Pooled, account: string | undefined) =>
        each.deploymentId === deployment.id &&
        each.accountId === account &&
        each.workflowId === (isSeparate ? workflowId : undefined)
      const pooled =
        this.#take((each) => fits(each, accountId)) ??
        this.#take((each) => fits(each, undefined)) ??
        this.#start(deployment, isSeparate ? workflowId : undefined, accountId)
      const beginsQuantum = pooled.accountId !== accountId || !isWithinQuantum(pooled)
      pooled.accountId = accountId
      this.#busy.set(pooled.process, pooled)
      // Load the modules for the next claim now.
      if (this.#busy.size < this.#size) this.#startSpare()
      this.#removeExcess()
      try {
        await pooled.process.ready
        if (beginsQuantum) Object.assign(pooled, { quantumStartedAt: performance.now(), hasWaited: false })
        return pooled.process
      } catch (error) {
        this.#releaseProcess(pooled.process, false)
        if (!(error instanceof LoadError) || isSeparate) throw error
        this.#loadSeparately.add(deployment.id)
      }
    }
  }

  #releaseProcess(executor: ExecutorProcess, reusable: boolean): void {
    const pooled = this.#busy.get(executor)
    this.#busy.delete(executor)
    if (pooled) this.#learnFrom(pooled)
    if (!pooled || !reusable || this.#closed) executor.kill()
    else {
      measure(pooled)
      this.#idle.push(pooled)
    }
    if (this.#closed) return
    this.#startSpare()
    this.#removeExcess()
    clearTimeout(this.#trim)
    this.#trim = setTimeout(() => this.#keepOnly(1), idleMilliseconds).unref()
  }

  #start(deployment: DeployedWorkflows, workflowId: string | undefined, account?: string): Pooled {
    const { id, directory, modules, workflows } = deployment
    const path = workflowId === undefined ? undefined : modules[workflowId]
    const loaded = workflowId === undefined || path === undefined ? modules : { [workflowId]: path }
    const usesBrowser = Object.keys(loaded).some((each) => workflows.get(each)?.usesBrowser)
    const { options, reaper, accountId } = this.#forAccount(directory, account)
    const process = new ExecutorProcess(options, { directory, modules: loaded, usesBrowser }, reaper)
    return {
      process,
      deploymentId: id,
      workflowId,
      accountId,
      quantumStartedAt: 0,
      hasWaited: false,
      bytes: 0,
      measuredAt: 0,
    }
  }

  /** The user of the account, if each has its own, in the group of the deployment's files. */
  #forAccount(directory: string, accountId: string | undefined) {
    const { users } = this.#options
    if (!users || accountId === undefined) return { options: this.#options, reaper: this.#reaper, accountId: undefined }
    const hasProcesses = (id: string) => [...this.#idle, ...this.#busy.values()].some((each) => each.accountId === id)
    const user = users.user(accountId, hasProcesses)
    if (!user) throw new DeploymentUnavailable("All users of EXECUTOR_UIDS on the worker's machine are in use.")
    const identity = { uid: user.uid, gid: statSync(directory).gid }
    const options = { ...this.#options, identity, temporaryParent: user.directory }
    return { options, reaper: user.reaper, accountId }
  }

  #take(fits: (pooled: Pooled) => boolean): Pooled | undefined {
    const index = this.#idle.findLastIndex(fits)
    return index < 0 ? undefined : this.#idle.splice(index, 1)[0]
  }

  /** A process that has served no account can serve any. There is none if a module would end it. */
  #startSpare(): void {
    const current = this.#current
    if (!current || this.#closed || this.#options.users || this.#loadSeparately.has(current.id)) return
    if (this.#idle.some(({ accountId }) => accountId === undefined)) return
    try {
      this.#idle.push(this.#start(current, undefined))
    } catch {
      // The next run without a process reports the error.
    }
  }

  #removeDead(): void {
    for (const each of this.#idle) this.#learnFrom(each)
    this.#idle = this.#idle.filter(({ process }) => process.alive)
  }

  /** If one module has ended a process that has loaded all of them, each gets a separate process from now on. */
  #learnFrom({ process, deploymentId, workflowId }: Pooled): void {
    if (workflowId === undefined && process.endedEarly) this.#loadSeparately.add(deploymentId)
  }

  /** Keeps processes of several accounts, so that runs that alternate between them start none, and a spare. */
  #removeExcess(): void {
    let bytes = 0
    let count = processesPerSlotMax * this.#size + 1 - this.#busy.size
    // The latest first.
    for (const [index, pooled] of this.#idle.toReversed().entries()) {
      bytes += pooled.bytes
      if (bytes > this.#idleBytesMax) count = Math.min(count, index)
    }
    this.#keepOnly(count)
  }

  /** Kills those that were used least recently, and never the spare. */
  #keepOnly(count: number): void {
    const used = this.#idle.filter(({ accountId }) => accountId !== undefined)
    const excess = new Set(used.slice(0, Math.max(0, this.#idle.length - count)))
    if (excess.size > 0) this.#killIdle((each) => excess.has(each))
  }

  #killIdle(isKilled: (pooled: Pooled) => boolean): void {
    for (const each of this.#idle) if (isKilled(each)) each.process.kill()
    this.#idle = this.#idle.filter((each) => !isKilled(each))
  }
}

function measure(pooled: Pooled): void {
  const now = performance.now()
  if (pooled.measuredAt !== 0 && now - pooled.measuredAt < measureMilliseconds) return
  pooled.measuredAt = now
  pooled.bytes = pooled.process.memoryBytes
}

/** Bytes that this process and its children may use, by their container or the machine. */
function memoryOfMachine(): number {
  return Math.min(process.constrainedMemory?.() || Number.POSITIVE_INFINITY, totalmem())
}

function isWithinQuantum({ quantumStartedAt }: Pooled, milliseconds = quantumMilliseconds): boolean {
  return performance.now() - quantumStartedAt < milliseconds
}
