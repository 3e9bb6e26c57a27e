/** The Execution API's operations on deployments. */
import type { ExecutionV1Handlers } from '../../../generated/execution.v1/server.ts'
import type { components } from '../../../generated/execution.v1/types.ts'
import { invalidRequest, type ProblemMember } from '../../contract/problem.ts'
import type { Cursors } from '../../storage/cursors.ts'
import type { DeclaredValuesReader } from '../account-values/declared-values.ts'
import type { Principal } from '../api-keys/api-key.ts'
import { notFound, toTimestamp, wrongCursor } from '../problems.ts'
import type { Bundle } from './bundle.ts'
import type { SentBundles } from './deploy-sources.ts'
import type { Deployment } from './deployments.sql.ts'
import type { Checked, Deployments, DeployResult } from './deployments.ts'
import { describeBreaking } from './evolution.ts'
import { isInnerPath } from './snapshot.ts'

type Operations = Pick<ExecutionV1Handlers<Principal>, 'listDeployments' | 'createDeployment' | 'activateDeployment'>
type Schemas = components['schemas']

export interface DeploymentDependencies {
  deployments: Deployments
  sentBundles: SentBundles
  cursors: Cursors
  declaredValues: DeclaredValuesReader
}

const retryAfterSeconds = '5'

export function deploymentOperations({
  deployments,
  sentBundles,
  cursors,
  declaredValues,
}: DeploymentDependencies): Operations {
  const findActivations = async (accountId: string): Promise<Activated> => {
    const activatedAt = new Map<string, number>()
    const [last, ...earlier] = await deployments.listActivations(accountId)
    for (const { deploymentId, at } of last ? [last, ...earlier] : [])
      if (!activatedAt.has(deploymentId)) activatedAt.set(deploymentId, at)
    const installation = await deployments.findInstallation()
    const own = last && (await deployments.find(last.deploymentId))
    return { activatedAt, installation, currentId: own?.accountId === accountId ? own.id : installation?.id }
  }

  const toActivated = async (accountId: string, result: DeployResult, breaking: string[]) => {
    const { deployment, previous, changes } = result
    const activated = await findActivations(accountId)
    const workflows = await deployments.findWorkflows(deployment.id)
    return {
      ...toResponse(deployment, activated),
      previousDeployment: previous ? toResponse(previous, activated) : null,
      changes: changes.slice(0, changesMax),
      breakingChanges: shortened(breaking),
      missing: workflows ? await declaredValues.findMissing(accountId, workflows) : [],
    }
  }

  return {
    async listDeployments({ principal: { accountId }, query }) {
      const list = ['deployments', accountId]
      const page = await cursors.page(
        list,
        query,
        (after, limit) => deployments.listOwn(accountId, after === undefined ? undefined : toPosition(after), limit),
        { positionOf: ({ id, createdAt }) => `${createdAt}-${id}` },
      )
      if (!page) return wrongCursor
      const activated = await findActivations(accountId)
      const data: Schemas['Deployment'][] = []
      for (const { id } of page.rows) {
        const deployment = await deployments.find(id)
        // One that is missing was deleted in the meantime.
        if (deployment) data.push(toResponse(deployment, activated))
      }
      const { installation } = activated
      const installationDeployment = installation ? toResponse(installation, activated) : null
      return { status: 200, body: { data, nextCursor: page.nextCursor, installationDeployment } }
    },

    async createDeployment(request) {
      const { principal, body, signal } = request
      const errors = findBundleErrors(body)
      if (errors.length > 0) return invalidRequest(errors)
      request.unlockProcessing()
      const { accountId } = principal
      const options = { by: principal, allowBreaking: body.allowBreaking ?? false, signal }
      const sent = await sentBundles.deploy(accountId, toBundle(body), options)
      switch (sent.kind) {
        case 'disabled': {
          const detail =
            'This installation accepts no deployments from API keys. Its operator allows them with API_DEPLOYMENTS=on. Nothing was deployed.'
          return { status: 409, problem: { kind: 'deployments-disabled', detail } }
        }
        case 'busy': {
          const detail = 'Other deployments of this account are being checked. Try again. Nothing was deployed.'
          const problem = { kind: 'too-many-concurrent-requests', detail } as const
          return { status: 429, headers: { 'Retry-After': retryAfterSeconds }, problem }
        }
        case 'invalid':
          return { status: 400, problem: { kind: 'invalid-workflows', detail: `${sent.detail} Nothing was deployed.` } }
        case 'checked': {
          const lines = describeBreaking(sent.breaking, 'allowBreaking')
          const { result } = sent
          if (!result) return breaksCallers(sent, 'deployed')
          const deployed = await toActivated(accountId, result, lines)
          const headers = { Location: `/v1/execution/deployments/${deployed.id}` }
          return { status: result.activated ? 201 : 200, headers, body: deployed }
        }
      }
    },

    async activateDeployment({ principal, path, body }) {
      const { accountId } = principal
      const options = { by: principal, allowBreaking: body?.allowBreaking ?? false }
      const checked = await deployments.activate(accountId, path.deploymentId, options)
      if (!checked) return notFound('deployment')
      const { result } = checked
      if (!result) return breaksCallers(checked, 'changed')
      const lines = describeBreaking(checked.breaking, 'allowBreaking')
      return { status: 200, body: await toActivated(accountId, result, lines) }
    },
  }
}

