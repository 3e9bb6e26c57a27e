/** The commands `workflows deploy`, `list`, `promote` and `rollback`. They work while the service runs. */
import { resolve } from 'node:path'
import type { Administration } from '../app.ts'
import { type Config, readConfig } from '../config/config.ts'
import { ConfigError } from '../config/setting-kinds.ts'
import { operator } from '../domain/audit-log/audit-log.ts'
import { buildSnapshot } from '../domain/deployments/build-snapshot.ts'
import { displayPath } from '../domain/deployments/bundle.ts'
import type { Deployment } from '../domain/deployments/deployments.sql.ts'
import { describeBreaking, describeChanges } from '../domain/deployments/evolution.ts'
import { promote, readPromotable } from '../domain/deployments/promotion.ts'
import type { Snapshot } from '../domain/deployments/snapshot.ts'
import { builderIdentity, type Identity } from '../domain/workflows/executor-identity.ts'
import { declaresValues } from '../domain/workflows/workflow.ts'
import { type AccountOptions, findAccountId, requireStore, withAdministration } from './accounts.ts'
import { announce, CommandError, print, table } from './output.ts'

export interface DeployOptions extends AccountOptions {
  /** Whether each workflow must first succeed with its first example. */
  try?: boolean
  allowBreaking?: boolean
}

/** @throws {CommandError} */
export function toDirectory(argument: string | undefined, { WORKFLOWS_DIR }: Config): string {
  const directory = argument === undefined ? WORKFLOWS_DIR : resolve(argument)
  if (directory !== undefined) return directory
  throw new CommandError('Name the directory to deploy, as in `workflows deploy DIR`, or set WORKFLOWS_DIR.')
}

export async function deployWorkflows(argument: string | undefined, options: DeployOptions): Promise<void> {
  const config = readConfig(process.env)
  const directory = toDirectory(argument, config)
  await requireStore(config)
  // Before the store is opened: what is invalid changes nothing.
  const identity = builderIdentity({ ...config, WORKFLOWS_DIR: directory })
  const snapshot = await announce(`Building ${displayPath(directory)}`, buildSnapshot(directory, { identity }))
  if (options.try) await requireSuccess(snapshot, directory, identity, options)
  await withAdministration(async (administration) => {
    const { accounts, deployments } = administration
    const accountId = await findScope(accounts, options)
    const { allowBreaking = false } = options
    const deployed = { accountId, by: operator, directory, allowBreaking }
    const { breaking, result } = await deployments.deployChecked(snapshot, deployed)
    const problems = describeBreaking(breaking).join('\n')
    if (!result) throw new CommandError(`${problems} Nothing was deployed.`)
    if (breaking.length > 0) process.stderr.write(`${problems}\n`)
    const { deployment, activated, previous, changes } = result
    const missing = await findMissing(administration, snapshot, deployment)
    warnOfMissing(missing)
    if (options.json) {
      const ids = { deploymentId: deployment.id, accountId, previousDeploymentId: previous?.id ?? null }
      return print(JSON.stringify({ ...ids, changed: activated, workflows: toListed(deployment), changes, missing }))
    }
    if (!activated) return print(`Nothing has changed: ${shortId(deployment)} is already deployed.`)
    const visibleTo = accountId === null ? 'all accounts' : `the account ${accountId}`
    print(`Deployed ${displayPath(directory)} for ${visibleTo}: ${shortId(deployment)}.`)
    for (const line of describeChanges(changes)) print(line)
  })
}

function toListed({ workflows }: Deployment) {
  return workflows.map(({ id, version, title }) => ({ id, version, title }))
}

interface Missing {
  workflowId: string
  detail: string
  /** Of a deployment for all accounts. */
  accountId?: string
}

/** Of a deployment for all accounts, it reports this many missing values of these accounts at most. */
const missingMax = 5
/** An external store of secrets that does not respond takes 5 s for each. */
const accountsMax = 20

/** What the account lacks of what the workflows declare. Nothing that goes wrong here fails the deployment. */
async function findMissing(
  { accounts, deployments, openDeclaredValues }: Administration,
  snapshot: Snapshot,
  { id, accountId }: Deployment,
): Promise<Missing[]> {
  if (!snapshot.workflows.some(declaresValues)) return []
  const workflows = await deployments.findWorkflows(id)
  if (!workflows) return []
  const declaredValues = await openDeclaredValues().catch((error: unknown) => {
    if (!(error instanceof ConfigError)) throw error
    process.stderr.write(`The secrets and settings that workflows declare were not checked: ${error.message}\n`)
  })
  if (!declaredValues) return []
  if (accountId !== null) return declaredValues.findMissing(accountId, workflows)
  const missing: Missing[] = []
  for (const account of (await accounts.list()).slice(0, accountsMax)) {
    const ofAccount = await declaredValues.findMissing(account.id, workflows)
    missing.push(...ofAccount.map((each) => ({ ...each, accountId: account.id })))
    if (missing.length >= missingMax) break
  }
  return missing.slice(0, missingMax)
}

/** To the standard error: the deployment was accepted. */
export function warnOfMissing(missing: readonly Missing[]): void {
  for (const { workflowId, detail, accountId } of missing) {
    const place = accountId === undefined ? '' : ` in the account ${accountId}`
    process.stderr.write(`Runs of ${workflowId} will wait${place}: ${detail}\n`)
  }
}

