/**
 * The workflows of workers outside of the service. Each version is a deployment without files: it validates the variables
 * of new runs, and the workers that have registered it execute them.
 */
import { hash } from 'node:crypto'
import type { ProblemMember } from '../../contract/problem.ts'
import type { Store, Transaction } from '../../storage/store.ts'
import { recordAudit, toActor } from '../audit-log/audit-log.ts'
import { checkDefinitions } from '../deployments/build-snapshot.ts'
import { findRemoteWorkflows, insertDeployment, type RemoteWorkflow } from '../deployments/deployments.sql.ts'
import type { Deployments } from '../deployments/deployments.ts'
import { compareVersions, describeBreaking, findBreakingVersions } from '../deployments/evolution.ts'
import { type DeployedWorkflow, packContent } from '../deployments/snapshot.ts'
import { FairRunner, TooMuchWork } from '../fair-runner.ts'
import { parseWorkflow, type Workflow, WorkflowError } from '../workflows/workflow.ts'
import { Workflows } from '../workflows/workflows.ts'

/** A definition as a worker sends it: the options of `defineWorkflow` that its workflows may have. */
export type SentWorkflow = { id: string; version: string } & Readonly<Record<string, unknown>>

export interface RegisteredWorkflow {
  id: string
  version: string
  deploymentId: string
}

export type Registration =
  | { kind: 'registered'; workflows: RegisteredWorkflow[] }
  | { kind: 'invalid'; errors: ProblemMember[] }
  | { kind: 'conflict'; detail: string }
  /** Too many registrations of the account are being checked. */
  | { kind: 'busy' }

interface Registrant {
  accountId: string
  apiKeyId: string
}

interface Definition extends RegisteredWorkflow {
  workflow: Workflow
}

/** Versions that an account may have registered. */
const versionsMax = 1000

export class RemoteWorkflows {
  readonly #store: Store
  readonly #deployments: Deployments
  readonly #now: () => number

  constructor(store: Store, deployments: Deployments, now: () => number) {
    this.#store = store
    this.#deployments = deployments
    this.#now = now
  }

  /** Checks the workflows as those of a deployment are checked, and stores the versions that are new. */
  async register(by: Registrant, sent: readonly SentWorkflow[], signal: AbortSignal): Promise<Registration> {
    const { accountId } = by
    const parsed = parse(sent, accountId)
    if ('errors' in parsed) return { kind: 'invalid', ...parsed }
    const known = await findRemoteWorkflows(this.#store.read, accountId)
    const conflict = this.#conflict(accountId, parsed.definitions, known)
    if (conflict) return { kind: 'conflict', detail: conflict }
    const versions = new Set(known.map(({ deploymentId }) => deploymentId))
    const fresh = parsed.definitions.filter(({ deploymentId }) => !versions.has(deploymentId))
    if (known.length + fresh.length > versionsMax) {
      const detail = `This account has ${known.length} versions of workflows of workers, and may have ${versionsMax}.`
      return { kind: 'conflict', detail }
    }
    const refused = await this.#add(by, fresh, sent, signal)
    if (refused) return refused
    await this.#touch(accountId, parsed.definitions)
    return { kind: 'registered', workflows: parsed.definitions.map(({ workflow: _, ...registered }) => registered) }
  }

  #conflict(accountId: string, definitions: readonly Definition[], known: readonly RemoteWorkflow[]) {
    for (const { id, version, deploymentId } of definitions) {
      const other = known.find((each) => each.workflowId === id && each.version === version)
      if (other && other.deploymentId !== deploymentId) return differs(id, version, other.deploymentId, deploymentId)
      if (this.#deployments.current(accountId).get(id) && !this.#deployments.isRemote(accountId, id))
        return `The workflow "${id}" is deployed in this account, and workers of the service execute it. Use another id.`
    }
    return undefined
  }

  /** Stores new versions; returns why they are refused. */
  async #add(by: Registrant, fresh: readonly Definition[], sent: readonly SentWorkflow[], signal: AbortSignal) {
    if (fresh.length === 0) return undefined
    const { accountId } = by
    const checked = await check(accountId, fresh, sent, signal)
    if (checked === 'busy') return { kind: 'busy' } as const
    if ('errors' in checked) return { kind: 'invalid', ...checked } as const
    const breaking = await this.#findBreaking(accountId, checked.workflows)
    if (breaking.length > 0) return { kind: 'conflict', detail: breaking.join(' ') } as const
    const files = await packContent({ files: [], externals: [] })
    const at = this.#now()
    const conflict = await this.#store.write(async (tx) => {
      const registered = await findRemoteWorkflows(tx, accountId)
      const added: Definition[] = []
      for (const each of fresh) {
        const { id, version, deploymentId } = each
        // Another process may have registered it in the meantime.
        const other = registered.find((known) => known.workflowId === id && known.version === version)
        if (other && other.deploymentId !== deploymentId) return differs(id, version, other.deploymentId, deploymentId)
        if (other) continue
        const workflows = checked.workflows.filter((workflow) => workflow.id === id)
        const deployment = { id: deploymentId, accountId, createdAt: at, workflows, sizeBytes: 0, isRemote: true }
        await insertDeployment(tx, deployment, files)
        await insert(tx, { accountId, workflowId: id, version, deploymentId }, at)
        added.push(each)
      }
      const [first] = added
      if (!first) return undefined
      const details = { workflows: added.length, for: 'this account' }
      const subject = { id: first.deploymentId, name: listNames(added) }
      await recordAudit(tx, accountId, {
        action: 'workflows.deployed',
        by: await toActor(tx, by),
        subject,
        details,
        at,
      })
      return undefined
    })
    if (conflict) return { kind: 'conflict', detail: conflict } as const
    await this.#deployments.changed()
    return undefined
  }

  /** Lines about the workflows that become current and break callers of the version before. */
  async #findBreaking(accountId: string, fresh: readonly Workflow[]): Promise<string[]> {
    const current = this.#deployments.current(accountId)
    const replaced = fresh.flatMap((after) => {
      const before = current.get(after.id)
      return before && compareVersions(after.version, before.version) > 0 ? [{ before, after }] : []
    })
    const [before, after] = await Promise.all(
      [replaced.map((each) => each.before), replaced.map((each) => each.after)].map((workflows) =>
        new Workflows(workflows).compileLarge(accountId),
      ),
    )
    if (!before || !after) return []
    const breaking = await findBreakingVersions(this.#store.read, before, after, accountId, this.#now())
    // A worker's key must not show the names of other keys.
    return describeBreaking(
      breaking.map((each) => ({ ...each, callers: each.callers.map(({ calls }) => ({ name: null, calls })) })),
    )
  }

  async #touch(accountId: string, definitions: readonly Definition[]): Promise<void> {
    const ids = definitions.map(({ deploymentId }) => deploymentId)
    // A worker that executes deployed workflows may have none itself.
    if (ids.length === 0) return
    await this.#store.write((tx) =>
      tx.query
        .updateTable('remote_workflows')
        .set({ seen_at: this.#now() })
        .where('account_id', '=', accountId)
        .where('deployment_id', 'in', ids)
        .execute(),
    )
  }
}

