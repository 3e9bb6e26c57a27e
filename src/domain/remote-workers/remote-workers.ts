/** Workers outside of the service: they register, claim runs of one account, and renew their leases. */
import type { Encryption } from '../../storage/encryption.ts'
import {
  countLeasedRuns,
  findLeasedOfDeployment,
  findLeasedRun,
  findLeases,
  readColumns,
} from '../../storage/runs/run-lookups.ts'
import { type Store, statement, type Topic, type Transaction } from '../../storage/store.ts'
import type { WorkersTable } from '../../storage/tables/tables.ts'
import { declaredAad } from '../account-values/account-values.sql.ts'
import type { DeclaredValuesReader } from '../account-values/declared-values.ts'
import { type ApiKeyUse, recordAudit, toActor } from '../audit-log/audit-log.ts'
import type { Deployments } from '../deployments/deployments.ts'
import { hasSameMajor } from '../deployments/evolution.ts'
import { limitToWorkflows, packBundle } from '../deployments/snapshot.ts'
import { FileMissing, type FileOfRun } from '../files/file-of-run.ts'
import type { Files } from '../files/files.ts'
import { type Claim, type Lease, toClaim } from '../queue/attempts.ts'
import { toFailure } from '../queue/outcomes.ts'
import type { RunQueue } from '../queue/run-queue.ts'
import { pausedMillisecondsMax } from '../run-api/live-views.ts'
import { secretsAad, stepAad } from '../runs/run.ts'
import { noRetry } from '../runs/run-state.ts'
import { readStepResult } from '../runs/step-results.ts'
import type { Sized } from '../sized.ts'
import { insertSecrets } from '../workflows/secrets.ts'
import { type DeclaredValues, declaresValues, noValues, type Workflow } from '../workflows/workflow.ts'
import type { FileVariable, Workflows } from '../workflows/workflows.ts'
import { type RegisteredWorkflow, type Registration, RemoteWorkflows, type SentWorkflow } from './remote-workflows.ts'

/** An API key, and the account that it belongs to. A worker belongs to the key that has registered it. */
export interface WorkerKey {
  accountId: string
  apiKeyId: string
  /** The workflows to which the key is restricted, if it is. */
  workflowIds?: readonly string[]
}

export interface NewWorker {
  name: string
  language: string
  version?: string | undefined
  host?: string | undefined
  capacity: number
  /** Whether it also executes deployed workflows. */
  deployed: boolean
  /** Whether deployed workflows may use a browser. */
  browser: boolean
  workflows: readonly SentWorkflow[]
}

/** Times are milliseconds since 1970. */
export interface RemoteWorker {
  id: string
  /** `null` for a worker of the service, as the other members that are. */
  name: string | null
  language: string | null
  version: string | null
  host: string | null
  slots: number
  startedAt: number
  seenAt: number
  deployed: boolean
  browser: boolean
  workflows: RegisteredWorkflow[]
}

/** A lease by run and fencing number. */
export type LeaseName = Pick<Lease, 'runId' | 'attempt'>

/** A claimed run as its worker gets it: decrypted. */
export interface ClaimedRun {
  claim: Claim
  version: string
  /** Whether the worker has the workflow itself. */
  isOwn: boolean
  variables: Record<string, unknown>
  /** In the variables. */
  files: readonly FileOfRun[]
  /** Of the account. */
  declared: DeclaredValues
  /** JSON Pointers. */
  secrets: string[]
  /** `maskedSecrets`: those of the account that the value contains. */
  steps: { name: string; value: unknown; maskedSecrets?: string[] }[]
  timeLimitSeconds: number
  leaseExpiresAt: number
}

export interface RenewedLeases {
  extended: LeaseName[]
  cancelled: LeaseName[]
  lost: LeaseName[]
  leaseExpiresAt: number
}

