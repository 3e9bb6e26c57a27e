/**
 * Finds the attempt that a worker outside of the service reports of, and what masks the secrets in its reports. The
 * attempt's number is the fencing token.
 */
import type { Encryption } from '../../storage/encryption.ts'
import { type Store, statement } from '../../storage/store.ts'
import type { RunsTable } from '../../storage/tables/run-tables.ts'
import type { ContextVersions } from '../browser-contexts/context-versions.ts'
import { secretCookieValues } from '../browser-contexts/storage-state.ts'
import type { Deployments } from '../deployments/deployments.ts'
import type { Lease } from '../queue/attempts.ts'
import type { Redact } from '../queue/outcomes.ts'
import { findRun } from '../queue/runs.sql.ts'
import { attemptsOf, secretsAad, stepAad } from '../runs/run.ts'
import { readStepResult } from '../runs/step-results.ts'
import { createRedactor } from '../workflows/redactor.ts'
import type { Secrets } from '../workflows/secrets.ts'
import type { Workflow } from '../workflows/workflow.ts'
import type { Workflows } from '../workflows/workflows.ts'
import {
  executed,
  findDeclared,
  findLeaseholder,
  type LeaseName,
  type RemoteWorker,
  type WorkerKey,
} from './remote-workers.ts'

/** The account has no such run, or no worker of the key has the lease. */
export type NotLeased = { kind: 'noSuchRun' } | { kind: 'leaseLost' }

/** An attempt whose lease the caller's worker had when the report arrived. */
export interface Leased {
  lease: Lease & { number: number; parentRunId: string | null }
  row: RunsTable
  /** Secrets of the account that the attempt has got. */
  accountSecrets: readonly string[]
  /** Masks the secrets of the run. */
  redactSecrets: Redact
  /** Also masks the cookies of its browser context, which an output may contain. */
  redact: Redact
  /** Masks the cookies of a further state too. */
  redactWith(storageState: string): Redact
  /** The definition that the worker has registered. */
  workflows: Workflows
  workflow: Workflow
}

interface Dependencies {
  store: Store
  deployments: Deployments
  encryption: Encryption
  contextVersions: Pick<ContextVersions, 'findCurrent' | 'read'>
}

interface CookieRedactor {
  cookies: string[]
  redact: Redact
}

/** Attempts whose redactors stay in memory. */
const redactorsMax = 50

export class LeasedAttempts {
  readonly #dependencies: Dependencies
  /** By attempt, the version of its browser context, and the number of answers with secrets. */
  readonly #redactors = new Map<string, CookieRedactor>()

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
  }

  /** The attempt, with what its reports are checked by and masked with. */
  async find(key: WorkerKey, name: LeaseName): Promise<Leased | NotLeased> {
    const found = await this.findLease(key, name)
    if ('kind' in found) return found
    const { row, worker } = found
    const { encryption, deployments } = this.#dependencies
    const registered = executed(worker, row.workflow_id, row.deployment_id)
    const workflows = registered && (await deployments.findWorkflows(registered.deploymentId))
    const workflow = workflows?.get(row.workflow_id)
    // It has registered other workflows since the claim.
    if (!workflows || !workflow) return { kind: 'leaseLost' }
    const { id, account_id, secrets, worker_id, parent_run_id: parentRunId } = row
    const values = secrets ? JSON.parse(encryption.decrypt(secrets, secretsAad(account_id, id))) : {}
    const { attempt } = name
    const lease = { runId: id, attempt, workerId: worker_id as string, number: attemptsOf(row), parentRunId }
    // By what the claim has handed out: the worker may have registered a version that declares other secrets since.
    const declared = await findDeclared(this.#dependencies.store.read, encryption, lease)
    const claimed = declared && (await deployments.findWorkflows(declared.definition))
    const answers = row.has_waits === 1 ? await this.#secretsOfAnswers(row, claimed ?? workflows) : []
    const accountSecrets = declared ? [...Object.values(declared.secrets), ...declared.earlier] : []
    const secretValues = { ...values, answers, declared: accountSecrets }
    const redactSecrets = createRedactor(secretValues)
    const own = await this.#maskCookies(row, answers.length, secretValues)
    const redactWith = (state: string) => {
      return createRedactor({ ...secretValues, cookies: [...(own?.cookies ?? []), ...secretCookieValues(state)] })
    }
    const redact = own?.redact ?? redactSecrets
    return { lease, row, accountSecrets, redactSecrets, redact, redactWith, workflows, workflow }
  }

  async findLease(
    key: WorkerKey,
    { runId, attempt }: LeaseName,
  ): Promise<{ row: RunsTable; worker: RemoteWorker } | NotLeased> {
    const { store } = this.#dependencies
    const row = await findRun(store.read, key.accountId, runId)
    if (!row) return { kind: 'noSuchRun' }
    const worker = await findLeaseholder(store.read, key, row.worker_id)
    const isLeased = worker && row.status === 'running' && row.attempts === attempt
    return isLeased ? { row, worker } : { kind: 'leaseLost' }
  }

  /**
   * Masks the cookies of the run's browser context, if it has one. A context may have 35,000 cookies, and an attempt sends
   * many reports: its redactor is made once.
   */
  async #maskCookies(row: RunsTable, answers: number, secrets: Secrets): Promise<CookieRedactor | undefined> {
    const { contextVersions } = this.#dependencies
    const { id, attempts, attempt_started_at, account_id, browser_context_id } = row
    const version =
      browser_context_id === null ? undefined : await contextVersions.findCurrent(account_id, browser_context_id)
    if (browser_context_id === null || !version) return undefined
    const key = `${id}/${attempts}/${attempt_started_at}/${version.id}/${answers}`
    let redactor = this.#redactors.get(key)
    if (!redactor) {
      // No browser has started with a state that cannot be decrypted.
      const state = await contextVersions.read(account_id, browser_context_id).catch(() => undefined)
      const cookies = state === undefined ? [] : secretCookieValues(state)
      redactor = { cookies, redact: createRedactor({ ...secrets, cookies }) }
    }
    this.#redactors.delete(key)
    this.#redactors.set(key, redactor)
    const [oldest] = this.#redactors.keys()
    if (this.#redactors.size > redactorsMax && oldest !== undefined) this.#redactors.delete(oldest)
    return redactor
  }

  /** The secrets in answers that the run has got. */
  async #secretsOfAnswers(
    { id: runId, workflow_id: id }: RunsTable,
    workflows: Pick<Workflows, 'get' | 'secretsOfOutcome'>,
  ): Promise<unknown[]> {
    const { store, encryption } = this.#dependencies
    const found = await Promise.all(
      Object.keys(workflows.get(id)?.waits ?? {}).map(async (name) => ({
        name,
        rows: await store.read.all(findStep, [runId, name]),
      })),
    )
    return found.flatMap(({ name, rows }) =>
      rows.flatMap(({ value }) => {
        return workflows.secretsOfOutcome(
          id,
          name,
          readStepResult(encryption.decrypt(value, stepAad(runId, name))).json,
        )
      }),
    )
  }
}

export const findStep = statement<{ value: Uint8Array }, [runId: string, name: string]>(
  'SELECT value FROM run_steps WHERE run_id = ? AND name = ?',
)