/** Of a deployment, and of the one before. */
const changesMax = 20_000

/** Of many workflows, the first lines say enough. */
const linesMax = 200

function shortened(lines: string[]): string[] {
  return lines.length > linesMax ? [...lines.slice(0, linesMax), '…'] : lines
}

function breaksCallers({ breaking }: Checked<unknown>, done: 'deployed' | 'changed') {
  const lines = describeBreaking(breaking, 'allowBreaking')
  const detail = [...shortened(lines), `Nothing was ${done}.`].join('\n')
  return { status: 409 as const, problem: { kind: 'breaks-callers', detail } }
}

/** What no schema expresses. */
export function findBundleErrors({ files, modules }: Schemas['CreateDeploymentRequest']): ProblemMember[] {
  const errors: ProblemMember[] = []
  const paths = new Set<string>()
  for (const [index, { path, content, encoding }] of files.entries()) {
    const pointer = `/files/${index}`
    if (!isInnerPath(path)) errors.push({ pointer: `${pointer}/path`, detail: 'must not have the segment . or ..' })
    if (paths.has(path)) errors.push({ pointer: `${pointer}/path`, detail: 'is the path of another file' })
    if (encoding && Buffer.from(content, encoding).toString(encoding) !== content)
      errors.push({ pointer: `${pointer}/content`, detail: 'must be base64' })
    paths.add(path)
  }
  for (const [index, { path }] of modules.entries())
    if (!paths.has(path)) errors.push({ pointer: `/modules/${index}/path`, detail: 'is the path of none of the files' })
  return errors
}

function toBundle({ files, modules, externals = [] }: Schemas['CreateDeploymentRequest']): Bundle {
  return {
    content: {
      files: files.map(({ executable, ...file }) => ({ ...file, ...(executable && { isExecutable: true as const }) })),
      externals,
    },
    modules: modules.map(({ path, source = path, optionLines = {} }) => ({ path, file: source, lines: optionLines })),
  }
}

function toPosition(text: string) {
  const [createdAt, id = ''] = text.split('-')
  return { createdAt: Number(createdAt), id }
}

/** Which deployment serves an account. */
interface Activated {
  /** When deployments became current last for the account, by id. */
  activatedAt: ReadonlyMap<string, number>
  installation: Deployment | undefined
  /** Its own, or the installation's. */
  currentId: string | undefined
}

function toResponse(
  { id, workflows, sizeBytes, createdAt }: Deployment,
  { activatedAt, currentId }: Activated,
): Schemas['Deployment'] {
  return {
    id,
    current: id === currentId,
    workflows: workflows.map(({ id, version, title }) => ({ id, version, title })),
    sizeBytes,
    createdAt: toTimestamp(createdAt),
    activatedAt: toTimestamp(activatedAt.get(id) ?? createdAt),
  }
}
