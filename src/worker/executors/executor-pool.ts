/**
 * Keeps executor processes started ahead, so that a claimed run begins within milliseconds. An executor serves one
 * account and one deployment.
 */

import { ProcessReaper } from '../../domain/workflows/process-reaper.ts'
import { type ExecutorOptions, ExecutorProcess, LoadError, type ModulesToLoad } from './executor-process.ts'

/** For how long a process keeps its account while others wait: starting another process takes 70 ms of CPU time. */
const turnMilliseconds = 1000

/** All idle processes but one are killed after this time. */
const idleMilliseconds = 30_000

/** A deployment whose files are on disk. */
export interface DeployedModules extends ModulesToLoad {
  readonly id: string
}

interface Pooled {
  process: ExecutorProcess
  deploymentId: string
  /** The only workflow that it has loaded, or `undefined` if it has loaded all of its deployment. */
  workflowId: string | undefined
  /** The account whose runs it executes, so that nothing of another remains in it. */
  accountId: string | undefined
  turnStartedAt: number
}

export class ExecutorPool {
  readonly #reaper: ProcessReaper
  readonly #options: ExecutorOptions
  readonly #size: number
  /** In the order of their last use. */
  #idle: Pooled[] = []
  readonly #busy = new Map<ExecutorProcess, Pooled>()
  /** The deployment that the spare process has loaded. */
  #current: DeployedModules | undefined
  /** Deployments with a module that ends its process: their processes load only the module of the run. */
  readonly #loadSeparately = new Set<string>()
  #trim: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: ExecutorOptions, size: number) {
    this.#reaper = new ProcessReaper({ graceSeconds: 0, identity: options.identity })
    this.#options = options
    this.#size = size
  }

  /** Starts a process for the next run of this deployment, which is now current; `undefined` if there is none. */
  prepare(current: DeployedModules | undefined): void {
    if (this.#closed) return
    this.#current = current
    this.#killIdle(({ accountId, deploymentId }) => accountId === undefined && deploymentId !== current?.id)
    this.#startSpare()
  }

  /** Kills the idle processes of a deployment whose files are about to be removed. */
  discard(deploymentId: string): void {
    this.#loadSeparately.delete(deploymentId)
    this.#killIdle((each) => each.deploymentId === deploymentId)
  }

  /**
   * A process that has loaded the workflow, and has executed runs of this account only, or none.
   *
   * @throws {LoadError} if the workflow's module ends its process or does not load in time.
   */
  async acquire(accountId: string, deployment: DeployedModules, workflowId: string): Promise<ExecutorProcess> {
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
        this.#start(deployment, isSeparate ? workflowId : undefined)
      if (pooled.accountId !== accountId || !isInTurn(pooled)) pooled.turnStartedAt = performance.now()
      pooled.accountId = accountId
      this.#busy.set(pooled.process, pooled)
      // Load the modules for the next claim now.
      if (this.#busy.size < this.#size) this.#startSpare()
      this.#removeExcess()
      try {
        await pooled.process.ready
        return pooled.process
      } catch (error) {
        this.release(pooled.process, false)
        if (!(error instanceof LoadError) || isSeparate) throw error
        this.#loadSeparately.add(deployment.id)
      }
    }
  }

  /** The account of each idle process whose turn lasts. */
  inTurn(): string[] {
    return this.#idle.flatMap((pooled) => (isInTurn(pooled) && pooled.process.alive ? (pooled.accountId ?? []) : []))
  }

  /** @param reusable false when code of the attempt may still run in the process. */
  release(executor: ExecutorProcess, reusable: boolean): void {
    const pooled = this.#busy.get(executor)
    this.#busy.delete(executor)
    if (pooled) this.#learnFrom(pooled)
    if (!pooled || !reusable || this.#closed) executor.kill()
    else this.#idle.push(pooled)
    if (this.#closed) return
    this.#startSpare()
    this.#removeExcess()
    clearTimeout(this.#trim)
    this.#trim = setTimeout(() => this.#keepOnly(1), idleMilliseconds).unref()
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#trim)
    for (const { process } of this.#idle.splice(0)) process.kill()
    this.#reaper.close()
  }

  #start({ id, directory, modules }: DeployedModules, workflowId: string | undefined): Pooled {
    const path = workflowId === undefined ? undefined : modules[workflowId]
    const loaded = workflowId === undefined || path === undefined ? modules : { [workflowId]: path }
    const process = new ExecutorProcess(this.#options, { directory, modules: loaded }, this.#reaper)
    return { process, deploymentId: id, workflowId, accountId: undefined, turnStartedAt: 0 }
  }

  #take(fits: (pooled: Pooled) => boolean): Pooled | undefined {
    const index = this.#idle.findLastIndex(fits)
    return index < 0 ? undefined : this.#idle.splice(index, 1)[0]
  }

  /** A process that has served no account can serve any. There is none if a module would end it. */
  #startSpare(): void {
    const current = this.#current
    if (!current || this.#loadSeparately.has(current.id)) return
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

  /** If one module has ended a process that has loaded all of them, each gets a process of its own from now on. */
  #learnFrom({ process, deploymentId, workflowId }: Pooled): void {
    if (workflowId === undefined && process.endedEarly) this.#loadSeparately.add(deploymentId)
  }

  /** Keeps two processes per slot, so that runs that alternate between few accounts start none, and a spare. */
  #removeExcess(): void {
    this.#keepOnly(2 * this.#size + 1 - this.#busy.size)
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

function isInTurn({ turnStartedAt }: Pooled): boolean {
  return performance.now() - turnStartedAt < turnMilliseconds
}