/** @throws {CommandError} that names each workflow that failed. */
export async function requireSuccess(
  snapshot: Snapshot,
  directory: string,
  identity: Identity,
  { json }: Pick<DeployOptions, 'json'>,
): Promise<void> {
  const { tryExamples } = await import('../worker/testing/try-examples.ts')
  const failures: string[] = []
  for await (const { workflow, failure } of tryExamples(snapshot, directory, identity)) {
    if (failure) failures.push(`The workflow ${workflow.id} failed with its first example: ${failure}`)
    else if (!json)
      print(
        failure === null
          ? `Tried ${workflow.id}.`
          : `${workflow.id} has no example, or declares secrets or settings: not tried.`,
      )
  }
  if (failures.length > 0) throw new CommandError([...failures, 'Nothing was deployed.'].join('\n'))
}

export async function listWorkflows(options: AccountOptions): Promise<void> {
  await withAdministration(async ({ accounts, deployments }) => {
    const accountId = (await findScope(accounts, options)) ?? undefined
    const current = await Promise.all(deployments.currentIds.map((id) => deployments.find(id)))
    const rows = current.flatMap((deployment) => (deployment ? toRows(deployment) : []))
    const visible = rows.filter(({ id, deploymentId }) =>
      accountId === undefined ? true : deployments.current(accountId).deploymentOf(id) === deploymentId,
    )
    if (options.json) return print(JSON.stringify(visible))
    if (visible.length === 0) return print('No workflows are deployed. Deploy a directory with `workflows deploy DIR`.')
    print(
      table(
        visible.map((row) => ({
          ...row,
          accountId: row.accountId ?? 'all',
          deploymentId: row.deploymentId.slice(0, 12),
        })),
      ),
    )
  })
}

export interface PromoteOptions extends AccountOptions {
  from: string
  to: string
  allowBreaking?: boolean
}

/** Serves in one environment what another one serves. */
export async function promoteWorkflows(options: PromoteOptions): Promise<void> {
  const { from, to, account, allowBreaking = false } = options
  if (from === to) throw new CommandError('--from and --to name the same environment.')
  await withAdministration(async (administration) => {
    const { accounts, deployments } = administration
    const find = (environment: string) => findAccountId(accounts, { ...(account && { account }), environment })
    const [sourceId, accountId] = [await find(from), await find(to)]
    const promotable = await readPromotable(deployments, sourceId)
    if (!promotable) {
      const advice = `deploy workflows there with \`workflows deploy DIR --environment ${from}\``
      throw new CommandError(`The environment "${from}" has no deployment: ${advice}. Nothing was promoted.`)
    }
    const promotion = { from, accountId, by: operator, allowBreaking }
    const { breaking, result } = await promote(deployments, promotable, promotion)
    const problems = describeBreaking(breaking).join('\n')
    if (!result) throw new CommandError(`${problems} Nothing was promoted.`)
    if (breaking.length > 0) process.stderr.write(`${problems}\n`)
    const { deployment, activated, previous, changes } = result
    const missing = await findMissing(administration, promotable.snapshot, deployment)
    warnOfMissing(missing)
    const { source, contentHash } = promotable
    if (options.json) {
      const ids = { deploymentId: deployment.id, accountId, previousDeploymentId: previous?.id ?? null }
      const sourceIds = { promotedDeploymentId: source.id, contentHash }
      return print(
        JSON.stringify({ ...ids, ...sourceIds, changed: activated, workflows: toListed(deployment), changes, missing }),
      )
    }
    if (!activated) return print(`Nothing has changed: ${to} already serves ${shortId(deployment)}.`)
    print(`Promoted ${shortId(source)} from ${from} to ${to}: ${shortId(deployment)}.`)
    for (const line of describeChanges(changes)) print(line)
  })
}

export async function rollbackWorkflows(options: AccountOptions): Promise<void> {
  await withAdministration(async ({ accounts, deployments }) => {
    const accountId = await findScope(accounts, options)
    const deployment = await deployments.rollback(accountId, operator)
    if (!deployment) {
      const owner = accountId === null ? 'The installation' : 'The account'
      throw new CommandError(
        `${owner} has no earlier deployment to return to: deploy one with \`workflows deploy DIR\`.`,
      )
    }
    if (options.json) return print(JSON.stringify({ deploymentId: deployment.id, accountId }))
    print(
      `Rolled back to ${shortId(deployment)}. Queued runs are executed by the deployment that they were queued under.`,
    )
    if (deployment.accountId !== accountId) print('It is the deployment for all accounts, which the account follows.')
    for (const { id, version } of deployment.workflows) print(`  ${id} ${version}`)
  })
}

/** `null` for the installation. */
async function findScope(accounts: Administration['accounts'], options: AccountOptions): Promise<string | null> {
  const isInstallation = options.account === undefined && options.environment === undefined
  return isInstallation ? null : findAccountId(accounts, options)
}

export function shortId({ id }: { id: string }): string {
  return id.slice(0, 12)
}

function toRows({ id: deploymentId, accountId, createdAt, workflows }: Deployment) {
  const deployed = { accountId, deploymentId, createdAt: new Date(createdAt).toISOString() }
  return workflows.map(({ id, version, title }) => ({ id, version, title, ...deployed }))
}