/** Further workflows are counted: an account may register 200 at once. */
const namesMax = 5

function listNames(added: readonly Definition[]): string {
  const names = added.slice(0, namesMax).map(({ id, version }) => `${id} ${version}`)
  return [...names, ...(added.length > namesMax ? [`${added.length - namesMax} more`] : [])].join(', ')
}

function differs(id: string, version: string, stored: string, sent: string): string {
  return `The version ${version} of the workflow "${id}" is registered with other schemas or options (${short(stored)}, and not ${short(sent)}). Raise the version.`
}

function short(deploymentId: string): string {
  return deploymentId.slice(0, 12)
}

function insert(tx: Transaction, { accountId, workflowId, version, deploymentId }: RemoteWorkflow, at: number) {
  const row = { account_id: accountId, workflow_id: workflowId, version, deployment_id: deploymentId, seen_at: at }
  return tx.query.insertInto('remote_workflows').values(row).execute()
}

function parse(
  sent: readonly SentWorkflow[],
  accountId: string,
): { errors: ProblemMember[] } | { definitions: Definition[] } {
  const errors: ProblemMember[] = []
  const definitions: Definition[] = []
  for (const [index, definition] of sent.entries()) {
    const { id, version } = definition
    const place = `/workflows/${index}`
    if (definitions.some((other) => other.id === id)) errors.push({ pointer: `${place}/id`, detail: 'is there twice' })
    try {
      const workflow = parseWorkflow(place, { title: id, output: {}, ...definition, run: () => undefined })
      const deploymentId = hash('sha256', JSON.stringify(['remote', accountId, workflow]))
      definitions.push({ id, version, deploymentId, workflow })
    } catch (error) {
      if (!(error instanceof WorkflowError)) throw error
      errors.push({ pointer: place, detail: error.message.replace(`${place} is not a valid workflow: `, '') })
    }
  }
  return errors.length > 0 ? { errors } : { definitions }
}

/** Checked definitions by their content: every worker of a team sends the same ones, in every account. */
const checkedDefinitions = new Map<string, DeployedWorkflow>()
const checkedMax = 200

function contentOf(workflow: Workflow): string {
  return hash('sha256', JSON.stringify(workflow))
}

function findChecked(fresh: readonly Definition[]): DeployedWorkflow[] | undefined {
  const known = fresh.map(({ workflow }) => checkedDefinitions.get(contentOf(workflow)))
  return known.every((each) => each !== undefined) ? known : undefined
}

/** Each process takes up to 140 MB and about a second. */
const checks = new FairRunner({ concurrency: 2, perAccountMax: 40 })

/** In a separate process: the schemas are a caller's, and compiling one may take long. */
async function check(
  accountId: string,
  fresh: readonly Definition[],
  sent: readonly SentWorkflow[],
  signal: AbortSignal,
): Promise<{ errors: ProblemMember[] } | { workflows: DeployedWorkflow[] } | 'busy'> {
  const places = fresh.map(({ id }) => `/workflows/${sent.findIndex((each) => each.id === id)}`)
  const known = findChecked(fresh)
  if (known) return { workflows: known }
  try {
    const named = fresh.map(({ workflow }, index) => ({ file: places[index] as string, workflow }))
    const workflows = await checks.run(accountId, async () => findChecked(fresh) ?? checkDefinitions(named), signal)
    if (checkedDefinitions.size + workflows.length > checkedMax) checkedDefinitions.clear()
    for (const { workflow } of fresh) {
      const checked = workflows.find(({ id }) => id === workflow.id)
      if (checked) checkedDefinitions.set(contentOf(workflow), checked)
    }
    return { workflows }
  } catch (error) {
    if (error instanceof TooMuchWork) return 'busy'
    if (!(error instanceof WorkflowError)) throw error
    const place = places.find((each) => error.message.startsWith(`${each}: `))
    const detail = place === undefined ? error.message : error.message.slice(place.length + 2)
    return { errors: [{ pointer: place ?? '/workflows', detail }] }
  }
}