interface Dependencies {
  store: Store
  queue: RunQueue
  deployments: Deployments
  encryption: Encryption
  declaredValues: DeclaredValuesReader
  files: Pick<Files, 'findOfRun'>
  leaseSeconds: number
  now: () => number
}

/** How long an attempt may go on after its time limit before the service ends it, without time that a person has paused it. */
const overdueMilliseconds = 60_000

export class RemoteWorkers {
  readonly #dependencies: Dependencies
  readonly #workflows: RemoteWorkflows
  /** What this process last wrote of each worker. */
  readonly #seen = new Map<string, { at: number; aliveUntil: number }>()
  readonly #stopping = new AbortController()

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies
    this.#workflows = new RemoteWorkflows(dependencies.store, dependencies.deployments, dependencies.now)
  }

  get leaseSeconds(): number {
    return this.#dependencies.leaseSeconds
  }

  /** Registers the worker, or renews its registration. The key must be for all of its workflows (`isPermitted`). */
  async register(
    key: WorkerKey,
    id: string,
    worker: NewWorker,
    signal: AbortSignal,
  ): Promise<{ kind: 'worker'; worker: RemoteWorker } | Exclude<Registration, { kind: 'registered' }>> {
    if (!(await this.#release(key, id))) return { kind: 'conflict', detail: othersWorker }
    const registered = await this.#workflows.register(key, worker.workflows, signal)
    if (registered.kind !== 'registered') return registered
    const { store, leaseSeconds, now } = this.#dependencies
    const at = now()
    const { name, language, version = null, host = '', capacity: slots } = worker
    const workflows = JSON.stringify(registered.workflows)
    const executes = { executes_deployed: toFlag(worker.deployed), has_browser: toFlag(worker.browser), workflows }
    const changing = { name, language, version, host, slots, ...executes, api_key_id: key.apiKeyId, seen_at: at }
    const row = { ...changing, account_id: key.accountId, started_at: at, alive_until: at + leaseSeconds * 1000 }
    await store.write(({ query }) =>
      query
        .insertInto('workers')
        .values({ id: rowId(key, id), ...row })
        .onConflict((conflict) =>
          conflict
            .column('id')
            .doUpdateSet({ ...changing, alive_until: row.alive_until })
            .where('workers.api_key_id', '=', key.apiKeyId),
        )
        .execute(),
    )
    const stored = await this.find(key, id)
    // Another key has registered it at the same time.
    return stored ? { kind: 'worker', worker: stored } : { kind: 'conflict', detail: othersWorker }
  }

  /** Removes a worker of this id that another key has registered and that has ended; false if it has not ended. */
  async #release(key: WorkerKey, id: string): Promise<boolean> {
    const { store, now } = this.#dependencies
    const workers = store.read.query.selectFrom('workers').select(['api_key_id', 'alive_until'])
    const row = await workers.where('id', '=', rowId(key, id)).executeTakeFirst()
    if (!row || row.api_key_id === key.apiKeyId) return true
    if (row.api_key_id === null || row.alive_until > now()) return false
    await this.delete({ accountId: key.accountId, apiKeyId: row.api_key_id }, id, key)
    return true
  }

  /** A worker of the key. */
  async find(key: WorkerKey, id: string): Promise<RemoteWorker | undefined> {
    const row = await findRow(this.#dependencies.store.read, key, id)
    return row && toWorker(row)
  }

  /**
   * The code of a deployment, or only of the workflows to which the key is restricted, while a worker of the key executes one of its
   * runs; `undefined` for any other one.
   */
  async findBundle(key: WorkerKey, deploymentId: string): Promise<Sized<Uint8Array> | undefined> {
    const { accountId, apiKeyId } = key
    const { store, deployments } = this.#dependencies
    const [run] = await store.read.all(findLeasedOfDeployment, [accountId, deploymentId, apiKeyId])
    const deployment = run && (await deployments.find(deploymentId))
    if (!deployment || deployment.isRemote) return undefined
    const { workflows, sizeBytes } = deployment
    const read = async () => {
      const content = await deployments.readFiles(deploymentId)
      if (!content) throw new Error('The deployment was deleted.')
      const snapshot = { workflows, files: content.files, externals: content.externals }
      return packBundle(key.workflowIds ? limitToWorkflows(snapshot, (id) => isPermitted(key, id)) : snapshot)
    }
    return { sizeBytes, forget: () => {}, read }
  }

  /** The live workers of the service and of the account, in the order in which they started. */
  async list(accountId: string): Promise<RemoteWorker[]> {
    const workers = (await this.#findRows(accountId)).map(toWorker)
    return workers.sort((a, b) => a.startedAt - b.startedAt || (a.id < b.id ? -1 : 1))
  }

  /** The same, with how many runs of the account each executes. */
  async listWithRuns(accountId: string): Promise<(RemoteWorker & { runs: number })[]> {
    const { read } = this.#dependencies.store
    const counts = new Map((await read.all(countLeasedRuns, [accountId])).map((row) => [row.worker_id, row.count]))
    return (await this.#findRows(accountId)).map((row) => ({ ...toWorker(row), runs: Number(counts.get(row.id) ?? 0) }))
  }

  async #findRows(accountId: string): Promise<WorkersTable[]> {
    const { store, now } = this.#dependencies
    return store.read.query
      .selectFrom('workers')
      .selectAll()
      .where('alive_until', '>', now())
      .where((where) => where.or([where('account_id', 'is', null), where('account_id', '=', accountId)]))
      .orderBy('started_at')
      .orderBy('id')
      .limit(listedMax)
      .execute()
  }

  /** Removes the worker, and returns its runs to the queue. False if there is none. @param by for the audit log. */
  async delete(key: WorkerKey, id: string, by: ApiKeyUse = key): Promise<boolean> {
    const { store, queue } = this.#dependencies
    const worker = await this.find(key, id)
    if (!worker) return false
    const workerId = rowId(key, id)
    for (const lease of await findLeases(store.read, workerId))
      await queue.complete(lease, { kind: 'workerStopped' }, noRetry)
    await store.write(async (tx) => {
      await tx.query.deleteFrom('workers').where('id', '=', workerId).execute()
      const subject = { id: worker.id, name: worker.name ?? worker.id }
      const actor = await toActor(tx, { apiKeyId: by.apiKeyId })
      await recordAudit(tx, key.accountId, { action: 'worker.removed', by: actor, subject })
    })
    this.#seen.delete(workerId)
    return true
  }

  /**
   * Claims runs, or waits for one. Leases that the worker does not know of are returned first, since it has not got an
   * earlier response. Resolves with `undefined` if there is no such worker.
   */
  async claim(
    key: WorkerKey,
    id: string,
    request: { countMax: number; waitSeconds: number; executing: readonly LeaseName[] },
    signal: AbortSignal,
  ): Promise<ClaimedRun[] | undefined> {
    const worker = await this.find(key, id)
    if (!worker) return undefined
    const { store } = this.#dependencies
    const workerId = rowId(key, id)
    await this.#touch(workerId, request.waitSeconds)
    const known = new Set(request.executing.map(nameOf))
    const unknown = (await findLeases(store.read, workerId)).filter((lease) => !known.has(nameOf(lease)))
    if (unknown.length > 0) {
      const claims = await Promise.all(unknown.slice(0, request.countMax).map((lease) => this.#readClaim(lease)))
      const still = claims.filter((claim) => claim !== undefined)
      if (still.length > 0) return this.#toClaimed(worker, still, true)
    }
    const end = performance.now() + request.waitSeconds * 1000
    const ending = AbortSignal.any([signal, this.#stopping.signal])
    const wakeUp = new WakeUp(store, ['queue', 'cancellations'], ending)
    try {
      for (;;) {
        wakeUp.reset()
        const claimed = await this.#claimNow(key, worker, workerId, request.countMax)
        if (claimed.length > 0 || ending.aborted || !(await wakeUp.within(end - performance.now()))) return claimed
        // The worker is to stop a run: its next renewal says which.
        if ((await this.#dependencies.queue.cancelRequested(workerId)).length > 0) return []
      }
    } finally {
      wakeUp.close()
    }
  }

  /** The claim of a lease, as its worker should have got it. */
  async #readClaim(lease: Lease): Promise<Claim | undefined> {
    const { read } = this.#dependencies.store
    const run = await findLeasedRun(read, lease)
    return run && toClaim({ ...run, steps: await read.all(read.statements.findSteps, [run.id]) }, lease.workerId)
  }

  /** Ends claims that wait for a run, since the process stops. */
  stopWaiting(): void {
    this.#stopping.abort()
  }

  async #claimNow(key: WorkerKey, worker: RemoteWorker, workerId: string, countMax: number): Promise<ClaimedRun[]> {
    const { queue, deployments, leaseSeconds } = this.#dependencies
    const ids = new Set(worker.workflows.map((each) => each.id))
    const ofWorker = deployments.claimableRemotely(key.accountId, ids, worker)
    const otherVersions = new Map(
      worker.workflows.map(({ id, version }) => {
        const registered = deployments.remoteVersions(key.accountId, id)
        return [id, registered.filter((each) => !hasSameMajor(each, version))]
      }),
    )
    const find: typeof ofWorker.find = (accountId, workflowId) => {
      const workflow = isPermitted(key, workflowId) ? ofWorker.find(accountId, workflowId) : undefined
      return workflow && { ...workflow, otherVersions: otherVersions.get(workflowId) ?? [] }
    }
    return this.#toClaimed(worker, await queue.claim(workerId, { ...ofWorker, find }, countMax, leaseSeconds))
  }

  /**
   * Returns runs to the queue that were queued for a deployment with another major version, which the claim does not know,
   * or whose account lacks what their workflow declares.
   *
   * @param isRepeated whether the worker may have got the claims before.
   */
  async #toClaimed(worker: RemoteWorker, claims: readonly Claim[], isRepeated = false): Promise<ClaimedRun[]> {
    const { store, queue, deployments, leaseSeconds, now } = this.#dependencies
    const ids = claims.map(({ runId }) => runId)
    const rows = await readColumns(store.read, ['id', 'workflow_version', 'lease_expires_at'], ids)
    const claimed: ClaimedRun[] = []
    for (const given of claims) {
      const steps = given.hasWaits ? await queue.takeEnded(given) : given.steps
      if (!steps) continue
      const claim = { ...given, steps }
      const { workflow_version: version = '', lease_expires_at } = rows.find(({ id }) => id === claim.runId) ?? {}
      const registered = executed(worker, claim.workflowId, claim.deploymentId)
      const workflows = registered && (await deployments.findWorkflows(registered.deploymentId))
      const workflow = workflows?.get(claim.workflowId)
      if (!workflows || !workflow || !hasSameMajor(workflow.version, version)) {
        await queue.handBack(claim, `No worker executes the version ${version} of ${claim.workflowId}.`)
        continue
      }
      const decrypted = this.#decrypt(claim, workflow, version, lease_expires_at ?? now() + leaseSeconds * 1000)
      const earlier = [...new Set(decrypted.steps.flatMap(({ maskedSecrets = [] }) => maskedSecrets))]
      const isMasked = declaresValues(workflow) || earlier.length > 0 || workflow.waits !== undefined
      const masked = { earlier, definition: registered.deploymentId }
      const declared = isMasked ? await this.#declaredValues(claim, workflows, masked, isRepeated) : noValues
      if (!declared) continue
      const files = await this.#findFiles(claim, workflows.filesIn(claim.workflowId, decrypted.variables))
      if (!files) continue
      claimed.push({
        ...decrypted,
        ...{ declared, files, isOwn: worker.workflows.some(({ id }) => id === claim.workflowId) },
      })
    }
    return claimed
  }

  /** Fails the run if one of its files no longer exists. */
  async #findFiles(claim: Claim, variables: readonly FileVariable[]): Promise<FileOfRun[] | undefined> {
    if (variables.length === 0) return []
    const { files, queue } = this.#dependencies
    try {
      return await files.findOfRun(claim.runId, variables)
    } catch (error) {
      if (!(error instanceof FileMissing)) throw error
      await queue.complete(claim, toFailure('workflowFailed', { name: error.name, message: error.message }), noRetry)
      return undefined
    }
  }

  /**
   * What the attempt gets of its account, which is stored so that reports are masked by it. `undefined` if something is
   * missing: the run waits then.
   *
   * @param masked what else its reports are masked by.
   */
  async #declaredValues(
    claim: Claim,
    workflows: Workflows,
    masked: Pick<MaskedValues, 'earlier' | 'definition'>,
    isRepeated: boolean,
  ): Promise<DeclaredValues | undefined> {
    const { runId, attempt } = claim
    const { store, queue, encryption, declaredValues } = this.#dependencies
    const given = isRepeated ? await findDeclared(store.read, encryption, { runId, attempt }) : undefined
    if (given) return given
    const read = await declaredValues.read(claim, workflows)
    if (read.kind === 'missing') {
      await queue.waitForValue(claim, read.wait)
      return undefined
    }
    const json = JSON.stringify({ ...read.values, ...masked } satisfies MaskedValues)
    const keep = async (tx: Transaction) => {
      await tx.all(setDeclared, [runId, attempt, encryption.encrypt(json, declaredAad(runId))])
    }
    return (await queue.withLease(claim, keep)) ? read.values : undefined
  }

  async #definition({ id, deploymentId }: Executed): Promise<Workflow | undefined> {
    return (await this.#dependencies.deployments.findWorkflows(deploymentId))?.get(id)
  }

  #decrypt(
    claim: Claim,
    workflow: Workflow,
    version: string,
    leaseExpiresAt: number,
  ): Omit<ClaimedRun, 'isOwn' | 'declared' | 'files'> {
    const { encryption } = this.#dependencies
    const { runId, accountId, secrets, executedMilliseconds } = claim
    const values = secrets ? JSON.parse(encryption.decrypt(secrets, secretsAad(accountId, runId))) : {}
    const toStep = ({ name, value }: { name: string; value: Uint8Array }) => {
      const { json, secrets } = readStepResult(encryption.decrypt(value, stepAad(runId, name)))
      return { name, value: JSON.parse(json), ...(secrets.length > 0 && { maskedSecrets: [...secrets] }) }
    }
    return {
      ...{ claim, version, leaseExpiresAt, secrets: Object.keys(values) },
      variables: insertSecrets(claim.variables, values),
      steps: claim.steps.map(toStep),
      timeLimitSeconds: Math.max(0, workflow.timeLimitSeconds - executedMilliseconds / 1000),
    }
  }

  /** Extends the leases; `undefined` if there is no such worker. Ends attempts that go on long after their time limit. */
  async renew(key: WorkerKey, id: string, leases: readonly LeaseName[]): Promise<RenewedLeases | undefined> {
    const worker = await this.find(key, id)
    if (!worker) return undefined
    const { queue, leaseSeconds, now } = this.#dependencies
    const workerId = rowId(key, id)
    await this.#touch(workerId, 0)
    const own = leases.map((lease) => ({ ...lease, workerId }))
    const held = new Set((await queue.renew(workerId, own, leaseSeconds)).map(nameOf))
    const cancelled = new Set((await queue.cancelRequested(workerId)).map(nameOf))
    for (const lease of await this.#overdue(worker, own)) {
      await queue.complete(lease, { kind: 'timedOut' }, noRetry)
      held.delete(nameOf(lease))
    }
    const [extended, lost] = [(name: string) => held.has(name), (name: string) => !held.has(name)]
    const those = (isOne: (name: string) => boolean) => leases.filter((lease) => isOne(nameOf(lease)))
    return {
      extended: those((name) => extended(name) && !cancelled.has(name)),
      cancelled: those((name) => extended(name) && cancelled.has(name)),
      lost: those(lost),
      leaseExpiresAt: now() + leaseSeconds * 1000,
    }
  }

  async #overdue(worker: RemoteWorker, leases: readonly Lease[]): Promise<Lease[]> {
    const { store, now } = this.#dependencies
    const times = ['attempt_started_at', 'continues', 'executed_ms'] as const
    const columns = ['id', 'workflow_id', 'deployment_id', 'attempts', ...times] as const
    const rows = await readColumns(
      store.read,
      columns,
      leases.map(({ runId }) => runId),
    )
    const overdue: Lease[] = []
    for (const lease of leases) {
      const row = rows.find(({ id, attempts }) => id === lease.runId && attempts === lease.attempt)
      const registered = row && executed(worker, row.workflow_id, row.deployment_id)
      const workflow = registered && (await this.#definition(registered))
      if (!row || !workflow || row.attempt_started_at === null) continue
      const executedMilliseconds = now() - row.attempt_started_at + (row.continues === 1 ? row.executed_ms : 0)
      const pausedMax = workflow.usesBrowser ? pausedMillisecondsMax : 0
      if (executedMilliseconds > workflow.timeLimitSeconds * 1000 + overdueMilliseconds + pausedMax) overdue.push(lease)
    }
    return overdue
  }

  /** Writes that the worker is alive, also while its request waits; at most three times within its lease time. */
  async #touch(workerId: string, waitSeconds: number): Promise<void> {
    const { store, leaseSeconds, now } = this.#dependencies
    const at = now()
    const known = this.#seen.get(workerId)
    const [interval, aliveUntil] = [(leaseSeconds * 1000) / 3, at + (waitSeconds + leaseSeconds) * 1000]
    if (known && at - known.at < interval && aliveUntil - known.aliveUntil < interval) return
    const touch = ({ query }: Transaction) =>
      query.updateTable('workers').set({ seen_at: at, alive_until: aliveUntil }).where('id', '=', workerId).execute()
    await store.write(touch, { concurrent: true, durableLater: true })
    if (this.#seen.size > seenMax) this.#seen.clear()
    this.#seen.set(workerId, { at, aliveUntil })
  }
}

const setDeclared = statement<object, [runId: string, attempt: number, declared: Uint8Array]>(
  `INSERT INTO attempt_reports (run_id, attempt, position, length, declared) VALUES (?, ?, 0, 0, ?)
    ON CONFLICT (run_id) DO UPDATE SET attempt = excluded.attempt, position = 0, length = 0, artifact_writes = 0,
      declared = excluded.declared`,
)

/** The values that an attempt has received, and all secrets that its reports may contain. */
interface MaskedValues extends DeclaredValues {
  /** Secrets in results of earlier attempts. */
  earlier: readonly string[]
  /** The deployment whose schemas say which parts of answers are secret: the worker may register another version. */
  definition: string
}

const findDeclaredOf = statement<{ declared: Uint8Array | null }, [runId: string, attempt: number]>(
  'SELECT declared FROM attempt_reports WHERE run_id = ? AND attempt = ?',
)

/** The secrets and settings that an attempt has got; `undefined` if it has got none. */
export async function findDeclared(
  { all }: Transaction,
  encryption: Encryption,
  { runId, attempt }: LeaseName,
): Promise<MaskedValues | undefined> {
  const [row] = await all(findDeclaredOf, [runId, attempt])
  return row?.declared ? JSON.parse(encryption.decrypt(row.declared, declaredAad(runId))) : undefined
}

/** Whether the key is for the workflow. */
export function isPermitted({ workflowIds }: WorkerKey, workflowId: string): boolean {
  return workflowIds === undefined || workflowIds.includes(workflowId)
}

type Executed = Pick<RegisteredWorkflow, 'id' | 'deploymentId'>

/** The definition by which a worker executes a run: its own or, for a deployed workflow, that of the run. */
export function executed(worker: RemoteWorker, workflowId: string, deploymentId: string | null): Executed | undefined {
  const registered = worker.workflows.find(({ id }) => id === workflowId)
  return registered ?? (worker.deployed && deploymentId !== null ? { id: workflowId, deploymentId } : undefined)
}

function toFlag(value: boolean): 0 | 1 {
  return value ? 1 : 0
}

const listedMax = 1000
const seenMax = 10_000

/** Other accounts may use the same id. */
export function rowId({ accountId }: { accountId: string }, id: string): string {
  return `${accountId}/${id.toLowerCase()}`
}

function nameOf({ runId, attempt }: LeaseName): string {
  return `${runId.toLowerCase()}/${attempt}`
}

const othersWorker = 'Another API key has registered this worker. Use a new id.'

const findWorker = statement<WorkersTable, [id: string]>('SELECT * FROM workers WHERE id = ?')

async function findRow({ all }: Transaction, key: WorkerKey, id: string): Promise<WorkersTable | undefined> {
  const [row] = await all(findWorker, [rowId(key, id)])
  return row?.api_key_id === key.apiKeyId ? row : undefined
}

/** The worker that has the lease of a run, if it is one of the key. */
export async function findLeaseholder(
  { all }: Transaction,
  { accountId, apiKeyId }: WorkerKey,
  workerId: string | null,
): Promise<RemoteWorker | undefined> {
  if (!workerId?.startsWith(`${accountId}/`)) return undefined
  const [row] = await all(findWorker, [workerId])
  const found = row?.api_key_id === apiKeyId ? row : undefined
  return found && toWorker(found)
}

function toWorker(row: WorkersTable): RemoteWorker {
  const { id, name, language, version, host, slots, started_at, seen_at, workflows } = row
  return {
    ...{ id: id.slice(id.indexOf('/') + 1), name, language, version, slots },
    host: host === '' ? null : host,
    startedAt: started_at,
    seenAt: seen_at ?? started_at,
    deployed: row.executes_deployed === 1,
    browser: row.has_browser === 1,
    workflows: workflows === null ? [] : JSON.parse(workflows),
  }
}

/** Waits for the next notification of one of its topics. */
export class WakeUp {
  readonly #unsubscribe: () => void
  readonly #signal: AbortSignal
  #isAwake = false
  #resolve: ((isAwake: boolean) => void) | undefined

  constructor(store: Pick<Store, 'listen'>, topics: readonly Topic[], signal: AbortSignal) {
    this.#signal = signal
    const unsubscribe = topics.map((topic) => store.listen(topic, () => this.#wake(true)))
    this.#unsubscribe = () => {
      for (const each of unsubscribe) each()
    }
    signal.addEventListener('abort', this.#abort)
  }

  readonly #abort = () => this.#wake(false)

  #wake(isAwake: boolean): void {
    this.#isAwake = isAwake
    this.#resolve?.(isAwake)
  }

  reset(): void {
    this.#isAwake = false
  }

  /** Resolves with whether there was a notification since the last reset. */
  async within(milliseconds: number): Promise<boolean> {
    if (this.#isAwake) return true
    if (milliseconds <= 0 || this.#signal.aborted) return false
    let timer: NodeJS.Timeout | undefined
    const isAwake = await new Promise<boolean>((resolve) => {
      this.#resolve = resolve
      timer = setTimeout(() => resolve(false), milliseconds)
    })
    clearTimeout(timer)
    this.#resolve = undefined
    return isAwake
  }

  close(): void {
    this.#unsubscribe()
    this.#signal.removeEventListener('abort', this.#abort)
  }
}
