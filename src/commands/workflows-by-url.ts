/** The commands `workflows build`, and `workflows deploy`, `list` and `rollback` with `--url`: by the API, without the store. */

import { readConfig } from '../config/config.ts'
import { buildBundle, describeBundle } from '../domain/deployments/build-snapshot.ts'
import { type Bundle, displayPath } from '../domain/deployments/bundle.ts'
import { describeChanges } from '../domain/deployments/evolution.ts'
import { builderIdentity } from '../domain/workflows/executor-identity.ts'
import { connect, refusal, type UrlOptions } from './api-access.ts'
import { announce, CommandError, print, table } from './output.ts'
import { requireSuccess, shortId, toDirectory, warnOfMissing } from './workflows.ts'

/** Describing the workflows takes a service up to 80 seconds, after it has done so with others. */
const deploySeconds = 300

export async function deployToUrl(
  argument: string | undefined,
  options: UrlOptions & { try?: boolean; allowBreaking?: boolean },
): Promise<void> {
  const client = connect(options, 'deployments:write')
  const { directory, bundle, identity } = await build(argument)
  if (options.try) {
    const snapshot = await describeBundle(bundle, [directory], { identity })
    await requireSuccess(snapshot, directory, identity, options)
  }
  const body = { ...toBody(bundle), ...(options.allowBreaking && { allowBreaking: true }) }
  const { data, error, response } = await announce(
    'The service checks the bundle',
    client.createDeployment({ body, timeoutSeconds: deploySeconds }),
  )
  if (!data) throw refusal(error, response, 'deployments:write')
  const { id, workflows, previousDeployment, changes, breakingChanges, missing } = data
  if (breakingChanges.length > 0) process.stderr.write(`${breakingChanges.join('\n')}\n`)
  warnOfMissing(missing)
  const changed = response?.status === 201
  if (options.json) {
    const previousDeploymentId = previousDeployment?.id ?? null
    return print(JSON.stringify({ deploymentId: id, previousDeploymentId, changed, workflows, changes, missing }))
  }
  if (!changed) return print(`Nothing has changed: ${shortId(data)} is already deployed.`)
  print(`Deployed ${displayPath(directory)} for the account of the key: ${shortId(data)}.`)
  for (const line of describeChanges(changes)) print(line)
}

export async function printBundle(argument: string | undefined): Promise<void> {
  print(JSON.stringify(toBody((await build(argument)).bundle)))
}

export async function listAtUrl(options: UrlOptions): Promise<void> {
  const client = connect(options, 'workflows:read')
  const rows: Record<string, unknown>[] = []
  for (let cursor: string | undefined; ; ) {
    const query = { limit: 100, ...(cursor !== undefined && { cursor }) }
    const { data, error, response } = await client.listWorkflows({ params: { query } })
    if (!data) throw refusal(error, response, 'workflows:read')
    rows.push(...data.data.map(({ id, version, title, deploymentId }) => ({ id, version, title, deploymentId })))
    if (data.nextCursor === null) break
    cursor = data.nextCursor
  }
  if (options.json) return print(JSON.stringify(rows))
  if (rows.length === 0) return print('No workflows are deployed. Deploy a directory with `workflows deploy DIR`.')
  print(table(rows.map((row) => ({ ...row, deploymentId: String(row.deploymentId).slice(0, 12) }))))
}

/** Returns to the deployment before the current one. As a rollback of the store, it asks no callers. */
export async function rollBackAtUrl(options: UrlOptions): Promise<void> {
  const client = connect(options, 'deployments:write')
  const listed = await client.listDeployments({ params: { query: { limit: 100 } } })
  if (!listed.data) throw refusal(listed.error, listed.response, 'deployments:read')
  const byActivation = listed.data.data.toSorted((a, b) => (a.activatedAt < b.activatedAt ? 1 : -1))
  const current = byActivation.find((each) => each.current)
  const earlier =
    current && (byActivation.find((each) => each.createdAt < current.createdAt) ?? listed.data.installationDeployment)
  if (!earlier)
    throw new CommandError(
      'The account has no earlier deployment to return to: deploy one with `workflows deploy DIR`.',
    )
  const params = { path: { deploymentId: earlier.id } }
  const { data, error, response } = await client.activateDeployment({ params, body: { allowBreaking: true } })
  if (!data) throw refusal(error, response, 'deployments:write')
  if (options.json) return print(JSON.stringify({ deploymentId: data.id }))
  print(`Rolled back to ${shortId(data)}. Queued runs are executed by the deployment that they were queued under.`)
  for (const { id, version } of data.workflows) print(`  ${id} ${version}`)
}

async function build(argument: string | undefined) {
  const config = readConfig(process.env)
  const directory = toDirectory(argument, config)
  const identity = builderIdentity({ ...config, WORKFLOWS_DIR: directory })
  return {
    directory,
    identity,
    bundle: await announce(`Bundling ${displayPath(directory)}`, buildBundle(directory, { identity })),
  }
}

/** U+0000 is not allowed in the JSON of requests. */
function toBody({ content, modules }: Bundle) {
  const files = content.files.map(({ path, content, encoding, isExecutable }) => {
    const hasNull = encoding === undefined && content.includes('\0')
    const written = hasNull
      ? { content: Buffer.from(content).toString('base64'), encoding: 'base64' as const }
      : { content }
    return { path, ...(encoding ? { content, encoding } : written), ...(isExecutable && { executable: true }) }
  })
  const entries = modules.map(({ path, file, lines }) => ({ path, source: file, optionLines: lines }))
  return { files, modules: entries, externals: content.externals }
}
