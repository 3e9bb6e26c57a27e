/** Helpers for tests that call the Execution API through the published client. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, type TestContext } from 'vitest'
import {
  type ClientOptions,
  createExecutionClient,
  type ExecutionClient,
  ProblemError,
  type Run,
  unwrap,
} from '../../src/client/index.ts'
import { type Installation, newInstallation, runCommand, type ServiceProcess } from '../support/installation.ts'
import { type TestAccount, until } from '../support/service.ts'
import type { Environment } from '../support/service-storage.ts'

export function clientOf(
  { executionUrl }: Pick<ServiceProcess, 'executionUrl'>,
  apiKey: string,
  options: Partial<ClientOptions> = {},
): ExecutionClient {
  return createExecutionClient({ apiKey, baseUrl: executionUrl, ...options })
}

type Query = NonNullable<Parameters<ExecutionClient['queueRemoteRun']>[0]['params']['query']>
type Headers = NonNullable<Parameters<ExecutionClient['queueRemoteRun']>[0]['params']['header']>

export async function queue(
  client: ExecutionClient,
  workflowId: string,
  variableData: object,
  query: Query = {},
  header: Headers = {},
) {
  const body = { variableData: { ...variableData } }
  const result = await client.queueRemoteRun({ params: { path: { workflowId }, query, header }, body })
  if (result.error) throw new ProblemError(result.error)
  return { run: result.data, response: result.response }
}

export async function read(client: ExecutionClient, { id }: Pick<Run, 'id'>): Promise<Run> {
  return unwrap(await client.getRun({ params: { path: { runId: id } } }))
}

export function untilStatus(client: ExecutionClient, run: Pick<Run, 'id'>, status: Run['status']): Promise<Run> {
  return until(`run ${run.id} is ${status}`, async () => {
    const now = await read(client, run)
    return now.status === status && now
  })
}

export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}

/** An installation for one test, which may stop its service. */
export async function ownInstallation({ onTestFinished }: TestContext, changes: Record<string, string> = {}) {
  const installation = await newInstallation({ LEASE_SECONDS: '3', ...changes })
  onTestFinished(installation.remove)
  return installation
}

/** A caller with its own account. */
export async function callerOf(of: Installation, at: ServiceProcess) {
  const account: TestAccount = await of.createAccount()
  return { account, client: clientOf(at, account.key) }
}

let files = 0

/** A file that workflows wait for, created on demand. */
export function fileIn({ dataDirectory }: Installation) {
  files += 1
  const file = join(dataDirectory, `release-${files}`)
  return { file, release: () => writeFileSync(file, '') }
}

/** The error of a service that does not start, which must be one sentence. */
export async function refusedStart(settings: Environment): Promise<string> {
  const { code, stdout, stderr } = await runCommand(['start'], settings)
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  const [sentence = '', ...more] = stderr.split('\n')
  expect(more).toEqual([''])
  return sentence
}
