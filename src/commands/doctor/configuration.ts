/** Checks the environment and the workflows that it names. */
import { type Config, readConfig, settings } from '../../config/config.ts'
import { ConfigError, splitList } from '../../config/setting-kinds.ts'
import { buildSnapshot, NoWorkflows } from '../../domain/deployments/build-snapshot.ts'
import { findCurrentActivations, findDeployment } from '../../domain/deployments/deployments.sql.ts'
import { builderIdentity, executorIdentity } from '../../domain/workflows/executor-identity.ts'
import { type Workflow, WorkflowError } from '../../domain/workflows/workflow.ts'
import { closestName } from '../../simulator/closest-name.ts'
import { type Finding, fail, failWithMessage, type Opened, ok, pluralize, shortMessage, warn } from './finding.ts'

export interface ReadConfiguration {
  /** The configuration without the invalid variables. */
  config: Config
  errors: readonly string[]
  invalid: ReadonlySet<string>
}

const names = Object.keys(settings)

/** Reads the configuration, leaving out invalid variables one after the other until the rest is valid. */
export function readConfiguration(environment: NodeJS.ProcessEnv): ReadConfiguration {
  const errors: string[] = []
  const invalid = new Set<string>()
  const remaining = { ...environment }
  for (;;) {
    try {
      const config = readConfig(remaining)
      executorIdentity(config)
      return { config, errors, invalid }
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      errors.push(error.message)
      const named = names.filter((name) => remaining[name] && new RegExp(`\\b${name}\\b`).test(error.message))
      if (named.length === 0) throw error
      for (const name of named) {
        invalid.add(name)
        delete remaining[name]
      }
    }
  }
}

export function checkConfiguration({ errors }: ReadConfiguration, environment: NodeJS.ProcessEnv): Finding {
  const [first, ...others] = errors
  if (first !== undefined) {
    const { status, detail, advice } = failWithMessage(first)
    return { status, detail, advice: [advice, ...others].join(' ') }
  }
  const set = names.filter((name) => environment[name])
  const mistyped = findMistyped(environment)
  if (mistyped) {
    return warn(
      `${mistyped.name} is set, which is no setting`,
      `If it is for the service, write ${mistyped.closest}: it has no effect.`,
    )
  }
  return ok(set.length === 0 ? 'all defaults' : `defaults, except ${set.join(', ')}`)
}

/** A variable that looks like a setting that is not set. The SDK of OpenTelemetry reads many more of its own. */
function findMistyped(environment: NodeJS.ProcessEnv): { name: string; closest: string } | undefined {
  const passedOn = splitList(environment.EXECUTOR_ENV ?? '')
  const others = Object.keys(environment).filter(
    (name) => /^(?!OTEL_)[A-Z0-9]+_[A-Z0-9_]+$/.test(name) && !names.includes(name) && !passedOn.includes(name),
  )
  const missing = names.filter((name) => name.includes('_') && !environment[name])
  const found = others.map((name) => ({ name, closest: closestName(name, missing) }))
  return found.find((each): each is { name: string; closest: string } => each.closest !== undefined)
}

export type LoadedWorkflows = { workflows: Workflow[] } | { error: string }

/** The workflows of all current deployments; none if the store cannot be read. */
export async function readDeployedWorkflows(opened: Opened): Promise<Workflow[]> {
  if ('error' in opened || !opened.inspection) return []
  const { read } = opened.inspection.store
  try {
    const current = await findCurrentActivations(read)
    const found = await Promise.all(current.map(({ deploymentId }) => findDeployment(read, deploymentId)))
    return found.flatMap((deployment) => deployment?.workflows ?? [])
  } catch {
    // A store of an earlier version, which the check of the store reports.
    return []
  }
}

/** Loads the workflows of WORKFLOWS_DIR. */
export async function loadWorkflows(config: Config): Promise<LoadedWorkflows> {
  const { WORKFLOWS_DIR: directory } = config
  if (directory === undefined) return { workflows: [] }
  try {
    return { workflows: (await buildSnapshot(directory, { identity: builderIdentity(config) })).workflows }
  } catch (error) {
    if (error instanceof NoWorkflows) return { workflows: [] }
    if (error instanceof WorkflowError) return { error: shortMessage(error) }
    throw error
  }
}

export function checkWorkflows(
  loaded: LoadedWorkflows,
  directory: string | undefined,
  deployed: readonly Workflow[] = [],
): Finding {
  if ('error' in loaded) {
    return fail(loaded.error, 'Fix it, or set WORKFLOWS_DIR to another directory: the service does not start.')
  }
  const count = loaded.workflows.length
  if (count === 0 && deployed.length > 0)
    return ok(`${pluralize(deployed.length, 'workflow')} deployed, ${countBrowserWorkflows(deployed)} with a browser`)
  if (count === 0) {
    const detail = directory === undefined ? 'none, because WORKFLOWS_DIR is not set' : `no workflows in ${directory}`
    return warn(detail, 'Set WORKFLOWS_DIR to the directory of your workflows.')
  }
  return ok(
    `${pluralize(count, 'workflow')} in ${directory}, ${countBrowserWorkflows(loaded.workflows)} with a browser`,
  )
}

export function countBrowserWorkflows(workflows: readonly Workflow[]): number {
  return workflows.filter(({ usesBrowser }) => usesBrowser).length
}
