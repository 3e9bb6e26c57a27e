/** Gives each claimed run an executor that has loaded the deployment to which the run is pinned. */
import type { Logger } from 'pino'
import { DeploymentUnavailable } from '../../domain/deployments/deployment-files.ts'
import type { Deployments } from '../../domain/deployments/deployments.ts'
import type { Claim } from '../../domain/queue/attempts.ts'
import type { RetryPolicy } from '../../domain/runs/run-state.ts'
import type { ProcessEnd } from '../../domain/workflows/process-reaper.ts'
import type { Execution } from '../attempt/attempt.ts'
import { retryUntilAvailable } from '../attempt/reporter.ts'
import type { ExecutorPool } from './executor-pool.ts'
import { LoadError } from './executor-process.ts'
import type { DeployedWorkflows, WorkerDeployments } from './worker-deployments.ts'

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

interface PinnedExecutorsDependencies {
  deployments: Deployments
  deployed: WorkerDeployments
  pool: ExecutorPool
  log: Logger
}

export class PinnedExecutors {
  readonly #deployments: Deployments
  readonly #deployed: WorkerDeployments
  readonly #pool: ExecutorPool
  readonly #log: Logger
  #preparing: Promise<void> = Promise.resolve()
  /** The current deployment, whose files are kept and which the spare executor has loaded. */
  #prepared: string | undefined
  #unsubscribe = () => {}
  #closed = false

  constructor({ deployments, deployed, pool, log }: PinnedExecutorsDependencies) {
    this.#deployments = deployments
    this.#deployed = deployed
    this.#pool = pool
    this.#log = log
  }

  /** Resolves when executors of what is current are being started. @param onChange called when that changes. */
  async open(onChange: () => void): Promise<void> {
    await retryUntilAvailable(() => this.#deployments.open())
    this.#unsubscribe = this.#deployments.onChange(() => {
      void this.#prepare()
      onChange()
    })
    await this.#prepare()
  }

  /** Stops reacting to deployments. */
  drain(): void {
    this.#closed = true
    this.#unsubscribe()
    this.#deployments.close()
  }

  /** Kills all processes and removes the files of deployments. */
  async close(): Promise<void> {
    this.#pool.close()
    await this.#preparing
    await this.#deployed.close().catch((error: unknown) => {
      this.#log.warn({ err: error }, 'removing the files of deployments failed; a later worker removes them')
    })
  }

  /**
   * The executor is the run's until `release`.
   *
   * @throws {DeploymentUnavailable} if this worker cannot get the deployment. {WorkflowNotLoaded} because of its code.
   * Another error if no process can be started.
   */
  async acquire(claim: Claim): Promise<Execution> {
    const deployment = await this.#acquireDeployment(claim)
    try {
      const executor = await this.#pool.acquire(claim.accountId, deployment, claim.workflowId)
      return { executor, deploymentId: deployment.id, workflows: deployment.workflows }
    } catch (error) {
      this.#deployed.release(deployment.id)
      const workflow = deployment.workflows.get(claim.workflowId)
      if (!(error instanceof LoadError) || !workflow) throw error
      throw new WorkflowNotLoaded(error.end, workflow.retry)
    }
  }

  /** The account of each idle process whose turn lasts. */
  inTurn(): string[] {
    return this.#pool.inTurn()
  }

  /** @param reusable false when code of the attempt may still run in the process. */
  release({ executor, deploymentId }: Execution, reusable: boolean): void {
    this.#pool.release(executor, reusable)
    this.#deployed.release(deploymentId)
  }

  /** A run from before there were deployments is executed by the current one. */
  async #acquireDeployment({ accountId, workflowId, deploymentId }: Claim): Promise<DeployedWorkflows> {
    const id = deploymentId ?? this.#deployments.current(accountId).deploymentOf(workflowId)
    if (id === null) throw new DeploymentUnavailable(`No deployment has the workflow ${workflowId} now.`)
    const deployment = await this.#deployed.acquire(id)
    if (deployment.workflows.get(workflowId)) return deployment
    this.#deployed.release(id)
    throw new DeploymentUnavailable(`It has no workflow ${workflowId}.`)
  }

  /** Loads the current deployment ahead of its first run. */
  #prepare(): Promise<void> {
    const prepare = async () => {
      const [current] = this.#deployments.currentIds
      if (current === this.#prepared || this.#closed) return
      try {
        this.#pool.prepare(current === undefined ? undefined : await this.#deployed.acquire(current))
        if (this.#prepared !== undefined) this.#deployed.release(this.#prepared)
        this.#prepared = current
      } catch (error) {
        this.#log.warn({ deploymentId: current, err: error }, 'deployment unavailable; its runs wait')
      }
    }
    this.#preparing = this.#preparing.then(prepare)
    return this.#preparing
  }
}
